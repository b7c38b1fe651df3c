"""The judge that reads the probability of yes: words, thresholds, sub-questions, endpoints without any."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion, TokenLogprob
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.judge.asker import question_in
from judgetree.modules.judge.contract import Judge, Verdict
from judgetree.modules.judge.logprob import TOP_LOGPROBS, LogprobJudge, yes_probability
from judgetree.modules.judge.prompts import (
    LOGPROB_JUDGE_VERSION,
    alone_messages,
    look_up_messages,
    needed_messages,
    sub_question_messages,
)
from judgetree.modules.judge.thresholds import LogprobThresholds
from judgetree.modules.reader.evidence import as_material
from tests.modules.model_endpoints import as_new, llm_at
from tests.modules.reader.test_prompts import common_start

QUERY = "Where was the director of Alien born?"
PASSAGE = "Alien was directed by Ridley Scott."
CHUNK = Document(page_content=PASSAGE)
NAME = "Ridley Scott"
NEXT = "Where was Ridley Scott born?"

NEEDED = needed_messages(QUERY, PASSAGE)
ALONE = alone_messages(QUERY, PASSAGE)
SUB_QUESTION = sub_question_messages(QUERY, PASSAGE)
LOOK_UP = look_up_messages(QUERY, PASSAGE)

T1, T2 = 0.6, 0.8
BOTH = LogprobThresholds(needed=T1, alone=T2)


def p_yes(probability: float) -> Completion:
    """A reply whose first token is yes with this probability, no otherwise."""
    tokens = ((" Yes", probability), ("no", 1.0 - probability))
    alternatives = tuple(TokenLogprob(token=word, logprob=math.log(p)) for word, p in tokens if p > 0.0)
    return Completion(text="yes", thinking="", finish_reason="length", first_token=alternatives)


def wrote(text: str) -> Completion:
    return Completion(text=text, thinking="", finish_reason="stop")


NEITHER = Completion(
    text="Maybe", thinking="", finish_reason="length", first_token=(TokenLogprob(token="Maybe", logprob=-0.1),)
)
Reply = Completion | Exception
FAILED = ModelCallError("the endpoint timed out")


class FakeLLM:
    """Gives the reply that stands for the messages, or the next of several; an exception is raised."""

    model = "fake"

    def __init__(self, replies: Sequence[tuple[Sequence[Message], Reply | Sequence[Reply]]]) -> None:
        self._left = {
            tuple(messages): list(reply if isinstance(reply, Sequence) else [reply]) for messages, reply in replies
        }
        self.asked: list[tuple[Message, ...]] = []
        self.limits: list[tuple[int | None, int | None]] = []

    async def complete(
        self, messages: Sequence[Message], *, meter: CallMeter, options: CallOptions = PLAIN_TEXT, **_: Any
    ) -> Completion:
        meter.reserve()
        self.asked.append(tuple(messages))
        self.limits.append((options.max_tokens, options.top_logprobs))
        await asyncio.sleep(0)
        replies = self._left[tuple(messages)]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


NO_NAME = wrote("none")


def script(
    needed: Reply | Sequence[Reply] = (),
    alone: Reply | Sequence[Reply] = (),
    sub_question: Reply | Sequence[Reply] = (),
    look_up: Reply | Sequence[Reply] = NO_NAME,
) -> FakeLLM:
    """A model with replies for the questions about the one chunk; a question without one is an error of the test."""
    replies = [(NEEDED, needed), (ALONE, alone), (SUB_QUESTION, sub_question), (LOOK_UP, look_up)]
    return FakeLLM([(messages, reply) for messages, reply in replies if reply != ()])


def verdict_of(judge: Judge, meter: CallMeter | None = None, *, expand: bool = True) -> Verdict:
    meter = meter or CallMeter(node="judge")
    return background_loop().run(judge.judge(QUERY, CHUNK, meter=meter, expand=expand))


class FixedJudge:
    """A fallback that always says the same and counts how often it is asked."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self.expanded: list[bool] = []

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "fixed", "model": "other"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        self.expanded.append(expand)
        return self._verdict


# --- yes against no ---


