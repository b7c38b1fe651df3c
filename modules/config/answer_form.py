"""How the answer of a question is written: instructions, length, stop texts, seed and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from ..digests import text_digest

MAX_INSTRUCTIONS = 20_000
"""Most characters of instructions."""
_MOST_SHOWN = 300
_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class AnswerForm(BaseModel):
    """How the model that answers writes the answer; frozen.

    >>> AnswerForm(max_tokens=50, stop=(".",)).options
    ('max_tokens', 'stop')
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_INSTRUCTIONS)] = ""
    """What the answer is to be like; the rules of the reader's prompt stand above it."""
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Most tokens of the answer, its thinking included."""
    stop: tuple[_Text, ...] = Field(default=(), max_length=16)
    """Texts at which the answer ends."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    """Seed of the sampling."""
    json_format: Literal["json_object", "json_schema"] | None = None
    """Whether the answer is a JSON object, of any form or of ``json_schema``; None for text."""
    json_schema: Mapping[str, JsonValue] | None = None
    """The schema of ``json_format="json_schema"``."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: Any) -> Any:
        """Read the YAML of a command line."""
        if not isinstance(given, str):
            return given
        from ..reading.yaml_files import parse_value

        return parse_value(given)

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if (self.json_format == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_format='json_schema', and no other, needs json_schema")
        if number := next(_too_long_integers(self.json_schema), None):
            raise ValueError(f"json_schema holds {number!r:.40}; integers of a schema have at most 64 bits")
        return self

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of calls that are given."""
        return tuple(name for name in ("max_tokens", "stop", "seed", "json_format") if getattr(self, name))

    @property
    def needs_reader(self) -> bool:
        """Whether a text that is there already, such as an answer of an earlier turn, would not have this form."""
        return bool(self.instructions or self.max_tokens or self.stop or self.json_format)

    def __str__(self) -> str:
        """Return what is given as JSON, a long one by its beginning and a digest."""
        text = json.dumps(self.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, sort_keys=True)
        if len(text) <= _MOST_SHOWN:
            return text
        return f"{text[:_MOST_SHOWN]}… {text_digest(text).hex()[:16]}"


def _too_long_integers(value: object) -> Iterator[int]:
    """Yield the integers that checkpoints cannot keep."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each
        elif isinstance(each, int) and not -(2**63) <= each < 2**64:
            yield each


USUAL_FORM = AnswerForm()
"""As the reader's prompt says."""
