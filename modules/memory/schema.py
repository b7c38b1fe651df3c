"""The schema of the long-term memory in Milvus: its fields, its rows, and filters.

A row holds its turn twice: whole, as JSON in pieces, for reading; and in columns, for filters and other programs. Other
programs may write rows with some of the columns, so that most columns are nullable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import numpy as np

from ..digests import text_digest
from ..errors import CollectionError, MilvusFailure
from ..index.chunking import MAX_TEXT_BYTES
from ..index.content import quoted, text_in
from ..index.schema import DENSE_FIELD, DENSE_INDEX, PK_FIELD, CollectionInfo
from ..storage.texts import MAX_ID_BYTES, is_storable
from .turns import PathSpans, QaPair, imported_turn

if TYPE_CHECKING:
    from pymilvus import MilvusClient

    from ..embedding.cache import Vector

MEMORY_PROPERTY = "judgetree_conversations"
"""Property of collections of conversations; collections of documents have another one."""
CONVERSATION_FIELD = "conversation_id"
TURN_FIELD = "turn_id"
PARENT_FIELD = "parent_turn_id"
BRANCH_FIELD = "branch_id"
NUMBER_FIELD = "turn_number"
TIME_FIELD = "timestamp"
MOMENT_FIELD = "timestamp_us"
"""The timestamp as a number: microseconds since 1970."""
RECORD_FIELD = "record"
TURN_COLUMNS = [
    CONVERSATION_FIELD,
    TURN_FIELD,
    PARENT_FIELD,
    BRANCH_FIELD,
    NUMBER_FIELD,
    "user_query",
    "assistant_response",
    TIME_FIELD,
    RECORD_FIELD,
]
"""Columns that ``to_turn`` reads, beside the key."""
ALL_COLUMNS = ["*"]

MAX_RECORD_PIECES = 64
_MAKING_S = 2.0
_LOOK_AGAIN_S = 0.05
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = Mapping[str, object]


def row_key(conversation_id: str, turn_id: str) -> str:
    """Return the key of a turn's row, distinct for every conversation and turn."""
    return text_digest(f"{len(conversation_id)}:{conversation_id}:{turn_id}").hex()


def moment_us(timestamp: str) -> int | None:
    """Convert an ISO 8601 time (UTC by default) to microseconds since 1970; None if it is malformed.

    >>> moment_us("1970-01-01T00:00:01Z")
    1000000
    """
    try:
        moment = datetime.fromisoformat(timestamp.strip())
    except ValueError:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def create_memory(client: MilvusClient, name: str, info: CollectionInfo) -> None:
    """Create an empty memory for the vectors of ``info``, unless another writer has created it meanwhile.

    ``load_memory`` creates its index.
    """
    from pymilvus import DataType  # noqa: PLC0415 - takes a second to import

    schema = client.create_schema(auto_id=False, enable_dynamic_field=True, description="Turns of conversations")
    schema.add_field(PK_FIELD, DataType.VARCHAR, is_primary=True, max_length=MAX_ID_BYTES)
    schema.add_field(CONVERSATION_FIELD, DataType.VARCHAR, max_length=MAX_ID_BYTES, is_partition_key=True)
    schema.add_field(DENSE_FIELD, DataType.FLOAT_VECTOR, dim=info.dimensions[DENSE_FIELD])
    for column in (TURN_FIELD, PARENT_FIELD, BRANCH_FIELD, TIME_FIELD):
        schema.add_field(column, DataType.VARCHAR, max_length=MAX_ID_BYTES, nullable=True)
    for column in ("user_query", "assistant_response", "context_docs"):
        schema.add_field(column, DataType.VARCHAR, max_length=MAX_TEXT_BYTES, nullable=True)
    for column in (NUMBER_FIELD, MOMENT_FIELD, "token_count"):
        schema.add_field(column, DataType.INT64, nullable=True)
    schema.add_field(
        RECORD_FIELD,
        DataType.ARRAY,
        element_type=DataType.VARCHAR,
        max_capacity=MAX_RECORD_PIECES,
        max_length=MAX_TEXT_BYTES,
        nullable=True,
    )
    properties = {MEMORY_PROPERTY: info.to_json("memory")}
    with _unless_made(lambda: client.has_collection(name)):
        client.create_collection(name, schema=schema, properties=properties, consistency_level="Strong")


