"""The rules for a sub-question: it can be asked on its own, and it is no copy of its parent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.judge.contract import sub_question_problem

QUERY = "Where was the director of Alien born?"


@pytest.mark.parametrize(
    "next_query",
    [
        "Where was Ridley Scott born?",
        "Who directed Alien?",
        "Where was the director of Aliens born?",
        "When was the passage of the Nineteenth Amendment?",
        "Who sailed through the Drake Passage first?",
        "Who signed the document known as the Petition of Right?",
        "Which library keeps the text of Beowulf?",
        "In which context was Linear B found?",
        "What did the inventor of the telephone call his device?",
        "Who is Herbert Hoover?",
        "雷德利·斯科特出生在哪里？",
        "日本文学的代表作是什么？",
        "中文中“龙”的部首是什么？",
        "历史上文明最早出现在哪里？",
        "企业应该文明经营是哪部法律规定的？",
    ],
)
def test_question_that_stands_alone_can_be_asked(next_query: str) -> None:
    assert sub_question_problem(next_query, QUERY) == ""


@pytest.mark.parametrize(
    "next_query",
    [
        "Who is the woman in this passage?",
        "Who is named in the passage?",
        "Which year does The Paragraph mean?",
        "What does that text leave open?",
        "Who wrote the above document?",
        "Who wrote this document?",
        "Who is named in the text?",
        "Where was he born?",
        "In which year did they marry?",
        "Who is her father?",
        "他出生在哪里？",
        "What else is in the given context?",
        "Who owns the company in the chunk?",
        "本文提到的导演出生在哪里？",
        "请问文中的导演是谁？",
        "这段话里的公司在哪里？",
        "该文的作者是谁？",
        "根据上文，他出生在哪里？",
    ],
)
def test_question_that_points_into_the_passage_cannot_be_asked(next_query: str) -> None:
    assert "points into the passage" in sub_question_problem(next_query, QUERY)


@given(st.sampled_from([str.lower, str.upper, str.title, str.strip, lambda text: f" {text}!? ", lambda text: text * 1]))
def test_question_that_repeats_the_query_cannot_be_asked(change: object) -> None:
    assert callable(change)
    assert "repeats" in sub_question_problem(change(QUERY), QUERY)


def test_question_that_repeats_a_chinese_query_cannot_be_asked() -> None:
    assert "repeats" in sub_question_problem("《异形》的导演出生在哪里", "《异形》的导演出生在哪里？")


@pytest.mark.parametrize("next_query", ["", " ", "\n\t", "\u3000"])
def test_question_that_is_empty_cannot_be_asked(next_query: str) -> None:
    assert "empty" in sub_question_problem(next_query, QUERY)
