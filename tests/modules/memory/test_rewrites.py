"""A stand-alone question out of whatever a model writes around it."""

from __future__ import annotations

import pytest

from judgetree.modules.memory.rewrites import read_rewrite
from judgetree.modules.reader.prompts import REFUSAL
from tests.cpu_time import cpu_time_below

QUERY = "And its oil?"
OIL = "Which oil does class Delta need?"
ZH = "德尔塔级需要哪种油？"


def rewritten(reply: str, query: str = QUERY) -> str:
    return read_rewrite(reply, query, max_tokens=64).text


@pytest.mark.parametrize(
    "reply",
    [
        OIL,
        f"  {OIL}\n",
        f"Sure! Here is the rewritten question: {OIL}",
        f"Sure! Here is the rewritten question:\n\n{OIL}",
        f"Sure, here's the stand-alone question:\n\n> {OIL}\n\nLet me know if you need anything else!",
        f'Certainly! Here is the question, rewritten so that it stands alone:\n\n"{OIL}"',
        f"Of course.\n{OIL}",
        f"Rewritten question: {OIL}",
        f"**Standalone question:** {OIL}",
        f"New question: **{OIL}**",
        f"Question: {OIL}",
        f"Q: {OIL}",
        f"“{OIL}”",
        f"```\n{OIL}\n```",
        f'{{"question": "{OIL}"}}',
        f"1. {OIL}",
        f"{OIL}\n\nI replaced 'its' by class Delta.",
        f"{OIL} (I replaced 'its' by class Delta.)",
        f"{OIL}\nExplanation: the turn before asks about class Delta.\nIt does.",
        f"The user asks for the oil of KS-1, which is of class Delta.\n{OIL}",
    ],
)
def test_chatter_around_a_rewrite_is_cut_off(reply: str) -> None:
    assert rewritten(reply) == OIL


@pytest.mark.parametrize(
    "reply",
    [
        ZH,
        f"好的，以下是改写后的问题：{ZH}",
        f"当然可以！改写后的独立问题如下：\n\n“{ZH}”",
        f"改写后的问题：\n{ZH}\n\n说明：将“它”替换为“德尔塔级”。",
        f"独立问题：「{ZH}」",
        f"问题: {ZH}",
        f"{ZH}（已将“它”替换为德尔塔级）",
    ],
)
def test_chinese_chatter_is_cut_off(reply: str) -> None:
    assert rewritten(reply, "那它的油呢？") == ZH


@pytest.mark.parametrize(
    "question",
    [
        "In stand-alone mode: which fuse protects KV-133?",
        "Sure-Grip clamps: how hot may they become?",
        "What is the answer to question 4: 90 mm or 95 mm?",
        'What does "Rating F40" mean?',
        '"Rating F40" or "Rating F16"?',
        "Here is a hoist of KV-178; which brake has it?",
        "Which version: the old one or the new one?",
        "Name the oil of class Delta",
        "New Zealand: which oil is used there?",
        "Okay Industries makes which flange?",
        "Done deals of 1962",
        "问题单编号KS-1属于哪个等级？",
        "新型号KV-133的压力是多少？",
        "Which of (a) and (b) is green?",
        "Question 4 of the exam: which oil is right?",
    ],
)
def test_a_question_that_only_looks_like_chatter_is_left_alone(question: str) -> None:
    assert rewritten(question) == question


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty"),
        *((reply, "no question") for reply in ("Sure!", "ok", "OK.", "**Ok**", "Yes, sure", "Done", "none", "好的")),
        ('{"question": "ok"}', "no question"),
        ("Here is the rewritten question:", "no question"),
        (REFUSAL, "refused"),
        ("Which oil? " * 40, "longer than 64 tokens"),
        (f"{OIL}\nWhich oil does KS-1 need?", "2 lines"),
        ("KS-1 is of class Delta.\nIt needs Vellin.", "2 lines"),
    ],
)
def test_what_is_not_one_question_is_refused(reply: str, problem: str) -> None:
    found = read_rewrite(reply, QUERY, max_tokens=64)
    assert (found.text, problem in found.problem) == ("", True), found


def test_a_question_of_several_lines_may_be_rewritten_in_several() -> None:
    assert rewritten("Given the table\n1 2 3\nwhich oil?", "Given this\n1 2 3\nand its oil?").count("\n") == 2


def test_a_reply_that_was_cut_off_is_no_rewrite() -> None:
    assert read_rewrite("Which oil does", QUERY, max_tokens=64, cut_off=True).text == ""


@pytest.mark.parametrize(
    "reply",
    [
        "Which oil? " * 100_000,
        "Sure! " * 200_000,
        "{" * 1_000_000,
        "\n" * 1_000_000 + "?",
        "“" * 500_000,
        "好的，" * 300_000,
    ],
)
def test_a_megabyte_is_refused_within_milliseconds(reply: str) -> None:
    with cpu_time_below(0.05):
        found = read_rewrite(reply, QUERY, max_tokens=256)
    assert found.text == ""


@pytest.mark.parametrize("piece", ["(note ", "Sure! ", "Here is the ", "new ", "**", "“", "question ", "改写后的"])
def test_chatter_within_the_limit_takes_no_time(piece: str) -> None:
    with cpu_time_below(0.3):
        read_rewrite(piece * (3_000 // len(piece)), QUERY, max_tokens=256)
