"""Search trees as events of the AG-UI protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import jsonpatch
import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, SUB_QUESTION
from tests.app.server.trees.conftest import at_the_sub_answer, held_elsewhere

AG_UI = {"Accept": "text/vnd.ag-ui+event-stream"}
ANY_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def agui_events(response: httpx.Response) -> Iterator[dict[str, object]]:
    """The events of a stream, as they come, each as the protocol allows it."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            ANY_EVENT.validate_json(data)
            yield json.loads(data)


def test_a_tree_is_a_run_with_its_sub_questions_as_subagents(http: httpx.Client, thread: str) -> None:
    with http.stream("GET", f"/v1/trees/{thread}/events", headers=AG_UI) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        events = list(agui_events(response))
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["RUN_STARTED", "REASONING_START", "ACTIVITY_SNAPSHOT"]
    assert kinds[-5:] == [
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    by_kind = {str(event["type"]): event for event in events}
    assert by_kind["RUN_STARTED"]["runId"] == thread
    assert by_kind["ACTIVITY_SNAPSHOT"]["content"] == http.get(f"/v1/trees/{thread}").json()
    asked = {event["subagentRunId"]: event["description"] for event in events if event["type"] == "SUBAGENT_STARTED"}
    answered = {event["subagentRunId"]: event["result"] for event in events if event["type"] == "SUBAGENT_FINISHED"}
    assert asked.keys() == answered.keys()
    (thickness,) = (run for run, question in asked.items() if question == SUB_QUESTION)
    assert answered[thickness] == {"answer": CHAIN.answer, "answer_status": "answered"}
    reasons = [str(event["delta"]) for event in events if event["type"] == "REASONING_MESSAGE_CONTENT"]
    assert any(SUB_QUESTION in reason for reason in reasons)
    assert by_kind["RUN_FINISHED"]["result"] == {"answer": CHAIN.answer, "answer_status": "answered"}


def test_a_sub_run_names_its_parent(http: httpx.Client, thread: str) -> None:
    tree = http.get(f"/v1/trees/{thread}").json()
    sub_run = tree["root"]["chunks"][0]["sub_runs"][0]["thread_id"]
    with http.stream("GET", f"/v1/trees/{sub_run}/events", headers=AG_UI) as response:
        first = next(agui_events(response))
    assert (first["runId"], first["parentRunId"]) == (sub_run, thread)


@pytest.mark.slow
def test_deltas_make_the_final_tree(http: httpx.Client, scripted: ScriptedServer) -> None:
    scripted.responses = dam = at_the_sub_answer()
    tree: object = None
    kinds: list[object] = []
    with (
        held_elsewhere(dam) as thread,
        http.stream("GET", f"/v1/trees/{thread}/events?wait=10", headers=AG_UI) as response,
    ):
        for event in agui_events(response):
            kinds.append(event["type"])
            if event["type"] == "ACTIVITY_SNAPSHOT":
                tree = event["content"]
                dam.opened.set()
            elif event["type"] == "ACTIVITY_DELTA":
                tree = jsonpatch.apply_patch(tree, event["patch"])
    assert kinds.count("ACTIVITY_SNAPSHOT") == 1
    assert "ACTIVITY_DELTA" in kinds
    assert tree == http.get(f"/v1/trees/{thread}").json()
