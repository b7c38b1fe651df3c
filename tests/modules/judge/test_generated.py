"""The judge that lets the model write its verdict: formats, repairs, and what becomes of failures."""

from __future__ import annotations

import json

import pytest
from langchain_core.documents import Document

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.messages import JSON_REPAIR
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, ModelSetupError
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.judge.prompts import JUDGE_SCHEMA, judge_messages
from tests.modules.model_endpoints import as_new, chat_reply, llm_at, saying, serve_raw

QUERY = "Where was the director of Alien born?"
CHUNK = Document(page_content="Alien was directed by Ridley Scott.")
NEXT = "Where was Ridley Scott born?"
PROSE = "It helps a little."


def wrote(score: int, next_query: str = "", reason: str = "r") -> ChatReply:
    return ChatReply(text=json.dumps({"reason": reason, "score": score, "next_query": next_query}))


USELESS, PART, WHOLE = wrote(0), wrote(1, NEXT), wrote(2)


@pytest.fixture
def server(started_server: ScriptedServer) -> ScriptedServer:
    as_new(started_server).responses = saying(PART)
    return started_server


def judge_at(server: ScriptedServer, *, max_repairs: int = 2) -> GeneratedJudge:
    return GeneratedJudge(llm_at(server.base_url), max_repairs=max_repairs)


def verdict_of(judge: GeneratedJudge, meter: CallMeter | None = None, *, expand: bool = True) -> Verdict:
    meter = meter or CallMeter(node="judge")
    return background_loop().run(judge.judge(QUERY, CHUNK, meter=meter, expand=expand))


class Recorder:
    """A hook that keeps the requests it answers."""

    def __init__(self, *replies: ChatReply) -> None:
        self.requests: list[ReceivedRequest] = []
        self._hook = saying(*replies)

    def __call__(self, request: ReceivedRequest) -> ChatReply:
        self.requests.append(request)
        return self._hook(request)


# --- a verdict ---


@pytest.mark.parametrize(
    ("reply", "score", "next_query"), [(USELESS, 0, ""), (PART, 1, NEXT), (WHOLE, 2, ""), (wrote(2, NEXT), 2, "")]
)
def test_verdict_is_the_models_in_one_call(
    server: ScriptedServer, reply: ChatReply, score: int, next_query: str
) -> None:
    server.responses = hook = Recorder(reply)
    meter = CallMeter(node="judge", chunk_id="c1")
    verdict = verdict_of(judge_at(server), meter)
    assert verdict == Verdict(status="judged", score=score, reason="r", next_query=next_query)  # type: ignore[arg-type]
    assert [record["chunk_id"] for record in meter.records] == ["c1"]
    (request,) = hook.requests
    assert list(request.messages) == judge_messages(QUERY, CHUNK.page_content)
    assert request.response_format == "json_schema"


def test_request_holds_the_schema_and_a_cap_on_tokens() -> None:
    with serve_raw() as raw:
        raw.will_send(chat_reply(PART.text))
        judge = GeneratedJudge(llm_at(raw.base_url), max_tokens=77)
        assert verdict_of(judge).score == 1
    assert raw.bodies[0]["response_format"]["json_schema"]["schema"] == JUDGE_SCHEMA
    assert (raw.bodies[0]["max_tokens"], raw.bodies[0]["temperature"]) == (77, 0.0)


def test_fingerprint_names_all_that_changes_a_verdict() -> None:
    llm = llm_at("http://127.0.0.1:1/v1")
    one = GeneratedJudge(llm).fingerprint()
    assert (one["kind"], one["model"]) == ("generated", "m")
    assert GeneratedJudge(llm).fingerprint() == one
    assert GeneratedJudge(llm, max_repairs=0).fingerprint() != one
    assert GeneratedJudge(llm, max_tokens=7).fingerprint() != one


# --- the format ---


def test_refused_key_is_raised_and_the_next_is_asked_as_before(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(status=401, text="who are you?"), PART)
    judge = judge_at(server)
    with pytest.raises(ModelSetupError, match=r"who are you\?"):
        verdict_of(judge)
    assert verdict_of(judge).score == 1


def test_refusal_of_one_chunk_makes_its_verdict_unknown(server: ScriptedServer) -> None:
    refused = ChatReply(status=400, text="the passage is too long")
    server.responses = saying(refused, refused, refused, PART)  # once in each format
    judge = judge_at(server)
    verdict = verdict_of(judge)
    assert (verdict.status, verdict.score) == ("unknown", None)
    assert "too long" in verdict.problem
    assert verdict_of(judge).score == 1


# --- repairs ---


def test_unusable_reply_is_asked_for_again_saying_what_was_wrong(server: ScriptedServer) -> None:
    server.responses = hook = Recorder(ChatReply(text=PROSE), wrote(7), PART)
    meter = CallMeter(node="judge")
    assert verdict_of(judge_at(server), meter).next_query == NEXT
    assert len(meter.records) == 3
    opening = judge_messages(QUERY, CHUNK.page_content)
    first = [("assistant", PROSE), ("user", JSON_REPAIR.format(problem="It holds no JSON object."))]
    assert list(hook.requests[1].messages) == [*opening, *first]
    *earlier, (_, seven), (_, complaint) = hook.requests[2].messages
    assert earlier == [*opening, *first]
    assert seven == wrote(7).text
    assert "score: Input should be 0, 1 or 2" in complaint