def load_memory(client: MilvusClient, name: str) -> None:
    """Make a memory searchable, even one whose creation was interrupted."""
    if not client.list_indexes(name):
        indexes = client.prepare_index_params()
        indexes.add_index(field_name=DENSE_FIELD, **DENSE_INDEX)
        # pymilvus would wait half a second for the index of an empty collection.
        with _unless_made(lambda: bool(client.list_indexes(name))):
            client.create_index(name, indexes, sync=False)
    client.load_collection(name)


def memory_info(embedder: str, dimension: int) -> CollectionInfo:
    """Return the information that a memory saves about its embedder."""
    return CollectionInfo(
        embedders={DENSE_FIELD: embedder}, dimensions={DENSE_FIELD: dimension}, analyzer="standard", cjk_share=0.0
    )


def is_memory(client: MilvusClient, name: str) -> bool:
    """Return whether a collection holds conversations instead of documents."""
    return MEMORY_PROPERTY in (client.describe_collection(name).get("properties") or {})


def read_memory_info(client: MilvusClient, name: str) -> CollectionInfo:
    """Return the saved information of an existing memory.

    Raises:
        CollectionError: The collection is not a memory, or has another format.
    """
    properties = client.describe_collection(name).get("properties") or {}
    info = CollectionInfo.from_json(str(properties.get(MEMORY_PROPERTY, "")), "memory", where=f"The memory {name!r}")
    if info is None:
        raise CollectionError(
            f"The collection {name!r} does not hold conversations of judgetree. Choose another name "
            "(JUDGETREE_CONVERSATION_COLLECTION)."
        )
    return info


def to_row(conversation_id: str, turn: QaPair, vector: Vector) -> Row:
    """Convert a turn to a row.

    Raises:
        CollectionError: An id or the timestamp is longer than ``MAX_ID_BYTES`` or cannot be stored, or the turn takes
            more than 4 MB as JSON in ASCII.
    """
    return {
        PK_FIELD: row_key(conversation_id, turn["turn_id"]),
        CONVERSATION_FIELD: conversation_id,
        DENSE_FIELD: np.asarray(vector, dtype=np.float32),
        **_place_of(turn),
        TIME_FIELD: checked_id(TIME_FIELD, turn["timestamp"]),
        MOMENT_FIELD: moment_us(turn["timestamp"]),
        "user_query": _cut(turn["query"]),
        "assistant_response": _cut(turn["answer"]),
        "context_docs": _fitting_list(turn["chunks"]),
        "token_count": turn["token_count"],
        RECORD_FIELD: _pieces(turn),
    }


def to_turn(row: Row) -> QaPair:
    """Convert a row to a turn; another program's row has only its columns, and its key as a missing id."""
    pieces = cast("list[str] | None", row.get(RECORD_FIELD))
    if pieces:
        return cast("QaPair", json.loads("".join(pieces)))
    turn = imported_turn(
        _text(row, "user_query"),
        _text(row, "assistant_response"),
        parent=None,
        turn_id=_text(row, TURN_FIELD) or _text(row, PK_FIELD),
        timestamp=_text(row, TIME_FIELD),
    )
    number = row.get(NUMBER_FIELD)
    turn["parent_turn_id"], turn["branch_id"] = _text(row, PARENT_FIELD), _text(row, BRANCH_FIELD)
    turn["turn_number"] = number if isinstance(number, int) else 1
    return turn


