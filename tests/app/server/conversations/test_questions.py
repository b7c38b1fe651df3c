"""Questions as streams of events."""

from __future__ import annotations

import json

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, Dam
from tests.app.server.conversations.asking import MODEL, Gate, answered, ask, get, path_of, streaming
from tests.app.server.serving import serving
from tests.app.talks import FIRST, THICKNESS


def test_events_are_lines_whatever_a_client_takes_for_their_ends(http: httpx.Client) -> None:
    question = f"{FIRST} \x85\u2028\u2029 really"
    chat = {"model": MODEL, "messages": [{"role": "user", "content": question}], "stream": True}
    texts = [
        http.post(path_of("one", "questions"), json={"model": MODEL, "question": question}).text,
        http.post("/v1/chat/completions", json=chat).text,
        http.get(f"/v1/trees/{http.get(path_of('one')).json()['turns'][0]['rag_thread_id']}/events").text,
    ]
    for text in texts:
        assert "really" in text
        assert [each for each in text.splitlines() if each and not each.startswith(("event: ", "data: ", "id: "))] == []


def test_a_question_streams_its_events_and_ends_with_the_saved_turn(http: httpx.Client) -> None:
    events = ask(http, "monday", CHAIN.question)
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("session", "done")
    assert {"tree", "content", "source"} <= set(kinds)
    assert (events[0]["name"], events[0]["resumed"], events[0]["turn_number"]) == ("monday", False, 1)
    assert "".join(event["text"] for event in events if event["type"] == "content") == CHAIN.answer
    done = events[-1]
    assert "tree" not in done
    assert done["rag_thread_id"] == done["turn"]["rag_thread_id"] != ""
    assert (done["answer"], done["status"], done["error"]) == (CHAIN.answer, "answered", "")
    sources = [event["source"] for event in events if event["type"] == "source"]
    assert [source["source"] for source in done["turn"]["sources"]] == sources
    assert get(http, path_of("monday"))["turns"] == [done["turn"]]


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_clients_take_out_of_paths_is_refused(http: httpx.Client, name: str) -> None:
    chat = {"model": MODEL, "messages": [{"role": "user", "content": FIRST}], "chat_id": name}
    path = f"/v1/conversations/{name.replace('.', '%2E')}"
    for answer in (
        http.post("/v1/chat/completions", json=chat),
        http.post(f"{path}/questions", json={"model": MODEL, "question": FIRST}),
        http.get(path),
    ):
        assert answer.status_code == 400
        assert f"A conversation cannot be named {name!r}" in answer.json()["error"]["message"]


def test_a_follow_up_leans_on_the_turn_before(http: httpx.Client) -> None:
    first = answered(http, "monday", FIRST)["turn"]
    second = answered(http, "monday", THICKNESS)["turn"]
    assert (second["answer"], second["parent_turn_id"]) == ("40 mm", first["turn_id"])
    assert second["standalone_query"] == "How thick is the wall of the drum?"


def test_a_request_id_gets_its_turn_again_and_regenerate_a_branch(http: httpx.Client, gate: Gate) -> None:
    first = answered(http, "monday", FIRST, request_id="r")
    calls = gate.calls
    again = answered(http, "monday", FIRST, request_id="r")
    assert (again["turn"], again["resumed"], gate.calls) == (first["turn"], True, calls)
    new = answered(http, "monday", FIRST, parent_turn_id="", regenerate=True)["turn"]
    assert (new["branch"], new["parent_turn_id"]) == ("branch-2", "")


def test_a_client_that_leaves_ends_its_turn_which_the_same_question_resumes(
    without_grace: httpx.Client, gate: Gate
) -> None:
    http = without_grace
    gate.close()
    with streaming(http, "monday", FIRST) as events:
        turn_id = next(events)["turn_id"]
        assert gate.reached.wait(60)
    calls = gate.calls
    with streaming(http, "monday", FIRST) as events:  # waits for the conversation, which the first turn holds
        session = next(events)
        assert (session["turn_id"], session["resumed"]) == (turn_id, True)
        assert gate.calls == calls
        gate.open()
        assert [*events][-1]["answer"] == "the drum"


def test_a_broken_off_question_starts_over_where_its_search_cannot_go_on(
    without_grace: httpx.Client, gate: Gate
) -> None:
    http = without_grace
    gate.close()
    with streaming(http, "monday", FIRST) as events:
        turn_id = next(events)["turn_id"]
        assert gate.reached.wait(60)
    with streaming(http, "monday", FIRST, model=f"{COLLECTION}/naive") as events:
        session = next(events)
        assert (session["turn_id"] != turn_id, session["resumed"]) == (True, False)
        gate.open()
        done = [*events][-1]
    assert done["type"] == "done", done
    read = get(http, path_of("monday"))
    assert (read["turns"], read["open_turn"], [each["name"] for each in read["branches"]]) == (
        [done["turn"]],
        None,
        ["main"],
    )


def test_a_stopped_question_is_answered_from_what_was_found(http: httpx.Client, address: str, gate: Gate) -> None:
    gate.close()
    with streaming(http, "a/b", CHAIN.question) as events, httpx.Client(base_url=address, timeout=60) as other:
        next(events)
        assert gate.reached.wait(60)
        assert other.post(path_of("a/b", "questions", "stop")).status_code == 204
        gate.open()
        done = [*events][-1]
    assert (done["stopped"], done["turn"]["answer"]) == (True, done["answer"])
    assert done["usage"]["llm_calls"] <= 4  # of the judges of three chunks, which were in flight, and the answer
    assert http.get(f"/v1/trees/{done['rag_thread_id']}").status_code == 200
    none = http.post(path_of("a/b", "questions", "stop"))
    assert (none.status_code, "answers no question that could be stopped" in none.text) == (409, True)
    assert http.post(path_of("none", "questions", "stop")).status_code == 404
    assert not answered(http, "a/b", FIRST, parent_turn_id="")["stopped"]