@pytest.mark.parametrize("max_repairs", [0, 1, 2])
def test_reply_that_stays_unusable_makes_the_verdict_unknown(server: ScriptedServer, max_repairs: int) -> None:
    server.responses = saying(ChatReply(text=PROSE))
    meter = CallMeter(node="judge")
    verdict = verdict_of(judge_at(server, max_repairs=max_repairs), meter)
    assert verdict == Verdict(status="unknown", problem="It holds no JSON object.")
    assert len(meter.records) == 1 + max_repairs


@pytest.mark.parametrize(
    ("fault", "calls"), [("prose", 2), ("fence", 1), ("think", 1), ("truncated", 2), ("wrong_type", 2), ("empty", 2)]
)
def test_garbled_reply_costs_a_repair_at_most(server: ScriptedServer, fault: str, calls: int) -> None:
    def garbled_once(_: ReceivedRequest) -> ChatReply:
        server.configure(faults={})
        return wrote(1, NEXT, reason="a reason that is longer than all of the rest together")

    server.configure(faults={fault: 1.0})
    server.responses = garbled_once
    meter = CallMeter(node="judge")
    verdict = verdict_of(judge_at(server), meter)
    assert (verdict.score, verdict.next_query) == (1, NEXT)
    assert len(meter.records) == calls


@pytest.mark.parametrize(
    ("unusable", "complaint"),
    [(wrote(1), "empty"), (wrote(1, QUERY), "repeats"), (wrote(1, "Who is he in this passage?"), "without it")],
)
def test_1_without_a_question_gets_one_on_retry(server: ScriptedServer, unusable: ChatReply, complaint: str) -> None:
    server.responses = hook = Recorder(unusable, PART)
    assert verdict_of(judge_at(server)) == Verdict(status="judged", score=1, reason="r", next_query=NEXT)
    assert complaint in hook.requests[1].messages[-1][1]


@pytest.mark.parametrize(
    ("expand", "calls", "problem"), [(True, 3, "next_query is empty although the score is 1."), (False, 1, "")]
)
def test_1_without_a_usable_question_keeps_its_score_and_is_marked_where_it_needs_one(
    server: ScriptedServer, expand: bool, calls: int, problem: str
) -> None:
    server.responses = saying(wrote(1))
    meter = CallMeter(node="judge")
    verdict = verdict_of(judge_at(server), meter, expand=expand)
    assert verdict == Verdict(status="judged", score=1, reason="r", problem=problem)
    assert len(meter.records) == calls


@pytest.mark.parametrize("later", [ChatReply(text=PROSE), ChatReply(status=400, text="no"), ChatReply(status=500)])
def test_1_without_a_question_outlives_worse_replies(server: ScriptedServer, later: ChatReply) -> None:
    server.responses = saying(wrote(1), later)
    verdict = verdict_of(judge_at(server))
    assert (verdict.status, verdict.score) == ("judged", 1)
    assert "empty" in verdict.problem


def test_second_thoughts_about_the_score_count(server: ScriptedServer) -> None:
    server.responses = saying(wrote(1), WHOLE)
    assert verdict_of(judge_at(server)) == Verdict(status="judged", score=2, reason="r")


def test_question_that_was_cut_off_is_asked_for_again(server: ScriptedServer) -> None:
    cut = ChatReply(text=PART.text[: PART.text.index("born")], finish_reason="length")
    server.responses = hook = Recorder(cut, PART)
    assert verdict_of(judge_at(server)).next_query == NEXT
    assert "cut off" in hook.requests[1].messages[-1][1]


# --- failures and the budget ---


def test_endpoint_that_fails_makes_the_verdict_unknown(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0})
    meter = CallMeter(node="judge")
    verdict = verdict_of(judge_at(server), meter)
    assert (verdict.status, verdict.score) == ("unknown", None)
    assert "attempt 3 of 3" in verdict.problem
    assert len(meter.records) == 1


def test_budget_that_is_spent_before_the_first_call_is_told(server: ScriptedServer) -> None:
    with pytest.raises(BudgetSpent):
        verdict_of(judge_at(server), CallMeter(node="judge", budget=TreeBudget(limit=0)))
    assert server.requests["judge"] == 0


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (ChatReply(text=PROSE), Verdict(status="unknown", problem="It holds no JSON object.")),
        (
            wrote(1),
            Verdict(status="judged", score=1, reason="r", problem="next_query is empty although the score is 1."),
        ),
    ],
)
def test_budget_spent_before_a_repair_is_kept_to(server: ScriptedServer, first: ChatReply, expected: Verdict) -> None:
    server.responses = saying(first, PART)
    assert verdict_of(judge_at(server), CallMeter(node="judge", budget=TreeBudget(limit=1))) == expected
    assert server.requests["judge"] == 1
