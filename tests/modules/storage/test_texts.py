"""Texts that every store can keep."""

from __future__ import annotations

import pytest

from judgetree.modules.errors import SettingsError
from judgetree.modules.storage.texts import check_id, check_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab\x00", r"Name cannot be stored: character 3 of 'ab\\x00' is '\\x00'\. Allowed: .* without NUL"),
        ("\ud83d", r"character 1 of '\\ud83d' is '\\ud83d'\..*Take that character out"),
        ("汉" * 342, "Name '汉+'… is too long: 1026 bytes as UTF-8, allowed are 1024"),
        (None, r"Name is None\. Allowed: text"),
    ],
)
def test_a_text_that_cannot_be_kept_is_refused_with_the_place_of_its_fault(text: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_id("Name", text)


def test_any_other_text_is_taken() -> None:
    check_id("Name", "汉" * 341)
    check_text("Text", "\U0001f408 " * 10_000)
