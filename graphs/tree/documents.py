"""Trees as JSON documents, which are read back without loss, and as graphs in networkx and GraphML."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from ...modules.errors import LoadingError, needs_extra
from ...modules.reading.deep_json import dumps, loads
from ...modules.storage.formats import FORMAT_KEY, Thing, check_format, format_of
from ...modules.storage.texts import printable
from .nodes import ChunkNode, QueryNode, fold_queries, walk_chunks, walk_queries, walk_shared

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_QUERY_ATTRIBUTES = (
    "thread_id",
    "depth",
    "query",
    "answer",
    "status",
    "answer_status",
    "error",
    "started_at",
    "ended_at",
)
FRAME_COLUMNS = (
    *("query", "depth", "rank", "source", "verdict", "score", "p_needed", "shown", "sub_question", "sub_answer"),
    *("text", "chunk_id", "thread_id"),
)
# Messages in the words of JSON, in place of pydantic's own about Python's arguments and types.
_FAULTS = {
    "dataclass_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "extra_forbidden": "Unknown field",
    "missing": "Missing field",
    "tuple_type": "Input should be a list",
    "unexpected_keyword_argument": "Unknown field",
}
_TOO_DEEP = frozenset({"recursion_loop", "recursion_depth_exceeded"})
"""Pydantic's faults of data that nests deeper than it follows, about 255 levels."""
T = TypeVar("T")
Json = dict[str, Any]