def alternatives(*pairs: tuple[str, float]) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(token=token, logprob=math.log(p)) for token, p in pairs)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([("yes", 0.6), ("no", 0.2)], 0.75),
        ([("yes", 0.3), ("Yes", 0.2), (" YES", 0.1), ("No", 0.2)], 0.75),
        ([("Yes.", 0.5), ("**No**", 0.5)], 0.5),
        ([("是", 0.3), ("否", 0.1)], 0.75),
        ([("yes", 0.2), ("是", 0.1), ("不", 0.1)], 0.75),
        ([("yes", 0.5), ("maybe", 0.4)], 1.0),
        ([("Nothing", 0.5), ("no", 0.01)], 0.0),
    ],
)
def test_spellings_are_summed(tokens: list[tuple[str, float]], expected: float) -> None:
    assert yes_probability(alternatives(*tokens)) == pytest.approx(expected)


@pytest.mark.parametrize("tokens", [[], [("Maybe", 0.9)], [("yesterday", 0.5), ("not", 0.3), ("Yesno", 0.1)]])
def test_probability_is_none_when_neither_word_is_there(tokens: list[tuple[str, float]]) -> None:
    assert yes_probability(alternatives(*tokens)) is None


probabilities = st.floats(min_value=1e-9, max_value=1.0)
words = st.sampled_from(["yes", "Yes", " yes", "是", "no", "No", " NO", "否", "maybe", "The"])


@given(st.lists(st.tuples(words, probabilities), max_size=8), st.randoms(use_true_random=False))
def test_probability_is_within_bounds_whatever_the_order(tokens: list[tuple[str, float]], random: object) -> None:
    value = yes_probability(alternatives(*tokens))
    shuffled = sorted(tokens, key=lambda _: random.random())  # type: ignore[attr-defined]
    other = yes_probability(alternatives(*shuffled))
    assert value == other if value is None else value == pytest.approx(other)
    assert value is None or 0.0 <= value <= 1.0


@given(probabilities, probabilities)
def test_swapping_the_words_gives_the_complement(yes: float, no: float) -> None:
    value = yes_probability(alternatives(("yes", yes), ("no", no)))
    swapped = yes_probability(alternatives(("yes", no), ("no", yes)))
    assert value is not None
    assert swapped is not None
    assert value + swapped == pytest.approx(1.0)


# --- scores ---


@pytest.mark.parametrize(
    ("needed", "alone", "score", "confidence", "calls"),
    [
        (0.1, None, 0, 0.9, 1),
        (0.59, None, 0, 0.41, 1),
        (0.61, 0.1, 1, 0.61, 2),
        (0.9, 0.79, 1, 0.9, 2),
        (0.9, 0.81, 2, 0.81, 2),
    ],
)
def test_score_goes_by_thresholds(
    needed: float, alone: float | None, score: int, confidence: float, calls: int
) -> None:
    llm = script(p_yes(needed), () if alone is None else p_yes(alone))
    verdict = verdict_of(LogprobJudge(llm, thresholds=BOTH), expand=False)
    assert (verdict.status, verdict.score, len(llm.asked)) == ("judged", score, calls)
    assert verdict.confidence == pytest.approx(confidence)
    assert verdict.next_query == verdict.problem == ""


@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_probability_on_the_threshold_counts(threshold: float) -> None:
    judge = LogprobJudge(script(p_yes(threshold)), thresholds=LogprobThresholds(needed=threshold))
    assert verdict_of(judge, expand=False).score == 1


def test_nothing_scores_two_without_its_threshold() -> None:
    llm = script(p_yes(1.0))
    verdict = verdict_of(LogprobJudge(llm, thresholds=LogprobThresholds(needed=T1)), expand=False)
    assert verdict.score == 1
    assert llm.asked == [tuple(NEEDED)]


def test_reason_tells_the_probabilities() -> None:
    judge = LogprobJudge(script(p_yes(0.834), p_yes(0.25)), thresholds=BOTH)
    assert verdict_of(judge, expand=False).reason == "p(needed)=0.83, p(alone)=0.25"


def test_a_question_costs_one_token_and_asks_for_alternatives() -> None:
    llm = script(p_yes(0.9), p_yes(0.9))
    verdict_of(LogprobJudge(llm, thresholds=BOTH))
    assert llm.limits == [(1, TOP_LOGPROBS)] * 2


# --- what cannot be had is unknown ---


@pytest.mark.parametrize(
    ("llm", "problem"),
    [
        (script(NEITHER), "'needed'"),
        (script(p_yes(0.9), NEITHER), "'alone'"),
        (script(FAILED), "timed out"),
        (script(p_yes(0.9), FAILED), "timed out"),
    ],
)
def test_verdict_is_unknown_when_a_question_has_no_answer(llm: FakeLLM, problem: str) -> None:
    verdict = verdict_of(LogprobJudge(llm, thresholds=BOTH))
    assert (verdict.status, verdict.score, verdict.confidence) == ("unknown", None, None)
    assert problem in verdict.problem


