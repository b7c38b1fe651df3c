"""The serialiser of all savers."""

from __future__ import annotations

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def serializer() -> JsonPlusSerializer:
    """Make the serialiser of all savers, which reads back plain data and LangChain documents only."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)