def linked(row: Row, turn: QaPair) -> Row:
    """Return a row of another program with the parent, branch and number of ``turn``."""
    return {**row, **_place_of(turn)}


def _place_of(turn: QaPair) -> Row:
    return {
        TURN_FIELD: checked_id(TURN_FIELD, turn["turn_id"]),
        PARENT_FIELD: checked_id(PARENT_FIELD, turn["parent_turn_id"]),
        BRANCH_FIELD: checked_id(BRANCH_FIELD, turn["branch_id"]),
        NUMBER_FIELD: turn["turn_number"],
    }


def moved(row: Row, conversation_id: str) -> Row:
    """Return a row as one of another conversation."""
    turn_id = to_turn(row)["turn_id"]
    return {
        **row,
        PK_FIELD: row_key(conversation_id, turn_id),
        CONVERSATION_FIELD: conversation_id,
        TURN_FIELD: turn_id,
    }


def in_conversation(conversation_id: str) -> str:
    """Return a filter for the rows of one conversation.

    Raises:
        CollectionError: The conversation's id is too long or cannot be stored.
    """
    return f"{CONVERSATION_FIELD} == {quoted(checked_id(CONVERSATION_FIELD, conversation_id))}"


def on_path(spans: PathSpans) -> str:
    """Return a filter for the turns on a non-empty path."""
    parts = (
        f"({BRANCH_FIELD} == {quoted(checked_id(BRANCH_FIELD, branch_id))} and {NUMBER_FIELD} <= {last:d})"
        for branch_id, last in spans.items()
    )
    return f"({' or '.join(parts)})"


def of_turns(turn_ids: Iterable[str]) -> str:
    """Return a filter for turns by id; a row without an id is found by its key."""
    ids = [checked_id(TURN_FIELD, turn_id) for turn_id in turn_ids]
    return f"({text_in(TURN_FIELD, ids)} or {text_in(PK_FIELD, ids)})"


def checked_id(field: str, text: str) -> str:
    """Return the text if it can be stored as an id.

    Raises:
        CollectionError: The text is too long, or contains NUL or a lone surrogate.
    """
    if not is_storable(text, max_bytes=MAX_ID_BYTES):
        raise CollectionError(
            f"{field}={text[:40]!r} cannot be stored. Allowed: at most {MAX_ID_BYTES} bytes of UTF-8, without NUL."
        )
    return text


@contextmanager
def _unless_made(is_there: Callable[[], bool]) -> Iterator[None]:
    """Tolerate a failure to create what another thread or process is creating, and wait until it exists."""
    try:
        yield
    except MilvusFailure:
        until = time.monotonic() + _MAKING_S
        while not is_there():
            if time.monotonic() > until:
                raise
            time.sleep(_LOOK_AGAIN_S)


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    return value if isinstance(value, str) else ""


def _pieces(turn: QaPair) -> list[str]:
    """Return the whole turn as JSON in pieces; in ASCII, so that characters are bytes and any text is storable."""
    text = json.dumps(turn)
    if len(text) > MAX_TEXT_BYTES * MAX_RECORD_PIECES:
        raise CollectionError(
            f"Turn {turn['turn_id']!r} is too long to be saved: {len(text)} bytes, allowed are "
            f"{MAX_TEXT_BYTES * MAX_RECORD_PIECES}. Shorten its question or its answer."
        )
    return [text[start : start + MAX_TEXT_BYTES] for start in range(0, len(text), MAX_TEXT_BYTES)]


def _cut(text: str) -> str:
    """Return as much of a text as a column takes."""
    return text.encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore").replace("\x00", "")


def _fitting_list(items: Iterable[Mapping[str, object]]) -> str:
    texts: list[str] = []
    size = 2
    for item in items:
        text = json.dumps(item)
        size += len(text) + 2
        if size > MAX_TEXT_BYTES:
            break
        texts.append(text)
    return f"[{', '.join(texts)}]"
