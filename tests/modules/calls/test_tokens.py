"""The estimate of tokens against a real tokenizer, and texts that are cut by it."""

from __future__ import annotations

import base64
import random
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.tokens import CUT_MARK, beginning, is_longer, message_tokens, shortened, text_tokens
from tests.cpu_time import cpu_time_below

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "data" / "standards"
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@cache
def qwen() -> tiktoken.Encoding:
    """Qwen's vocabulary, which DashScope's client brings along."""
    lines = (files("dashscope") / "resources" / "qwen.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    return tiktoken.Encoding("qwen", pat_str=QWEN_PATTERN, mergeable_ranks=ranks, special_tokens={})


def documents(language: str) -> str:
    return "\n".join(path.read_text() for path in sorted((CORPUS / language).rglob("*.md")))


def numbers() -> str:
    drawn = random.Random(1)
    return "\n".join("| " + " | ".join(f"{drawn.random() * 100:.2f}" for _ in range(6)) + " |" for _ in range(100))


@pytest.mark.parametrize(
    "text",
    [
        documents("en"),
        documents("zh"),
        (ROOT / "data" / "standards_qa.jsonl").read_text()[:30_000],
        Path(__file__).read_text(),
        numbers(),
        "日本語の文章を扱うとき、ひらがなとカタカナと漢字が混ざります。" * 20,
        "Съешь ещё этих мягких французских булок, да выпей чаю. " * 20,
    ],
    ids=["english", "chinese", "json", "code", "numbers", "japanese", "russian"],
)
def test_estimate_is_near_that_of_a_real_tokenizer(text: str) -> None:
    real = len(qwen().encode(text, disallowed_special=()))
    assert 0.8 <= text_tokens(text) / real <= 1.45


def test_messages_cost_something_themselves() -> None:
    assert message_tokens([]) == 0
    assert text_tokens("") == 0
    assert message_tokens([("user", "汉字"), ("assistant", "")]) == text_tokens("汉字") + 8


@given(st.text(max_size=300), st.integers(-1, 120))
def test_a_cut_text_fits_and_one_that_fits_is_not_cut(text: str, max_tokens: int) -> None:
    assert is_longer(text, max_tokens) == (text_tokens(text) > max_tokens)
    for cut in (shortened(text, max_tokens), beginning(text, max_tokens)):
        assert text_tokens(cut) <= max(max_tokens, 0)
        assert cut == text or is_longer(text, max_tokens)


def test_a_cut_text_keeps_both_ends_or_whole_sentences() -> None:
    text = f"First of all. {'middle ' * 500}At last."
    assert shortened(text, 40).startswith("First of all. middle")
    assert shortened(text, 40).endswith("At last.")
    assert CUT_MARK in shortened(text, 40)
    assert beginning("One is here. Two is there. Three is far away.", 8) == "One is here. Two is there."
    assert beginning("压力为三巴。温度为九十度。其余不详。", 9) == "压力为三巴。"


@pytest.mark.parametrize("cut", [shortened, beginning])
def test_a_megabyte_costs_milliseconds(cut: object) -> None:
    huge = "压力 and words 12, " * 60_000
    assert callable(cut)
    with cpu_time_below(0.1):
        assert cut(huge, 256)