def test_the_usage_of_a_stopped_question_has_the_answer_that_was_cut_off(
    http: httpx.Client, address: str, scripted: ScriptedServer
) -> None:
    dam = Dam(stops=lambda request: request.prompt.kind == "read")
    scripted.responses = dam
    scripted.reset()
    with streaming(http, "one", CHAIN.question) as events, httpx.Client(base_url=address, timeout=60) as other:
        next(events)
        assert dam.reached.wait(60)  # in a sub-run: the question itself is answered last
        assert other.post(path_of("one", "questions", "stop")).status_code == 204
        dam.opened.set()
        done = [*events][-1]
    assert done["stopped"]
    assert done["usage"]["llm_calls"] == sum(scripted.requests.values())


def test_the_cost_of_a_turn_has_all_its_calls(http: httpx.Client, settings: Settings) -> None:
    assert answered(http, "one", FIRST)["turn"]["cost_usd"] is None  # the model has no price
    (settings.home / "prices.toml").write_text("[chat.scripted]\nprompt = 1e6\ncompletion = 1e6\n", encoding="utf-8")
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60) as priced:
        turn = answered(priced, "one", THICKNESS)["turn"]
        first, second = get(priced, path_of("one"))["turns"]
        assert second == turn
        for each in (first, second):
            assert each["cost_usd"] == each["usage"]["prompt_tokens"] + each["usage"]["completion_tokens"] > 0
        body = {"model": MODEL, "messages": [{"role": "user", "content": FIRST}], "chat_id": "two"}
        own = priced.post("/v1/chat/completions", json=body).json()
        assert own["judgetree"]["cost_usd"] == own["usage"]["total_tokens"]


def test_limits_of_a_question_are_its_tree_s(http: httpx.Client) -> None:
    turn = answered(http, "one", CHAIN.question, limits={"max_rec_depth": 0, "max_llm_calls": 60})["turn"]
    assert turn["overrides"] == {"max_rec_depth": "0", "max_llm_calls": "60"}
    assert get(http, f"/v1/trees/{turn['rag_thread_id']}", format="json")["fingerprint"]["max_rec_depth"] == "0"


def test_a_failed_model_is_an_error_and_its_turn_stays_open(http: httpx.Client, gate: Gate) -> None:
    gate.reply = ChatReply(text="overloaded", status=500)
    *_, error, done = ask(http, "monday", FIRST)
    assert (error["type"], done["type"], done["status"], done["turn"]) == ("error", "done", "failed", None)
    assert "overloaded" in error["message"] == done["error"]
    read = get(http, path_of("monday"))
    assert (read["turns"], read["open_turn"]["query"], read["title"]) == ([], FIRST, FIRST)
    assert read["collection"] == read["open_turn"]["collection"] == COLLECTION
    gate.reply = None
    assert answered(http, "monday", FIRST)["turn_id"] == read["open_turn"]["turn_id"]


def test_a_wrong_setting_that_shows_late_ends_the_stream(http: httpx.Client, gate: Gate) -> None:
    gate.reply = ChatReply(text="no such key", status=401)
    *_, last = ask(http, "monday", FIRST)
    assert last["type"] == "error"
    assert "no such key" in last["message"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"model": "notes/none"}, 404, "notes/judge"),
        ({"question": " "}, 400, "The question is empty"),
        ({"question": "a\0b"}, 400, "NUL"),
        ({"question": "x" * 20_001}, 400, "longer than 20000 characters"),
        ({"parent_turn_id": "none"}, 400, "has no turn 'none' to follow"),
        ({"request_id": "\ud800"}, 422, "request_id"),
        ({"topk": 0}, 422, "topk"),
        ({"limits": {"max_llm_calls": 61}}, 400, "max_llm_calls=61 is not allowed: this server has 60"),
        ({"limits": {"max_rec_depth": 4}}, 400, "max_rec_depth=4"),
        ({"limits": {"max_tokens": 4}}, 422, "max_tokens"),
        ({"limits": {"sharing": "equal"}}, 422, "sharing"),
        ({"search_type": "odd"}, 422, "search_type"),
        ({"llm": "openai:gpt-4o"}, 422, "llm"),
    ],
)
def test_what_is_wrong_from_the_start_has_a_status_and_leaves_nothing(
    http: httpx.Client, change: dict[str, object], status: int, words: str
) -> None:
    body = json.dumps({"model": MODEL, "question": FIRST} | change)  # in ASCII
    answer = http.post(path_of("monday", "questions"), content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    assert get(http, "/v1/conversations")["total"] == 0


def test_a_question_has_a_policy_of_its_own(http: httpx.Client) -> None:
    done = answered(http, "monday", FIRST, policy="best_first")
    assert done["turn"]["overrides"] == {"policy": "best_first"}
    assert get(http, f"/v1/trees/{done['rag_thread_id']}")["fingerprint"]["policy.name"] == "best_first"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "own_module:policy"}, "best_first"),
        ({"policy": "best_first", "model": "notes/naive"}, "judges nothing"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(http: httpx.Client, given: dict[str, object], words: str) -> None:
    body = {"model": MODEL, "question": FIRST, **given}
    answer = http.post(path_of("monday", "questions"), json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
