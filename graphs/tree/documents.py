"""Trees as JSON documents, which are read back without loss, and as graphs in networkx and GraphML."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from ...modules.errors import LoadingError
from ...modules.formats import FORMAT_KEY, Thing, format_of, printable, refuse_other_format
from .nodes import QueryNode, walk_chunks, walk_queries, walk_shared

if TYPE_CHECKING:
    import networkx as nx

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
# Messages in the words of JSON, in place of pydantic's own about Python's arguments and types.
_FAULTS = {
    "dataclass_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "extra_forbidden": "Unknown field",
    "missing": "Missing field",
    "tuple_type": "Input should be a list",
    "unexpected_keyword_argument": "Unknown field",
}
T = TypeVar("T")


class Documents(Generic[T]):
    """Writes and reads one dataclass as JSON documents: the format, then the fields in their order."""

    def __init__(self, kind: type[T], thing: Thing, *, remedy: str) -> None:
        """Prepare writing and reading.

        Args:
            kind: The dataclass, of dataclasses, typed dictionaries, lists, tuples and scalars.
            thing: The thing that ``format`` names.
            remedy: Advice for a document of another format, as the end of a sentence.
        """
        self._thing: Thing = thing
        self._what = thing.replace("-", " ")
        self._remedy = remedy
        self._fields = TypeAdapter(kind)
        self._strict_fields = SchemaValidator(cast(CoreSchema, _strict(self._fields.core_schema)))

    def dump(self, value: T, *, indent: int | None) -> str:
        """Write a value as text; Chinese stays readable.

        Raises:
            ValueError: The value holds a number that is not finite, or nests more than 200 questions.
        """
        return json_text(self.to_json_object(value), indent=indent)

    def to_json_object(self, value: T) -> dict[str, object]:
        """Convert a value to a JSON object, for a document of its own or as part of another."""
        return {FORMAT_KEY: format_of(self._thing), **self._fields.dump_python(value, warnings=False)}

    def load(self, text: str) -> T:
        """Read the text that ``dump`` wrote.

        Raises:
            LoadingError: The text is no JSON, or see ``from_json_object``.
        """
        try:
            document = json.loads(text)
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
        refuse_other_format(
            document.get(FORMAT_KEY),
            self._thing,
            where=f"This {self._what}",
            remedy=f"Read it with the judgetree that wrote it, or {self._remedy}.",
        )
        fields = {key: value for key, value in document.items() if key != FORMAT_KEY}
        try:
            return cast(T, self._strict_fields.validate_python(fields))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in fault["loc"])
            words = _FAULTS.get(fault["type"], fault["msg"])
            raise LoadingError(
                f"This {self._what} is damaged at {place}: {words}, found {reprlib.repr(fault['input'])} "
                f"({error.error_count()} faults in all)."
            ) from error


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return plain data as JSON that can be sent as UTF-8; Chinese stays readable.

    Raises:
        ValueError: The data holds a number that is not finite.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
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
        _add_node(graph, query.thread_id, {"kind": "query", **attributes, **query.cost})
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
