"""The scripted model passage by passage: it tells of a passage what stands there, and combines what it was told."""

from __future__ import annotations

import asyncio

import pytest

from judgetree.app.scripted.answers import ScriptedAnswers, evidence_reply, parse_prompt
from judgetree.app.scripted.strategies import strategy_scripts
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.prompts import DEFAULT_PROMPTS
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.config.reading import AnswerStrategy
from judgetree.modules.reader.prompts import (
    REFUSAL,
    note_messages,
    parse_note,
    parse_scored,
    refine_messages,
    scored_messages,
)
from judgetree.modules.reader.strategies import read_evidence
from tests.app.conftest import CHAIN, CHINESE, SUB_QUESTION
from tests.graphs.fakes import FakeLLM

ANSWERS = ScriptedAnswers([CHAIN, CHINESE])
NAMED, THICK = (fact.quote for fact in CHAIN.supporting)
NOISE = "Ladders are painted grey."
RESOLVED = f"{NAMED}\nSupplementary question: {SUB_QUESTION}\nAnswer: 40 mm"


def reply(messages: list[Message]) -> str:
    answered = evidence_reply(strategy_scripts(DEFAULT_PROMPTS), ANSWERS, messages)
    return (answered or ANSWERS.reply(parse_prompt(messages))).text


def read(strategy: AnswerStrategy, query: str, *passages: str) -> str:
    llm = FakeLLM(lambda messages: reply(list(messages)))
    context = "\n\n".join(passages)
    meter = CallMeter(node="generate")
    return asyncio.run(read_evidence(strategy, llm, query, context, passages, meter=meter)).text


@pytest.mark.parametrize("strategy", ["stuff", "map_reduce", "refine"])
@pytest.mark.parametrize("passages", [(NAMED, NOISE, THICK), (THICK, NAMED), (NOISE, RESOLVED)])
def test_two_steps_are_combined(strategy: AnswerStrategy, passages: tuple[str, ...]) -> None:
    assert read(strategy, CHAIN.question, *passages) == "40 mm"


def test_two_steps_are_too_many_for_one_passage_alone() -> None:
    assert read("map_rerank", CHAIN.question, NAMED, NOISE, THICK) == REFUSAL
    assert read("map_rerank", CHAIN.question, NOISE, RESOLVED) == "40 mm"


@pytest.mark.parametrize("strategy", ["stuff", "map_reduce", "refine", "map_rerank"])
def test_one_step_is_answered_and_nothing_more(strategy: AnswerStrategy) -> None:
    assert read(strategy, CHINESE.question, NOISE, CHINESE.supporting[0].quote) == CHINESE.answer
    assert read(strategy, CHAIN.question, NOISE, NAMED) == REFUSAL
    assert read(strategy, "Who painted the ladders?", NOISE, NAMED) == REFUSAL


def test_of_a_passage_it_tells_the_fact_that_stands_there() -> None:
    note = parse_note(reply(note_messages(CHAIN.question, NAMED)))
    assert (note and note.answers, note and note.text) == (False, "Which vessel does Norm A name? the drum")
    assert parse_scored(reply(scored_messages(CHAIN.question, RESOLVED))).confidence > 50
    assert parse_scored(reply(scored_messages(CHAIN.question, NAMED))).text == REFUSAL
    assert reply(refine_messages(CHAIN.question, "", NOISE)) == REFUSAL
