import asyncio
import json

import httpx
import openai
import pytest

from judgetree.app.scripted.behaviour import FAULTS, Behaviour, Fault
from judgetree.app.scripted.server import ScriptedServer
from tests.app.scripted.drum import (
    JUDGE,
    NEEDED,
    NO_CERTIFICATES,
    READ,
    Messages,
    chat_body,
    http_post,
    model,
    post,
    text_of,
)


def test_a_rate_limit_says_when_to_come_back(server: ScriptedServer) -> None:
    server.configure(faults={"429": 1}, retry_after_s=2.5)
    response = post(server, READ)
    assert (response.status_code, response.headers["retry-after"]) == (429, "2.5")
    with pytest.raises(openai.RateLimitError):
        model(server).invoke(READ)


@pytest.mark.parametrize("stream", [False, True])
def test_a_dropped_connection_breaks_off_in_the_middle(server: ScriptedServer, stream: bool) -> None:
    server.configure(faults={"drop": 1})
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
        post(server, READ, stream=stream)


def test_a_held_answer_outlasts_the_client_and_is_given_up_with_it(server: ScriptedServer) -> None:
    server.configure(faults={"timeout": 1}, hold_s=3600)
    with pytest.raises(httpx.ReadTimeout):
        http_post(f"{server.base_url}/chat/completions", json=chat_body(READ), timeout=0.05)
    assert server.wait_until_idle()
    assert [entry.fault for entry in server.log] == ["timeout"]


@pytest.mark.parametrize(
    ("messages", "fault", "expected", "finish_reason"),
    [
        (JUDGE, "fence", "```json\n{}\n```", "stop"),
        (READ, "think", "</think>\n\n{}", "stop"),
        (READ, "empty", "", "stop"),
        (READ, "truncated", "40", "length"),
        (READ, "wrong_type", "{}", "stop"),
        (READ, "prose", "{}", "stop"),
        (NEEDED, "truncated", "{}", "stop"),
        (NEEDED, "empty", "", "stop"),
    ],
)
def test_text_is_garbled_where_that_makes_sense(
    server: ScriptedServer, messages: Messages, fault: Fault, expected: str, finish_reason: str
) -> None:
    clean = text_of(post(server, messages))
    server.configure(faults={fault: 1})
    response = post(server, messages)
    assert text_of(response).endswith(expected.replace("{}", clean))
    assert bool(server.stats()["faults"]) == (text_of(response) != clean)
    assert response.json()["choices"][0]["finish_reason"] == finish_reason


@pytest.mark.parametrize("fault", ["prose", "fence", "think", "truncated", "empty"])
def test_a_garbled_verdict_is_no_json(server: ScriptedServer, fault: Fault) -> None:
    server.configure(faults={fault: 1})
    with pytest.raises(json.JSONDecodeError):
        json.loads(text_of(post(server, JUDGE)))


def test_a_verdict_of_the_wrong_type_is_json_that_does_not_fit(server: ScriptedServer) -> None:
    server.configure(faults={"wrong_type": 1})
    assert json.loads(text_of(post(server, JUDGE)))["score"] not in (0, 1, 2)


@pytest.mark.parametrize("fault", ["prose", "think"])
def test_a_garbled_yes_or_no_begins_with_neither_word(server: ScriptedServer, fault: Fault) -> None:
    server.configure(faults={fault: 1})
    [first, *_] = post(server, NEEDED, logprobs=True, top_logprobs=5).json()["choices"][0]["logprobs"]["content"]
    assert not {candidate["token"].strip().lower() for candidate in first["top_logprobs"]} & {"yes", "no"}


def test_faults_may_be_limited_to_kinds_and_to_the_first_attempts(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1}, fault_kinds=["judge"], fault_attempts=2)
    assert [post(server, READ).status_code for _ in range(2)] == [200, 200]
    assert [post(server, JUDGE).status_code for _ in range(4)] == [500, 500, 200, 200]
    assert [entry.attempt for entry in server.log if entry.kind == "judge"] == [1, 2, 3, 4]


def draw(behaviour: Behaviour, count: int = 2000) -> list[Fault | None]:
    return [behaviour.draw_fault(kind="judge", content=str(n).encode(), attempt=1) for n in range(count)]


def test_each_fault_comes_at_its_own_rate() -> None:
    rates: dict[Fault, float] = dict.fromkeys(FAULTS, 0.08)
    drawn = draw(Behaviour(faults=rates))
    for fault in FAULTS:
        assert drawn.count(fault) / len(drawn) == pytest.approx(0.08, abs=0.025)
    assert drawn.count(None) / len(drawn) == pytest.approx(0.2, abs=0.04)


def test_faults_depend_on_seed_content_and_attempt_alone() -> None:
    half = Behaviour(faults={"500": 0.5})
    assert draw(half) == draw(Behaviour(faults={"500": 0.5}))
    assert draw(half) != draw(Behaviour(faults={"500": 0.5}, seed=1))
    assert len({half.draw_fault(kind="judge", content=b"same", attempt=n) for n in range(1, 30)}) == 2


def test_the_faults_of_parallel_requests_do_not_depend_on_their_order() -> None:
    bodies = [chat_body([("user", f"question {n}")]) for n in range(24)]

    async def statuses(order: list[int]) -> dict[int, int]:
        with ScriptedServer(behaviour=Behaviour(faults={"500": 0.3, "429": 0.3}, seed=5)) as running:
            async with httpx.AsyncClient(verify=NO_CERTIFICATES, base_url=running.base_url, timeout=60) as client:
                sent = [client.post("/chat/completions", json=bodies[n]) for n in order]
                responses = await asyncio.gather(*sent)
        return {n: response.status_code for n, response in zip(order, responses, strict=True)}

    forwards = asyncio.run(statuses(list(range(24))))
    assert asyncio.run(statuses(list(reversed(range(24))))) == forwards
    assert set(forwards.values()) == {200, 429, 500}
