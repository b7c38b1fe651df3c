"""Every fault is told with its place."""

from __future__ import annotations

from typing import Self

import pytest
from pydantic import BaseModel, ValidationError, model_validator

from judgetree.modules.errors import faults_of


class Span(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.last < self.first:
            raise ValueError("it ends before it begins")
        return self


class Text(BaseModel):
    spans: list[Span]


def faults(document: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Text.model_validate(document)
    return faults_of(caught.value, whole="text")


def test_each_fault_stands_behind_its_place_in_order() -> None:
    assert faults({"spans": [{"first": 1, "last": 2}, {"first": "one"}]}) == [
        "spans.1.first: Input should be a valid integer, unable to parse string as an integer",
        "spans.1.last: Field required",
    ]


def test_our_own_checks_speak_for_themselves() -> None:
    assert faults({"spans": [{"first": 2, "last": 1}]}) == ["spans.0: it ends before it begins"]


def test_fault_of_the_whole_is_named_as_the_caller_says() -> None:
    [fault] = faults([])
    assert fault.startswith("text: Input should be a valid dictionary")
