"""JSON documents that say what they are: written so that they can be read back, and checked when they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ..modules.errors import LoadingError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
Document = TypeVar("Document", bound=BaseModel)


def write_document(document: Mapping[str, object], *, indent: int | None) -> str:
    """The document as JSON; Chinese stays readable.

    Raises:
        ValueError: A number in it is not finite, which JSON cannot say.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_json(text: str, *, what: str) -> object:
    """What stands in the text.

    Raises:
        LoadingError: It is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise LoadingError(f"This is not a {what}: no JSON ({error}).") from error


def check_document(
    document: object, kind: type[Document], *, what: str, format_name: str, version: int, again: str
) -> Document:
    """The document as what it says it is.

    Args:
        document: As JSON gives it.
        kind: Its fields.
        what: What it should be, in words.
        format_name: What it must have as ``format``.
        version: What it must have as ``schema_version``.
        again: What to do where the version is another.

    Raises:
        LoadingError: It is something else, of another version, or damaged.
    """
    if not isinstance(document, dict) or document.get("format") != format_name:
        raise LoadingError(f'This is not a {what}: the JSON has no "format": "{format_name}".')
    if document.get("schema_version") != version:
        given = document.get("schema_version")
        raise LoadingError(
            f"This {what} has schema_version {given!r}; this judgetree reads {version}. "
            f"Read it with the judgetree that wrote it, or {again}."
        )
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise LoadingError(
            f"This {what} is damaged at {place}: {fault['msg']} ({error.error_count()} faults in all)."
        ) from error
