"""Prompts that read passage by passage: the reader's rules hold, and any reply can be read."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reader.prompts import (
    COMBINE_SYSTEM,
    FINISH_SYSTEM,
    NO_CONFIDENCE,
    NOTE_SYSTEM,
    READER_SYSTEM,
    REFINE_SYSTEM,
    REFUSAL,
    SCORED_SYSTEM,
    STRATEGY_VERSIONS,
    combine_messages,
    finish_messages,
    note_messages,
    parse_note,
    parse_scored,
    refine_messages,
    scored_messages,
)
from judgetree.modules.reader.refusals import is_refusal
from judgetree.modules.reader.strategies import AnswerStrategy

SHORT = "as short as possible: a name, a number with its unit, a date, yes or no; no explanation"


def squashed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("system", [READER_SYSTEM, NOTE_SYSTEM, COMBINE_SYSTEM, FINISH_SYSTEM, SCORED_SYSTEM])
def test_every_answer_is_as_short_as_the_readers(system: str) -> None:
    assert SHORT in squashed(system)


@pytest.mark.parametrize("system", [NOTE_SYSTEM, COMBINE_SYSTEM, REFINE_SYSTEM, FINISH_SYSTEM, SCORED_SYSTEM])
def test_every_prompt_names_the_refusal_and_the_language(system: str) -> None:
    assert REFUSAL in system
    assert "in the language of the question" in squashed(system)


def test_every_strategy_with_prompts_of_its_own_has_a_version_of_its_own() -> None:
    assert {"stuff", *STRATEGY_VERSIONS} == set(get_args(AnswerStrategy))
    assert len(set(STRATEGY_VERSIONS.values())) == len(STRATEGY_VERSIONS)


def test_braces_in_question_and_passage_stand_as_they_are() -> None:
    query, passage = "What is {x}?", "{y} \\1"
    for messages in (
        note_messages(query, passage),
        combine_messages(query, [passage]),
        refine_messages(query, passage, passage),
        finish_messages(query, passage, passage),
        scored_messages(query, passage),
    ):
        assert query in messages[1][1]
        assert passage in messages[1][1]


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("Answer: 40 mm", "Answer: 40 mm"),
        ("**Answer:** 40 mm", "Answer: 40 mm"),
        ("- answer：四十毫米", "Answer: 四十毫米"),
        ("答案：四十毫米", "Answer: 四十毫米"),
        ("Answer: -5 °C\nThe passage says so.", "Answer: -5 °C"),
        ("Answer:\n40 mm", "Answer: 40 mm"),
        ("Fact: Norm A names\nthe drum.", "Fact: Norm A names the drum."),
        ("Norm A names the drum.", "Fact: Norm A names the drum."),
        ("Let me see.\nFact: A.\nAnswer: 40 mm", "Answer: 40 mm"),
        (f"Answer: {REFUSAL}\nFact: A.", "Fact: A."),
        (f"Answer: {REFUSAL}\nIt is not said.", None),
        (f"{REFUSAL} The passage is about ladders.", None),
        ("我无法回答这个问题。", None),
        ("Fact:", None),
        ("", None),
    ],
)
def test_notes_are_read_tolerantly(reply: str, note: str | None) -> None:
    found = parse_note(reply)
    assert (None if found is None else str(found)) == note


@pytest.mark.parametrize(
    ("reply", "answer", "confidence"),
    [
        ("Answer: 40 mm\nConfidence: 85", "40 mm", 85),
        ("**Answer:** 40 mm\n**Confidence:** 85%", "40 mm", 85),
        ("Answer: 40 mm\nConfidence: 85/100", "40 mm", 85),
        ("Confidence: 85\nAnswer: 40 mm", "40 mm", 85),
        ("40 mm (confidence: 85)", "40 mm", 85),
        ("答案：四十毫米\n置信度：85。", "四十毫米", 85),
        ("Answer: 40 mm\nConfidence: 0.85", "40 mm", 85),
        ("Answer: 40 mm\nConfidence: 1.0", "40 mm", 100),
        ("Answer: 40 mm\nConfidence: 1", "40 mm", 1),
        ("Answer: 40 mm\nConfidence: 900", "40 mm", 100),
        ("Answer: 40 mm\nConfidence: high", "40 mm", NO_CONFIDENCE),
        ("40 mm", "40 mm", NO_CONFIDENCE),
        ("Confidence: 85", "", 85),
        ("", "", NO_CONFIDENCE),
    ],
)
def test_scored_answers_are_read_tolerantly(reply: str, answer: str, confidence: float) -> None:
    found = parse_scored(reply)
    assert (found.text, found.confidence) == (answer, confidence)


pieces = st.sampled_from(["Answer:", "Fact:", "Confidence:", "答案：", "\n", "**", "90", "0.5", "%", "x", REFUSAL, " "])


@given(st.lists(pieces).map("".join) | st.text())
def test_no_reply_breaks_a_parser(reply: str) -> None:
    note = parse_note(reply)
    assert note is None or not is_refusal(note.text)
    assert parse_scored(reply).confidence == NO_CONFIDENCE or 0 <= parse_scored(reply).confidence <= 100
