"""Replies in the forms of RAGAS: what is sent, what is taken, what is asked for again."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.scoring.replies import StructuredLLM, parse_reply, schema_of
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter, total_usage
from judgetree.modules.llm.json_reply import ReplyProblem
from tests.modules.model_endpoints import llm_at, saying


class Verdict(BaseModel):
    statement: str
    reason: str
    verdict: int


class Verdicts(BaseModel):
    statements: list[Verdict]


class Texts(BaseModel):
    first: list[str]
    second: list[str]


GOOD = {"statements": [{"statement": "A.", "reason": "", "verdict": 1}]}
GOOD_TEXT = json.dumps(GOOD)


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.responses = saying(ChatReply(text=GOOD_TEXT))
    return server


def ask(server: ScriptedServer, meter: CallMeter | None = None, llm: StructuredLLM | None = None) -> Verdicts:
    llm = llm or StructuredLLM(llm_at(server.base_url, retries=0))
    return background_loop().run(llm.ask("As JSON, please.", Verdicts, meter=meter or CallMeter(node="ragas")))


@pytest.mark.parametrize("text", [GOOD_TEXT, f"Perhaps {{}}?</think>```json\n{GOOD_TEXT[:-1]},}}\n```"])
def test_reply_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse_reply(text, Verdicts).model_dump() == GOOD


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I would say yes.", "no JSON object"),
        ('{"statements": 1}', "does not fit the schema (statements"),
        ('{"statements": []}', "holds nothing in statements"),
        (GOOD_TEXT.replace("1", "7"), "verdict is 7; allowed are 0 and 1"),
        (GOOD_TEXT.replace("A.", " "), "statement is empty"),
    ],
)
def test_reply_that_would_be_scored_wrongly_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ReplyProblem, match=re.escape(problem)):
        parse_reply(text, Verdicts)


def test_one_list_may_be_empty_but_not_all() -> None:
    assert parse_reply('{"first": [], "second": ["b"]}', Texts).second == ["b"]
    with pytest.raises(ReplyProblem, match="first, second"):
        parse_reply('{"first": [], "second": []}', Texts)
    with pytest.raises(ReplyProblem, match="first is empty"):
        parse_reply('{"first": [""], "second": []}', Texts)


def test_cut_off_reply_is_refused_though_its_beginning_could_be_repaired() -> None:
    with pytest.raises(ReplyProblem, match="cut off"):
        parse_reply(GOOD_TEXT, Verdicts, cut_off=True)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(TEXTS, st.integers(0, 1)), min_size=1))
def test_every_reply_within_the_rules_comes_back_as_it_is(verdicts: list[tuple[str, int]]) -> None:
    reply = {"statements": [{"statement": text, "reason": "", "verdict": flag} for text, flag in verdicts]}
    assert parse_reply(json.dumps(reply), Verdicts).model_dump() == reply


def test_schema_is_closed_and_its_numbers_are_flags() -> None:
    schema = schema_of(Verdicts)
    part = schema["$defs"]["Verdict"]  # type: ignore[index]
    assert (schema["additionalProperties"], part["additionalProperties"]) == (False, False)
    assert part["required"] == ["statement", "reason", "verdict"]
    assert part["properties"]["verdict"]["enum"] == [0, 1]


def test_repair_says_what_was_wrong_and_every_call_is_booked(server: ScriptedServer) -> None:
    asked: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest) -> ChatReply:
        asked.append(request)
        return ChatReply(text="Yes." if len(asked) == 1 else GOOD_TEXT)

    server.responses = answer
    meter = CallMeter(node="ragas")
    assert ask(server, meter).model_dump() == GOOD
    assert [role for role, _ in asked[1].messages] == ["user", "assistant", "user"]
    assert "It holds no JSON object." in asked[1].messages[2][1]
    assert total_usage(meter.records)["llm_calls"] == 2


def test_reply_that_stays_unusable_is_given_up_after_two_repairs(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="Yes."))
    meter = CallMeter(node="ragas")
    with pytest.raises(ReplyProblem, match="no JSON object"):
        ask(server, meter)
    assert len(meter.records) == 3
