"""Which settings name code, an address or a file, so that a ``.env`` that has them needs consent."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

INERT = "inert"
"""Marks a text in the settings that names neither code nor an address nor a file."""
_NAMELESS = (bool, int, float, SecretStr, NoneType)
_KNOWN_SERVICES = re.compile(r"(completion:)?((openai|dashscope):[\w.:/@-]+|local:)|local:minilm|local:use|auto|")
"""Values that name a known service or a part of judgetree itself, in any setting."""


def needs_consent(field: FieldInfo, value: str) -> bool:
    """Return whether a value in a ``.env`` needs consent.

    Every text does unless its field is marked ``INERT`` or the value is a known service, so that a new setting is on
    the safe side. Numbers, choices and keys name nothing.
    """
    return names_something(field) and not _KNOWN_SERVICES.fullmatch(value)


def names_something(field: FieldInfo) -> bool:
    """Return whether a field of the settings holds a text that may name code, an address or a file."""
    return INERT not in field.metadata and not _names_nothing(field.annotation)


def _names_nothing(kind: object) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return all(_names_nothing(each) for each in inner)
    if origin is Annotated:
        return _names_nothing(inner[0])
    return kind in _NAMELESS or origin is Literal
