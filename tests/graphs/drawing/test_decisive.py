"""The sentence of a passage that a picture shows."""

from __future__ import annotations

import pytest

from judgetree.graphs.drawing.decisive import decisive_sentence

FIRST = "The KS-1 is a compressor."
BUILT = "It was built in 1962 by Dorsan & Sons."
GASKET = 'Its gasket, made of "Viton", bears 212 °C.'


@pytest.mark.parametrize(
    ("query", "reason", "shown"),
    [
        ("How hot may the gasket get?", "", f"… {GASKET}"),
        ("What is the KS-1?", "", FIRST),
        ("How hot may the gasket get?", "It says “built in 1962 by Dorsan”.", f"… {BUILT}"),
        ("How hot may the gasket get?", "It says “a text that is not there”.", f"… {GASKET}"),
        ("Unrelated words entirely?", "", FIRST),
        ("", "", FIRST),
    ],
)
def test_a_quoted_sentence_is_shown_or_the_one_nearest_to_the_query(query: str, reason: str, shown: str) -> None:
    assert decisive_sentence(f"{FIRST} {BUILT}\n\n{GASKET}", query=query, reason=reason) == shown


def test_chinese_sentences_are_compared_by_pairs_of_characters() -> None:
    text = "压缩机很大。合成油的温度是二百度！其他的事。"
    assert decisive_sentence(text, query="合成油多少度？") == "… 合成油的温度是二百度！"
    assert decisive_sentence(text, query="谁？", reason="原文「其他的事没有人知道吗」与「其他的事」") == "压缩机很大。"


@pytest.mark.parametrize("text", ["", " \n ", "\x00"])
def test_an_empty_passage_has_no_sentence(text: str) -> None:
    assert decisive_sentence(text, query="Who?").strip("�␀") == ""


def test_a_passage_of_any_length_takes_linear_time() -> None:
    assert decisive_sentence("a. " * 100_000 + '"' * 100_000, query="a b", reason='"' * 10_000).startswith("a.")
