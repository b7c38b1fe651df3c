"""A search tree as a JSON document, and back without loss."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from ..modules.errors import LoadingError
from ..modules.usage import CallKind, CallRecord
from .state import AnswerStatus, JsonScalar
from .tree_nodes import ChunkNode, QueryNode, ThreadStatus

FORMAT = "judgetree.search_tree"
SCHEMA_VERSION = 1
_STRICT = ConfigDict(extra="forbid", strict=True)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# The document's schema stands apart from the dataclasses, so that they may change while version 1 stays readable.


class _CallDocument(BaseModel):
    model_config = _STRICT
    call_id: str
    kind: CallKind
    node: str
    chunk_id: str
    model: str
    prompt_tokens: int
    completion_tokens: int
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
    format: Literal["judgetree.search_tree"]
    schema_version: Literal[1]
    fingerprint: dict[str, str]
    root: _QueryDocument


def dump_tree(root: QueryNode, fingerprint: Mapping[str, str], *, indent: int | None) -> str:
    """The tree as JSON; Chinese stays readable.

    Raises:
        ValueError: A number in some metadata is not finite, which JSON cannot say.
    """
    document = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "fingerprint": dict(fingerprint),
        "root": asdict(root),
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def load_tree(text: str) -> tuple[QueryNode, dict[str, str]]:
    """Root and fingerprint out of what ``dump_tree`` wrote.

    Raises:
        LoadingError: The text is no JSON, or no search tree, or of a version that this judgetree does not know.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise LoadingError(f"This is not a search tree: no JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise LoadingError(f'This is not a search tree: the JSON has no "format": "{FORMAT}".')
    if document.get("schema_version") != SCHEMA_VERSION:
        version = document.get("schema_version")
        raise LoadingError(
            f"This search tree has schema_version {version!r}; this judgetree reads {SCHEMA_VERSION}. "
            "Read it with the judgetree that wrote it, or build the tree again from its checkpoints."
        )
    try:
        tree = _TreeDocument.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise LoadingError(
            f"This search tree is damaged at {place}: {fault['msg']} ({error.error_count()} faults in all)."
        ) from error
    return tree.root.node(), tree.fingerprint
