"""Requests that join a question that runs: they get its events from the first, and cause no model call."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import httpx
import openai
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.server.application import create_app
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.served import Served
from judgetree.modules.settings import Settings
from tests.app.server.conversations.asking import (
    MODEL,
    Event,
    Gate,
    answered,
    events_of,
    get,
    path_of,
    streaming,
)
from tests.app.server.safety.test_admission import key_for
from tests.app.server.safety.test_client_gone import asking, until
from tests.app.server.serving import serving_app
from tests.app.talks import FIRST

LONG_S = 600.0


@contextmanager
def running(settings: Settings, **options: object) -> Iterator[tuple[Served, httpx.Client]]:
    """A server, and a client of it."""
    chosen = ServerOptions(requests_per_minute=1_000_000, **options)  # type: ignore[arg-type]
    app = create_app(settings, chosen)
    with serving_app(app, chosen) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield app.state.served, client


@contextmanager
def watching(http: httpx.Client, name: str) -> Iterator[Iterator[Event]]:
    """The events of the question that a conversation answers."""
    with http.stream("GET", path_of(name, "questions")) as answer:
        assert answer.status_code == 200, answer.read()
        yield events_of(answer)


def chat(http: httpx.Client, question: str = FIRST, *, key: str = "", **more: object) -> Event:
    body = {"model": MODEL, "messages": [{"role": "user", "content": question}], **more}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = http.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    document: Event = answer.json()["judgetree"]
    return document


def test_a_second_view_and_a_reload_get_all_of_a_running_question(http: httpx.Client, gate: Gate) -> None:
    gate.close()
    alone = answered_calls(http, gate)
    gate.close()
    before = gate.calls
    with ExitStack() as stays:
        with streaming(http, "monday", FIRST) as first:
            session = next(first)
            assert gate.reached.wait(60)
            second = stays.enter_context(watching(http, "monday"))
            assert next(second) == session
        # The first view is gone; a third one comes before the second leaves, and the same request is one of it too.
        third = stays.enter_context(watching(http, "monday"))
        same = stays.enter_context(streaming(http, "monday", FIRST))
        gate.open()
        ends = [[*events] for events in (second, third, same)]
    assert ends[1] == ends[2] == [session, *ends[0]]
    assert ends[0][-1]["answer"] == "the drum"
    assert gate.calls - before == alone
    assert len(get(http, path_of("monday"))["turns"]) == 1


def answered_calls(http: httpx.Client, gate: Gate) -> int:
    """Model calls of the question by itself."""
    gate.open()
    before = gate.calls
    answered(http, "alone", FIRST)
    return gate.calls - before


def test_a_conversation_without_a_running_question_has_none_to_watch(http: httpx.Client) -> None:
    answered(http, "monday", FIRST)
    assert http.get(path_of("monday", "questions")).status_code == 409
    assert http.get(path_of("none", "questions")).status_code == 404


def test_the_same_request_attaches_while_its_turn_runs_and_is_another_afterwards(
    settings: Settings, gate: Gate
) -> None:
    keys = [key_for(settings, name) for name in ("ada", "bob")]
    gate.close()
    with running(settings, needs_keys=True) as (served, http), ThreadPoolExecutor(4) as pool:

        def ask(key: str, **more: object) -> str:
            return str(chat(http, key=key, **more)["turn_id"])

        first = pool.submit(ask, keys[0])
        assert gate.reached.wait(60)
        same = pool.submit(ask, keys[0])
        others = [pool.submit(ask, keys[0], judgetree={"topk": 2}), pool.submit(ask, keys[1])]
        until(lambda: served.admissions.running == 3, "other options and other keys are asked")
        gate.open()
        ids = [each.result() for each in (first, *others)]
        assert same.result() == ids[0]
        assert len({*ids, ask(keys[0])}) == 4


def left_alone(served: Served, http: httpx.Client, gate: Gate) -> int:
    """Ask, and leave while the first call is held; returns the calls so far."""
    gate.close()
    with streaming(http, "monday", FIRST) as events:
        next(events)
        assert gate.reached.wait(60)
        assert served.admissions.running == 1
    return gate.calls


def test_a_lost_connection_keeps_its_turn_which_ends_without_a_reader(settings: Settings, gate: Gate) -> None:
    with running(settings, grace_s=LONG_S) as (served, http):
        left_alone(served, http, gate)
        gate.open()
        until(lambda: served.admissions.running == 0, "it is not answered")
        (turn,) = get(http, path_of("monday"))["turns"]
        calls = gate.calls
        again = answered(http, "monday", FIRST)  # whoever asked has not got the answer yet
        assert (again["turn_id"], gate.calls) == (turn["turn_id"], calls)
        assert answered(http, "monday", FIRST, parent_turn_id="", regenerate=True)["turn_id"] != turn["turn_id"]


def test_a_turn_that_nobody_watches_is_cancelled_after_its_grace(settings: Settings, gate: Gate) -> None:
    with running(settings, grace_s=0.3) as (served, http):
        calls = left_alone(served, http, gate)
        until(lambda: served.admissions.running == 0, "it runs on")
        assert gate.calls == calls
        gate.open()
        assert get(http, path_of("monday"))["open_turn"]["query"] == FIRST


def test_a_revoked_key_ends_the_grace(settings: Settings, gate: Gate) -> None:
    key = key_for(settings, "ada")
    with running(settings, needs_keys=True, grace_s=LONG_S) as (served, http):
        http.headers["Authorization"] = f"Bearer {key}"
        left_alone(served, http, gate)
        with closing(KeyTables(settings)) as tables:
            KeyBook(tables).revoke("ada")
        until(lambda: served.admissions.running == 0, "it runs on")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_chat_completions_have_grace_only_where_the_server_says_so(
    settings: Settings, gate: Gate, *, is_streamed: bool
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": FIRST}]}

    def leave(http: httpx.Client) -> None:
        gate.close()
        with asking(str(http.base_url), "/v1/chat/completions", body | {"stream": is_streamed}):
            assert gate.reached.wait(60)

    with running(settings) as (served, http):
        leave(http)
        until(lambda: served.admissions.running == 0, "it runs on")
        gate.open()
    with running(settings, grace_s=LONG_S) as (_, http):
        leave(http)
        with http.stream("POST", "/v1/chat/completions", json=body | {"stream": True}) as same:
            lines = same.iter_lines()
            next(lines)
            gate.open()
            assert '"answer":"the drum"' in "".join(lines)
        assert [each["turns"] for each in get(http, "/v1/conversations", unnamed=True)["data"]] == [1, 0]


def test_openai_s_client_does_not_repeat_what_the_server_has_tried(address: str, gate: Gate) -> None:
    gate.reply = ChatReply(status=500, text="broken")
    messages: Any = [{"role": "user", "content": FIRST}]
    tries: list[httpx.Request] = []
    with (
        httpx.Client(event_hooks={"request": [tries.append]}, timeout=60) as counted,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=2, http_client=counted) as client,
        pytest.raises(openai.InternalServerError),
    ):
        client.chat.completions.create(model=MODEL, messages=messages)
    assert len(tries) == 1
