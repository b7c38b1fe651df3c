"""Digests that stand in saved ids and keys: they stay what they are."""

from __future__ import annotations

import pytest

from judgetree.modules.digests import canonical_json, json_digest, text_digest
from judgetree.modules.index.chunking import chunk_id


@pytest.mark.parametrize(
    ("digest", "beginning"),
    [
        (text_digest(""), "e3b0c442"),
        (text_digest("abc"), "ba7816bf"),
        (text_digest("a", "b"), "59b271ae"),
        (text_digest("\ud800"), "91a681b9"),
        (json_digest({"b": [1, "é"], "a": None}), "1c3d52eb"),
        (bytes.fromhex(chunk_id("a.md", "Ada", 0)), "8b05a368"),
    ],
)
def test_a_digest_that_is_saved_never_changes(digest: bytes, beginning: str) -> None:
    assert digest.hex().startswith(beginning)


def test_a_value_has_one_text_whatever_the_order_of_its_parts() -> None:
    assert canonical_json({"b": {2, 1}, "a": (1,)}) == canonical_json({"a": [1], "b": {1, 2}})