class Documents(Generic[T]):
    """Writes and reads one dataclass as JSON documents: the format, then the fields in their order."""

    def __init__(self, kind: type[T], thing: Thing, *, remedy: str, trees: str = "") -> None:
        """Prepare writing and reading.

        Args:
            kind: The dataclass, of dataclasses, typed dictionaries, lists, tuples and scalars.
            thing: The thing that ``format`` names.
            remedy: Advice for a document of another format, as the end of a sentence.
            trees: The field that maps ids to search trees; ``""`` if the value is a search tree itself.
        """
        self._trees = trees
        self._roots = {trees: {"__all__": {"root": True}}} if trees else {"root": True}
        self._thing: Thing = thing
        self._what = thing.replace("-", " ")
        self._remedy = remedy
        self._fields = TypeAdapter(kind)
        self._strict_fields = SchemaValidator(cast(CoreSchema, _strict(self._fields.core_schema)))

    def dump(self, value: T, *, indent: int | None) -> str:
        """Write a value as text; Chinese stays readable.

        Raises:
            ValueError: The value holds a number that is not finite.
        """
        return json_text(self.to_json_object(value), indent=indent)

    def to_json_object(self, value: T) -> dict[str, object]:
        """Convert a value to a JSON object, for a document of its own or as part of another."""
        return {FORMAT_KEY: format_of(self._thing), **self._dumped(value)}

    def _dumped(self, value: T) -> dict[str, object]:
        try:
            return cast("dict[str, object]", self._fields.dump_python(value, warnings=False))
        except ValueError:  # pydantic nests 255 deep
            dumped = self._fields.dump_python(value, warnings=False, exclude=self._roots)
        trees = getattr(value, self._trees).values() if self._trees else [value]
        for tree, plain in zip(trees, dumped[self._trees].values() if self._trees else [dumped], strict=True):
            plain["root"] = plain_query(tree.root)
        return cast("dict[str, object]", dumped)

    def load(self, text: str) -> T:
        """Read the text that ``dump`` wrote.

        Raises:
            LoadingError: The text is no JSON, or see ``from_json_object``.
        """
        try:
            document = loads(text)
        except (ValueError, RecursionError) as error:
            raise LoadingError(f"This is not a {self._what}: no JSON ({error}).") from error
        return self.from_json_object(document)

    def from_json_object(self, document: object) -> T:
        """Read an object that ``to_json_object`` made; missing and unknown fields are refused.

        Raises:
            LoadingError: The object is something else, of another format, or damaged.
        """
        if not isinstance(document, dict):
            raise LoadingError(f"This is not a {self._what}: the JSON holds no object.")
        check_format(
            document.get(FORMAT_KEY),
            self._thing,
            where=f"This {self._what}",
            remedy=f"Read it with the judgetree that wrote it, or {self._remedy}.",
        )
        fields = {key: value for key, value in document.items() if key != FORMAT_KEY}
        try:
            return self._validated(fields)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in fault["loc"])
            words = _FAULTS.get(fault["type"], fault["msg"])
            raise LoadingError(
                f"This {self._what} is damaged at {place}: {words}, found {reprlib.repr(fault['input'])} "
                f"({error.error_count()} faults in all)."
            ) from error

    def _validated(self, fields: dict[str, object]) -> T:
        try:
            return cast(T, self._strict_fields.validate_python(fields))
        except ValidationError as error:
            if not any(fault["type"] in _TOO_DEEP for fault in error.errors(include_url=False)):
                raise
        trees = fields[self._trees] if self._trees else {"": fields}
        read = {name: {**tree, "root": query_of(tree["root"])} for name, tree in cast(Json, trees).items()}
        return cast(T, self._strict_fields.validate_python({**fields, self._trees: read} if self._trees else read[""]))


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return plain data as JSON that can be sent as UTF-8; Chinese stays readable.

    Raises:
        ValueError: The data holds a number that is not finite.
    """
    text = dumps(document, allow_nan=False, indent=indent)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _strict(schema: object) -> object:
    """Make a pydantic schema refuse other types and missing fields, but accept dictionaries and lists as in JSON.

    Pydantic's own strict mode accepts those in JSON text only, which must not hold half a surrogate pair, and it fills
    in the defaults of missing fields.
    """
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(part) for key, part in schema.items()}
    match strict.get("type"):
        case "default":
            return strict["schema"]
        case "dataclass" | "typed-dict":
            strict |= {"strict": False, "config": {"strict": True, "extra_fields_behavior": "forbid"}}
            strict.pop("extra_behavior", None)
        case "tuple":
            strict["strict"] = False
        case "dataclass-args":
            kept = cast(list[dict[str, object]], strict["fields"])
            strict["fields"] = [each for each in kept if not each.get("serialization_exclude")]
    return strict


_QUERY = TypeAdapter(QueryNode)
_CHUNK = TypeAdapter(ChunkNode)
_STRICT_QUERY = SchemaValidator(cast(CoreSchema, _strict(_QUERY.core_schema)))


def plain_query(root: QueryNode) -> Json:
    """Convert a query of any depth to a JSON object, without recursion."""

    def plain(node: QueryNode, below: list[list[Json]]) -> Json:
        chunks = [
            {**_CHUNK.dump_python(replace(chunk, sub_runs=()), warnings=False), "sub_runs": sub_runs}
            for chunk, sub_runs in zip(node.chunks, below, strict=True)
        ]
        return {**_QUERY.dump_python(replace(node, chunks=()), warnings=False), "chunks": chunks}

    return fold_queries(root, plain)


def query_of(plain: object) -> QueryNode:
    """Read an object of any depth that ``plain_query`` made, without recursion.

    Raises:
        ValidationError: It is damaged; the place is that within its own query.
    """
    queue: list[object] = [plain]
    for each in queue:  # the queue grows
        queue += [sub_run for chunk in _listed(each, "chunks") for sub_run in _listed(chunk, "sub_runs")]
    made: dict[int, QueryNode] = {}
    for each in reversed(queue):
        made[id(each)] = cast(QueryNode, _STRICT_QUERY.validate_python(_with_sub_runs(each, made)))
    return made[id(plain)]


def _with_sub_runs(plain: object, made: Mapping[int, QueryNode]) -> object:
    if not isinstance(plain, dict) or not isinstance(plain.get("chunks"), list):
        return plain
    chunks = [
        {**chunk, "sub_runs": [made[id(each)] for each in chunk["sub_runs"]]}
        if isinstance(chunk, dict) and isinstance(chunk.get("sub_runs"), list)
        else chunk
        for chunk in plain["chunks"]
    ]
    return {**plain, "chunks": chunks}


def _listed(plain: object, key: str) -> Iterator[object]:
    inner = plain.get(key) if isinstance(plain, dict) else None
    return iter(inner) if isinstance(inner, list) else iter(())


def build_graph(root: QueryNode) -> nx.DiGraph:
    """Build a directed graph from queries to their chunks and from chunks to their sub-questions.

    ``kind`` of an edge is "retrieved", "asked", or "shared" where an equal question was asked already.

    The name of a query node is its thread id, that of a chunk node ``thread id/chunk id`` (two queries may find one
    chunk). ``kind`` is "query" or "chunk". Attributes are scalars that GraphML can hold, without those that are None;
    characters that XML forbids are replaced.
    """
    import networkx as nx  # noqa: PLC0415 - loaded when it is used

    graph = nx.DiGraph()
    for query in walk_queries(root):
        attributes = {name: getattr(query, name) for name in _QUERY_ATTRIBUTES}
        caveats = ", ".join(query.caveats) or None
        _add_node(graph, query.thread_id, {"kind": "query", **attributes, **query.cost, "caveats": caveats})
    for parent, chunk in walk_chunks(root):
        name = f"{parent.thread_id}/{chunk.chunk_id}"
        own = {"chunk_id": chunk.chunk_id, "text": chunk.text, "verdict": chunk.verdict}
        _add_node(graph, name, {**chunk.metadata, "kind": "chunk", "thread_id": parent.thread_id, **own})
        graph.add_edge(printable(parent.thread_id), printable(name), kind="retrieved")
        for sub_run in chunk.sub_runs:
            graph.add_edge(printable(name), printable(sub_run.thread_id), kind="asked")
    for parent, chunk, shared in walk_shared(root):
        graph.add_edge(printable(f"{parent.thread_id}/{chunk.chunk_id}"), printable(shared.thread_id), kind="shared")
    return graph


def build_frame(root: QueryNode) -> pd.DataFrame:
    """Build a table with a row for each chunk of each query, in the order of the tree; see ``SearchTree.to_frame``.

    Raises:
        DependencyError: pandas is not installed.
    """
    with needs_extra("eval", what="A table of a search tree"):
        import pandas as pd  # noqa: PLC0415 - an optional extra

    rows = [
        {
            "query": parent.query,
            "depth": parent.depth_of(chunk),
            "rank": chunk.position,
            "source": chunk.metadata.get("source"),
            "verdict": chunk.verdict_label,
            "score": chunk.score,
            "p_needed": chunk.p_needed,
            "shown": chunk.shown_place is not None,
            "sub_question": chunk.next_query,
            "sub_answer": chunk.sub_answer,
            "text": chunk.text,
            "chunk_id": chunk.chunk_id,
            "thread_id": parent.thread_id,
        }
        for parent, chunk in walk_chunks(root)
    ]
    return pd.DataFrame.from_records(rows, columns=FRAME_COLUMNS)


def draw_graphml(root: QueryNode) -> str:
    """Write the graph of ``build_graph`` as GraphML text; metadata keys are the attribute names."""
    import networkx as nx  # noqa: PLC0415 - loaded when it is used

    return "\n".join(nx.generate_graphml(build_graph(root)))


def _add_node(graph: nx.DiGraph, name: str, attributes: Mapping[str, object]) -> None:
    shown = {
        printable(key): printable(value) if isinstance(value, str) else value
        for key, value in attributes.items()
        if value is not None
    }
    graph.add_nodes_from([(printable(name), shown)])  # add_node takes no attribute of the name of its own argument