@pytest.mark.parametrize(("limit", "llm"), [(0, script(p_yes(0.9))), (1, script(p_yes(0.9), p_yes(0.9)))])
def test_spent_budget_comes_through_while_there_is_no_score(limit: int, llm: FakeLLM) -> None:
    meter = CallMeter(node="judge", budget=TreeBudget(limit=limit))
    with pytest.raises(BudgetSpent):
        verdict_of(LogprobJudge(llm, thresholds=BOTH), meter)
    assert len(llm.asked) == limit


# --- the sub-question of a 1 ---


def test_a_one_asks_its_question() -> None:
    verdict = verdict_of(LogprobJudge(script(p_yes(0.9), p_yes(0.1), wrote(NEXT)), thresholds=BOTH))
    assert (verdict.score, verdict.next_query, verdict.problem) == (1, NEXT, "")


@pytest.mark.parametrize(
    ("llm", "expand"),
    [(script(p_yes(0.1)), True), (script(p_yes(0.9), p_yes(0.9)), True), (script(p_yes(0.9), p_yes(0.1)), False)],
    ids=["zero", "two", "deepest level"],
)
def test_no_question_is_written_when_none_would_be_asked(llm: FakeLLM, expand: bool) -> None:
    verdict = verdict_of(LogprobJudge(llm, thresholds=BOTH), expand=expand)
    assert verdict.next_query == verdict.problem == ""


@pytest.mark.parametrize("reply", [NAME, f'"{NAME}."', f"Name: {NAME}\nIt is in the passage."])
def test_a_one_asks_for_a_name_of_the_passage(reply: str) -> None:
    llm = script(p_yes(0.9), p_yes(0.1), look_up=wrote(reply))
    verdict = verdict_of(LogprobJudge(llm, thresholds=BOTH))
    assert (verdict.next_query, verdict.problem) == (f"{QUERY} ({NAME})", "")


@pytest.mark.parametrize("name", ["a name that the passage does not hold", "Alien", "director of Alien", ".", "", "  "])
def test_a_question_is_written_where_no_name_is_usable(name: str) -> None:
    llm = script(p_yes(0.9), p_yes(0.1), wrote(NEXT), look_up=wrote(name))
    assert verdict_of(LogprobJudge(llm, thresholds=BOTH)).next_query == NEXT


@pytest.mark.parametrize(
    ("written", "problem"), [(wrote(QUERY), "repeats the query"), (FAILED, "timed out")], ids=["unusable", "failed"]
)
def test_a_one_stays_one_when_no_question_can_be_had(written: Reply, problem: str) -> None:
    llm = script(p_yes(0.9), p_yes(0.1), written)
    verdict = verdict_of(LogprobJudge(llm, thresholds=BOTH))
    assert (verdict.status, verdict.score, verdict.next_query) == ("judged", 1, "")
    assert problem in verdict.problem
    assert len(llm.asked) == 4


