"""The scripted model in rounds: each reply says what the evidence leaves open, and the answer once nothing is left."""

from __future__ import annotations

import pytest

from judgetree.app.scripted.answers import ScriptedAnswers, evidence_reply
from judgetree.app.scripted.multistep import NOTHING_KNOWN, step_scripts
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.prompts import DEFAULT_PROMPTS
from judgetree.modules.reader.multistep_prompts import (
    FINAL_ANSWER,
    FINAL_THOUGHT,
    FINISH,
    Observed,
    draft_messages,
    follow_up_messages,
    parse_action,
    parse_follow_up,
    parse_thought,
    react_messages,
    thought_messages,
)
from judgetree.modules.reader.prompts import REFUSAL
from tests.app.conftest import CHAIN, SUB_QUESTION

ANSWERS = ScriptedAnswers([CHAIN])
NAMED, THICK = (fact.quote for fact in CHAIN.supporting)
FIRST_QUESTION = CHAIN.supporting[0].question


def reply(messages: list[Message]) -> str:
    answered = evidence_reply(step_scripts(DEFAULT_PROMPTS), ANSWERS, messages)
    assert answered is not None
    return answered.text


@pytest.mark.parametrize(
    ("evidence", "said"),
    [("", NOTHING_KNOWN), (NAMED, SUB_QUESTION), (f"{NAMED}\n\n{THICK}", f"{FINAL_THOUGHT} 40 mm.")],
)
@pytest.mark.parametrize("thoughts", [[], ["Question: none\n\nSentences so far:"]])
def test_a_sentence_asks_for_what_is_missing(evidence: str, said: str, thoughts: list[str]) -> None:
    assert reply(thought_messages(CHAIN.question, evidence, thoughts)) == said
    assert parse_thought(said).text == said


@pytest.mark.parametrize(
    ("evidence", "said"), [("", NOTHING_KNOWN), (NAMED, SUB_QUESTION), (f"{NAMED} {THICK}", f"{CHAIN.question} 40 mm.")]
)
def test_a_draft_asks_for_what_is_missing(evidence: str, said: str) -> None:
    assert reply(draft_messages(CHAIN.question, evidence)) == said


@pytest.mark.parametrize(
    ("answered", "asked"),
    [
        ([], FIRST_QUESTION),
        ([(FIRST_QUESTION, "the drum")], SUB_QUESTION),
        ([(FIRST_QUESTION, REFUSAL)], FIRST_QUESTION),
        ([(FIRST_QUESTION, "the drum"), (SUB_QUESTION, "40 mm")], ""),
    ],
)
def test_a_follow_up_asks_for_the_first_fact_that_is_not_answered(answered: list[tuple[str, str]], asked: str) -> None:
    assert parse_follow_up(reply(follow_up_messages(CHAIN.question, answered))) == asked


def observed(*passages: str) -> list[Observed]:
    """The question's search, then one for each fact, with what they found."""
    queries = [CHAIN.question, *(fact.question for fact in CHAIN.supporting)]
    return [
        Observed(query=query, passages=found, thought="More is needed." if number else "")
        for number, (query, found) in enumerate(zip(queries, passages, strict=False))
    ]


@pytest.mark.parametrize(
    ("passages", "query"),
    [
        (("",), FIRST_QUESTION),
        ((NAMED,), SUB_QUESTION),
        ((THICK,), FIRST_QUESTION),
        (("noise", NAMED), SUB_QUESTION),
        (("noise", NAMED, "40 mm is the height of the drum."), SUB_QUESTION),
    ],
)
def test_an_agent_searches_for_the_first_fact_that_it_has_not_observed(passages: tuple[str, ...], query: str) -> None:
    assert parse_action(reply(react_messages(CHAIN.question, observed(*passages)))).query == query


@pytest.mark.parametrize("passages", [(f"{NAMED}\n\n{THICK}",), (NAMED, "noise", THICK)])
def test_an_agent_finishes_with_the_answer_once_it_has_observed_every_fact(passages: tuple[str, ...]) -> None:
    assert reply(react_messages(CHAIN.question, observed(*passages))).endswith(f"\n{FINISH}[40 mm]")


def test_of_a_question_that_it_does_not_know_it_says_nothing() -> None:
    assert reply(thought_messages("Who?", NAMED, [])) == NOTHING_KNOWN
    assert reply(follow_up_messages("Who?", [])) == f"{FINAL_ANSWER} {REFUSAL}"
    assert reply(react_messages("Who?", [Observed(query="Who?", passages=NAMED)])).endswith(f"{FINISH}[{REFUSAL}]")
