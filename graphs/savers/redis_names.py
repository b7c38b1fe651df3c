"""Names of keys, places and values in Redis, which ``redis_scripts`` explains."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...modules.storage.redis import key
from .redis_scripts import THREAD_KINDS

ALL, NAMES = key("saved"), key("names")
Place = str


def keys_of(thread_id: str) -> list[bytes]:
    """Return the keys that a thread has once, and those of the store, in the order that scripts expect."""
    return [*(key(kind, thread_id) for kind in THREAD_KINDS), ALL, NAMES]


def encoded(text: str) -> bytes:
    """Return a text as bytes, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """Return the text that ``encoded`` made bytes of."""
    return data.decode("utf-8", "surrogatepass")


def place_of(namespace: str, checkpoint_id: str) -> Place:
    """Return the place of a checkpoint."""
    return json.dumps([namespace, checkpoint_id])


def name_of(namespace: str, channel: str, version: object) -> str:
    """Return the name of a channel's value."""
    return json.dumps([namespace, channel, version])


def namespace_in(place: Place) -> str:
    """Return the namespace of a place."""
    return str(json.loads(place)[0])


def id_in(place: Place | bytes) -> str:
    """Return the checkpoint id of a place."""
    return str(json.loads(place)[1])


def bound_below(number: float) -> str:
    """Return the bound of numbers that are smaller."""
    return f"({number:.0f}"


def row_of(parent: str | None, metadata: str, names: Sequence[str], packed: bytes) -> bytes:
    """Return the row of a checkpoint: its head, as a line of JSON, and the packed rest."""
    return json.dumps([parent, metadata, names]).encode() + b"\n" + packed
