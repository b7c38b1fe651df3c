"""Refusals as models of different makes write them, and answers that only look like refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.modules.reader.prompts import REFUSAL
from judgetree.modules.reader.refusals import is_refusal
from tests.cpu_time import cpu_time_below

REPLIES: dict[str, list[str]] = json.loads(Path(__file__).with_name("refusals.json").read_text(encoding="utf-8"))
DATA = Path(__file__).parents[3] / "data"


def test_there_are_at_least_two_hundred_different_ones_of_each() -> None:
    assert min(len(set(REPLIES[kind])) for kind in ("refusals", "answers")) >= 200


@pytest.mark.parametrize("reply", REPLIES["refusals"])
def test_refusal_is_recognised(reply: str) -> None:
    assert is_refusal(reply)


@pytest.mark.parametrize("reply", REPLIES["answers"])
def test_answer_that_looks_like_a_refusal_is_none(reply: str) -> None:
    assert not is_refusal(reply)


@pytest.mark.parametrize(
    "reply", ["", "  \n", "“”", REFUSAL, f"**{REFUSAL}**", REFUSAL.upper(), REFUSAL.replace("'", "’")]
)
def test_nothing_and_the_refusal_that_prompts_ask_for_are_refusals(reply: str) -> None:
    assert is_refusal(reply)


def test_reply_of_other_words_is_read_alike() -> None:
    """None of these stands in the file above."""
    refusals = [
        "The provided evidence does not contain sufficient information to answer the question.",
        "I'm sorry, but there isn't any information regarding this in the documents provided.",
        "None of the evidence is relevant to the question.",
        "Based on the passages provided, I do not know the answer.",
        "The passages are unrelated to the question, so I cannot answer.",
        "根据现有资料，无法判断。",
        "我没有足够的信息来回答。",
    ]
    answers = [
        "The Man Without Information",
        "The answer is 42; the evidence gives no unit.",
        "It is likely Dorsan, but the evidence does not say so.",
        "The book was not published until 1950.",
        "They were unable to find a buyer.",
        "不明飞行物",
    ]
    assert [is_refusal(reply) for reply in (*refusals, *answers)] == [True] * 7 + [False] * 6


def test_no_gold_answer_of_the_example_data_is_a_refusal() -> None:
    rows = [json.loads(line) for line in (DATA / "standards_qa.jsonl").read_text(encoding="utf-8").splitlines()]
    gold = [answer for row in rows for answer in (row["answer"], *row["aliases"]) if answer]
    assert len(gold) > 60
    assert [answer for answer in gold if is_refusal(answer)] == []


@pytest.mark.parametrize(
    "piece",
    [
        "in data ",
        "as a, ",
        "the ",
        "because x, ",
        "not ",
        "no information ",
        "it is not ",
        "sorry, ",
        "无法",
        "根据",
        "x ",
    ],
)
def test_no_reply_takes_long(piece: str) -> None:
    with cpu_time_below(0.1):
        is_refusal(piece * 100_000)
