"""Faults of requests in plain sentences: which field, which value, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from ....modules.errors import did_you_mean, reason_of
from ....modules.settings import without_secrets
from ....modules.storage.texts import printable

_MOST_NAMED = 3
_MOST_SHOWN = 60
_WHOLE = "a whole number"
_NUMBER = "a number"
_TEXT = "text"
_LIST = "a list"
_OBJECT = "an object"
_TRUTH = "true or false"
_FILE = "a file"
_ALLOWED: Mapping[str, str] = {
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "dict_type": _OBJECT,
    "finite_number": "a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_type": _WHOLE,
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": _LIST,
    "literal_error": "{expected}",
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_pattern_mismatch": "text that is not all spaces",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": _TEXT,
    "string_unicode": _TEXT,
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
}
"""What is allowed, by the kind of a fault; the names in it are of the fault's context."""


@dataclass(frozen=True, kw_only=True)
class RequestFault:
    """What is wrong with a request."""

    place: str
    """Field of the first fault, such as ``"messages.0.role"``."""
    words: str
    """A sentence for each field that is wrong, for the first few."""

    @classmethod
    def of(cls, faults: Sequence[Mapping[str, Any]], body: object = None, annotation: object = None) -> RequestFault:
        """Describe the faults that pydantic found.

        Args:
            faults: At least one. Their places start with where the field is, such as ``"query"`` or ``"body"``.
            body: The body of the request, which tells its fields from the branches of unions in places.
            annotation: The annotated type of the body, whose models name the fields that there are.
        """
        by_place: dict[str, list[Mapping[str, Any]]] = {}
        for fault in faults:
            by_place.setdefault(_place(fault, body), []).append(fault)
        inner = {place: found for place, found in by_place.items() if not _is_outer(place, by_place)}
        sentences = [_sentence(place, found, annotation) for place, found in list(inner.items())[:_MOST_NAMED]]
        return cls(place=next(iter(inner)), words=" ".join(sentences))


def _place(fault: Mapping[str, Any], body: object) -> str:
    where, *rest = fault["loc"]
    if where != "body":
        return ".".join(map(str, rest))
    parts, inside = [], body
    for number, part in enumerate(rest):
        is_field = isinstance(inside, Mapping) and part in inside
        is_item = isinstance(inside, list) and isinstance(part, int) and part < len(inside)
        is_absent = fault["type"] == "missing" and number == len(rest) - 1
        if is_field or is_item or is_absent:
            parts.append(str(part))
            inside = inside[part] if is_field or is_item else None  # type: ignore[index]
    return ".".join(parts)


def _is_outer(place: str, others: Mapping[str, object]) -> bool:
    """Return whether a union's other branch went further, and so says more."""
    return any(other.startswith(f"{place}.") for other in others)


def _sentence(place: str, faults: Sequence[Mapping[str, Any]], annotation: object) -> str:
    allowed = list(dict.fromkeys(_allowed(fault) for fault in faults if fault["type"] in _ALLOWED))
    if allowed:
        return f"{place}={_shown(faults[0]['input'])} is not allowed: give {' or '.join(allowed)}."
    match faults[0]["type"]:
        case "missing":
            return f"{place} is missing."
        case "value_error" if "UploadFile" in faults[0]["msg"]:
            return f"{place}={_shown(faults[0]['input'])} is not allowed: give a file, as a form sends it."
        case "extra_forbidden":
            *parents, name = place.split(".")
            fields = _fields(annotation, parents)
            return f"There is no field {printable(place)[:_MOST_SHOWN]}.{did_you_mean(name, fields)}{_listed(fields)}"
        case _:
            return f"{place}: {reason_of(faults[0]['msg'].removeprefix('Value error, '))}."


def _fields(annotation: object, place: Sequence[str]) -> list[str]:
    """Return the names of the fields that may be at a place of a value of an annotated type, or else none."""
    models = models_in(annotation)
    for part in place:
        if not part.isdigit():  # the items of a list have its models
            inner = [model.model_fields[part].annotation for model in models if part in model.model_fields]
            models = [model for each in inner for model in models_in(each)]
    return list(dict.fromkeys(name for model in models for name in model.model_fields))


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the models in an annotated type, such as that of ``X | None`` or of ``list[X]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in models_in(each)]


def _listed(fields: Sequence[str]) -> str:
    return f" Fields: {', '.join(fields)}." if fields else ""


def _allowed(fault: Mapping[str, Any]) -> str:
    words = _ALLOWED[fault["type"]].format_map(fault.get("ctx", {}))
    return words.removesuffix("s") if words.endswith((" 1 characters", " 1 items")) else words


def _shown(value: object) -> str:
    """Return a value as JSON, by its beginning.

    >>> _shown(True), _shown("x" * 100)[-4:], _shown([7]), _shown({})
    ('true', 'xx…"', '[…]', '{}')
    """
    match value:
        case str():
            cut = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…"
            return without_secrets(printable(json.dumps(printable(cut), ensure_ascii=False)))
        case bool() | int() | float() | None:
            return json.dumps(value)[:_MOST_SHOWN]
        case list():
            return "[…]" if value else "[]"
        case dict():
            return "{…}" if value else "{}"
        case _:
            return "…"
