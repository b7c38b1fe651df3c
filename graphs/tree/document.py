"""A search tree as a JSON document, and back without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict

from ...modules.calls.usage import CallKind, CallRecord
from ...modules.formats import FORMAT_KEY, format_of
from ..threads.snapshots import ThreadStatus
from ..threads.state import AnswerStatus, JsonScalar
from .json_documents import check_document, parse_json, write_document
from .nodes import ChunkNode, QueryNode

_STRICT = ConfigDict(extra="forbid", strict=True)
_WHAT = "search tree"

# The document's schema stands apart from the dataclasses, so that a change of those does not change the format.


class _CallDocument(BaseModel):
    model_config = _STRICT
    call_id: str
    kind: CallKind
    node: str
    chunk_id: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    cut_off: bool = False
    seconds: float
    attempts: int
    cached: bool
    error: str


class _ChunkDocument(BaseModel):
    model_config = _STRICT
    chunk_id: str
    text: str
    metadata: dict[str, JsonScalar]
    child: _QueryDocument | None

    def node(self) -> ChunkNode:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return ChunkNode(**{**fields, "child": self.child.node() if self.child else None})


class _QueryDocument(BaseModel):
    model_config = _STRICT
    thread_id: str
    query: str
    parent_thread_id: str | None
    depth: int
    answer: str
    status: ThreadStatus
    answer_status: AnswerStatus | None
    error: str
    context: str
    usage: list[_CallDocument]
    started_at: str | None
    ended_at: str | None
    chunks: list[_ChunkDocument]

    def node(self) -> QueryNode:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        usage = tuple(cast(CallRecord, call.model_dump()) for call in self.usage)
        return QueryNode(**{**fields, "usage": usage, "chunks": tuple(chunk.node() for chunk in self.chunks)})


class _TreeDocument(BaseModel):
    model_config = _STRICT
    format: Literal["judgetree-search-tree/3"]
    fingerprint: dict[str, str]
    root: _QueryDocument


def dump_tree(root: QueryNode, fingerprint: Mapping[str, str], *, indent: int | None) -> str:
    """The tree as JSON; Chinese stays readable.

    Raises:
        ValueError: A number in some metadata is not finite, which JSON cannot say.
    """
    return write_document(tree_document(root, fingerprint), indent=indent)


def tree_document(root: QueryNode, fingerprint: Mapping[str, str]) -> dict[str, object]:
    """The tree as what JSON is made of, to stand in a document of its own or in a larger one."""
    return {
        FORMAT_KEY: format_of("search-tree"),
        "fingerprint": dict(fingerprint),
        "root": asdict(root),
    }


def load_tree(text: str) -> tuple[QueryNode, dict[str, str]]:
    """Root and fingerprint out of what ``dump_tree`` wrote.

    Raises:
        LoadingError: The text is no JSON, or no search tree, or of another format.
    """
    return read_tree_document(parse_json(text, what=_WHAT))


def read_tree_document(document: object) -> tuple[QueryNode, dict[str, str]]:
    """Root and fingerprint out of a ``tree_document``.

    Raises:
        LoadingError: It is no search tree, or damaged, or of another format.
    """
    tree = check_document(
        document,
        _TreeDocument,
        what=_WHAT,
        thing="search-tree",
        again="build the tree again from its checkpoints",
    )
    return tree.root.node(), tree.fingerprint
