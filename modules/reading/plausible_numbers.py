"""Readers of stored records that refuse numbers no record can hold, such as 10^30 tokens, NaN or true for a count."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator

MOST = 10**12
"""Greatest number of a record; sums of a million such numbers still fit into 64 bits, which tables and SQLite need."""
T = TypeVar("T")


class RecordReader(Generic[T]):
    """Reads JSON as a dataclass, and writes it.

    >>> RecordReader(list[int]).validate_json("[1, 2]")
    [1, 2]
    """

    def __init__(self, kind: type[T], *, least: int = 0) -> None:
        """Prepare reading.

        Args:
            kind: The dataclass or other type.
            least: Least whole number; other numbers may be as far below zero as above.
        """
        adapter = TypeAdapter(kind)
        self.dump_json = adapter.dump_json
        self._validator = plausible_validator(kind, least=least)

    def validate_json(self, text: bytes | str) -> T:
        """Read a JSON text.

        Raises:
            ValidationError: It is not JSON, has another shape, or holds a number that no record can hold.
        """
        return cast(T, self._validator.validate_json(text))


def plausible_validator(kind: type[object], *, least: int = -MOST) -> SchemaValidator:
    """Return a validator of a type in which numbers are as ``plausible`` says."""
    adapter: TypeAdapter[object] = TypeAdapter(kind)
    return SchemaValidator(cast(CoreSchema, plausible(adapter.core_schema, least=least)))


def plausible(schema: object, *, least: int = -MOST) -> object:
    """Return a pydantic schema whose whole numbers are ``least`` to ``MOST`` and the others finite and as small."""
    if isinstance(schema, list):
        return [plausible(part, least=least) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: plausible(part, least=least) for key, part in schema.items()}
    match parts.get("type"):
        case "int":
            return {"ge": least, "le": MOST, "strict": True} | parts
        case "float":
            return {"ge": -MOST, "le": MOST, "strict": True, "allow_inf_nan": False} | parts
    return parts