def test_a_one_stays_one_when_the_budget_has_no_call_left_for_its_question() -> None:
    meter = CallMeter(node="judge", budget=TreeBudget(limit=2))
    verdict = verdict_of(LogprobJudge(script(p_yes(0.9), p_yes(0.1)), thresholds=BOTH), meter)
    assert (verdict.score, verdict.next_query) == (1, "")
    assert "budget of 2" in verdict.problem


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        (NEXT, NEXT),
        (f"\n  {NEXT}\nBecause the passage names him.", NEXT),
        (f'"{NEXT}"', NEXT),
        (f"Question: {NEXT}", NEXT),
        (f"**Missing fact:** {NEXT}", NEXT),
        (f"- {NEXT}", NEXT),
        (f"1. {NEXT}", NEXT),
        ("问题：雷德利·斯科特出生在哪里？", "雷德利·斯科特出生在哪里？"),
        ("KV-133: which gasket does Rating F40 take?", "KV-133: which gasket does Rating F40 take?"),
        ("1984: who wrote it?", "1984: who wrote it?"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_question_is_taken_out_of_what_the_model_wrote(reply: str, question: str) -> None:
    assert question_in(reply) == question


@given(st.text())
@example("'\x1f0")
@example("“\u3000谁？”")
def test_question_is_one_stripped_line(reply: str) -> None:
    question = question_in(reply)
    assert question == question.strip()
    assert len(question.splitlines()) <= 1


# --- prompts ---


def test_both_questions_share_all_up_to_the_end_of_the_passage() -> None:
    assert NEEDED[0] == ALONE[0]
    assert common_start(NEEDED[1][1], ALONE[1][1]).startswith(f"Query: {QUERY}\n\nPassage:\n{PASSAGE}\n\n")


def test_chunks_of_a_query_share_all_up_to_the_passage() -> None:
    for build in (needed_messages, alone_messages, sub_question_messages, look_up_messages):
        one, other = build(QUERY, "Ada."), build(QUERY, "Bob.")
        assert one[0] == other[0]
        assert common_start(one[1][1], other[1][1]) == f"Query: {QUERY}\n\nPassage:\n"


@given(st.text(), st.text())
def test_braces_pass_unchanged(query: str, passage: str) -> None:
    for messages in (needed_messages(query, passage), alone_messages(query, passage)):
        assert query in messages[1][1]
        assert as_material(passage) in messages[1][1]


# --- fingerprint ---


def test_fingerprint_tells_all_that_changes_a_verdict() -> None:
    plain = LogprobJudge(script(), thresholds=LogprobThresholds(needed=0.5)).fingerprint()
    assert plain == {
        "kind": "logprob",
        "model": "fake",
        "prompt": LOGPROB_JUDGE_VERSION,
        "threshold_needed": "0.5",
        "threshold_alone": "",
    }
    fallback = FixedJudge(Verdict(status="judged", score=0))
    other = LogprobJudge(script(), thresholds=BOTH, fallback=fallback).fingerprint()
    assert other == plain | {
        "threshold_needed": "0.6",
        "threshold_alone": "0.8",
        "fallback_kind": "fixed",
        "fallback_model": "other",
    }


# --- probabilities without a verdict ---


def probabilities_of(llm: FakeLLM, *, alone: bool) -> tuple[float | None, float | None]:
    asked = LogprobJudge(llm).probabilities(QUERY, PASSAGE, meter=CallMeter(node="calibrate"), alone=alone)
    return background_loop().run(asked)


def test_probabilities_are_given_whatever_the_thresholds_say() -> None:
    llm = script(p_yes(0.01), p_yes(0.75))
    assert probabilities_of(llm, alone=True) == (pytest.approx(0.01), pytest.approx(0.75))
    assert llm.asked == [tuple(NEEDED), tuple(ALONE)]
    assert probabilities_of(script(p_yes(0.25)), alone=False) == (pytest.approx(0.25), None)
    assert probabilities_of(script(NEITHER, p_yes(0.75)), alone=True) == (None, pytest.approx(0.75))


# --- endpoints without log probabilities ---

OMITTED = wrote("yes")
REFUSED = ModelRequestError("HTTP 400: logprobs is not supported by this model")


@pytest.mark.parametrize("reply", [OMITTED, REFUSED], ids=["omitted", "refused"])
def test_probabilities_that_are_not_given_are_an_error_to_mend(reply: Reply) -> None:
    with pytest.raises(ModelSetupError, match="use the judge 'generated'"):
        probabilities_of(script(reply), alone=False)


@pytest.mark.parametrize("reply", [OMITTED, REFUSED], ids=["omitted", "refused"])
def test_fallback_judges_from_then_on_and_the_verdict_says_so(reply: Reply) -> None:
    llm, fallback = script(reply), FixedJudge(Verdict(status="judged", score=1, reason="names him", next_query=NEXT))
    judge = LogprobJudge(llm, thresholds=BOTH, fallback=fallback)
    first, second = verdict_of(judge), verdict_of(judge, expand=False)
    assert first == second
    assert (first.score, first.next_query) == (1, NEXT)
    assert "names him" in first.reason
    assert "no log probabilities" in first.reason
    assert len(llm.asked) == 1, "an endpoint that gives none is not asked again"
    assert fallback.expanded == [True, False]


def test_a_filtered_prompt_about_logprobs_is_no_endpoint_without_them() -> None:
    filtered = ModelRequestError("HTTP 403: your input was flagged: 'What are logprobs?'")
    llm = script(filtered)
    judge = LogprobJudge(llm, thresholds=BOTH, fallback=FixedJudge(Verdict(status="judged", score=2)))
    assert [verdict_of(judge).status for _ in range(2)] == ["unknown", "unknown"]
    assert len(llm.asked) == 2, "the next chunk is asked about as before"


@pytest.mark.parametrize("reply", [OMITTED, REFUSED], ids=["omitted", "refused"])
def test_judges_that_run_together_fall_back_together(reply: Reply) -> None:
    llm, fallback = script(reply), FixedJudge(Verdict(status="judged", score=2))
    judge = LogprobJudge(llm, thresholds=BOTH, fallback=fallback)

    async def together() -> list[Verdict]:
        meters = [CallMeter(node="judge") for _ in range(3)]
        return await asyncio.gather(*(judge.judge(QUERY, CHUNK, meter=meter) for meter in meters))

    verdicts = [*background_loop().run(together()), verdict_of(judge)]
    assert [verdict.score for verdict in verdicts] == [2, 2, 2, 2]
    assert len(llm.asked) == 1


def test_unknown_verdict_of_the_fallback_says_that_it_was_one() -> None:
    fallback = FixedJudge(Verdict(status="unknown", problem="prose"))
    verdict = verdict_of(LogprobJudge(script(OMITTED), thresholds=BOTH, fallback=fallback))
    assert verdict.status == "unknown"
    assert "no log probabilities" in verdict.problem
    assert "prose" in verdict.problem


def test_verdict_is_unknown_and_says_what_to_do_when_there_is_no_fallback() -> None:
    llm = script(OMITTED)
    judge = LogprobJudge(llm, thresholds=BOTH)
    for _ in range(2):
        verdict = verdict_of(judge)
        assert verdict.status == "unknown"
        assert "use the judge 'generated'" in verdict.problem
    assert len(llm.asked) == 1


def test_fallback_is_not_for_an_endpoint_that_gave_logprobs() -> None:
    fallback = FixedJudge(Verdict(status="judged", score=2))
    judge = LogprobJudge(script([p_yes(0.1), OMITTED, REFUSED, p_yes(0.1)]), thresholds=BOTH, fallback=fallback)
    statuses = [verdict_of(judge).status for _ in range(4)]
    assert statuses == ["judged", "unknown", "unknown", "judged"]
    assert fallback.expanded == []


def test_fallback_is_not_for_an_endpoint_that_fails_otherwise() -> None:
    fallback = FixedJudge(Verdict(status="judged", score=2))
    verdict = verdict_of(LogprobJudge(script(FAILED), thresholds=BOTH, fallback=fallback))
    assert (verdict.status, fallback.expanded) == ("unknown", [])


@pytest.mark.parametrize("before", [[], [p_yes(0.9)]], ids=["asking to score", "asking for a sub-question"])
def test_refused_key_is_raised(before: list[Reply]) -> None:
    fallback = FixedJudge(Verdict(status="judged", score=2))
    refused: list[Reply] = [ModelSetupError("HTTP 401: bad key")]
    llm = script(before or refused, sub_question=refused)
    with pytest.raises(ModelSetupError, match="bad key"):
        verdict_of(LogprobJudge(llm, thresholds=LogprobThresholds(needed=T1, alone=None), fallback=fallback))
    assert fallback.expanded == []


# --- over HTTP ---


@pytest.fixture
def server(started_server: ScriptedServer) -> ScriptedServer:
    as_new(started_server).responses = by_question
    return started_server


def by_question(request: ReceivedRequest) -> ChatReply:
    """Needed, not enough alone, and the question to ask next."""
    asked = tuple(request.messages)
    if asked == tuple(LOOK_UP):
        return ChatReply(text=NAME)
    return ChatReply(text="yes", p_yes=0.9 if asked == tuple(NEEDED) else 0.05)


def test_verdict_over_http(server: ScriptedServer) -> None:
    meter = CallMeter(node="judge", chunk_id="c1")
    verdict = verdict_of(LogprobJudge(llm_at(server.base_url), thresholds=BOTH), meter)
    assert (verdict.score, verdict.next_query) == (1, f"{QUERY} ({NAME})")
    assert verdict.confidence == pytest.approx(0.9, abs=0.01)
    assert [record["chunk_id"] for record in meter.records] == ["c1"] * 3


@pytest.mark.parametrize("logprobs", ["omitted", "refused"])
def test_fallback_over_http(server: ScriptedServer, logprobs: str) -> None:
    server.configure(logprobs=logprobs)
    fallback = FixedJudge(Verdict(status="judged", score=0))
    verdict = verdict_of(LogprobJudge(llm_at(server.base_url), thresholds=BOTH, fallback=fallback))
    assert (verdict.score, fallback.expanded) == (0, [True])
