"""JSON documents that say what they are: written so that they can be read back, and checked when they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ...modules.errors import LoadingError
from ...modules.formats import FORMAT_KEY, Thing, refuse_other_format

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


def check_document(document: object, kind: type[Document], *, what: str, thing: Thing, again: str) -> Document:
    """The document as what it says it is.

    Args:
        document: As JSON gives it.
        kind: Its fields.
        what: What it should be, in words.
        thing: What its ``format`` must name.
        again: What to do where the format is another.

    Raises:
        LoadingError: It is something else, of another format, or damaged.
    """
    if not isinstance(document, dict):
        raise LoadingError(f"This is not a {what}: the JSON holds no object.")
    refuse_other_format(
        document.get(FORMAT_KEY),
        thing,
        where=f"This {what}",
        remedy=f"Read it with the judgetree that wrote it, or {again}.",
    )
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise LoadingError(
            f"This {what} is damaged at {place}: {fault['msg']} ({error.error_count()} faults in all)."
        ) from error
