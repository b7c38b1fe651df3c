"""Questions to the knowledge chat over HTTP."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.app.server.serving.options import ServerOptions
from judgetree.graphs.conversations import Conversations
from judgetree.modules.judge.prompts import INSERT_BLOCK_SYSTEM
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, Dam, command
from tests.app.server.knowledge.lines import Answered, answer, events_in
from tests.app.server.serving import serving
from tests.app.talks import FIRST, THICKNESS

MODEL = f"{COLLECTION}/judge"
LAST_CALL = ("read", CHAIN.question)


def test_an_answer_begins_with_progress_and_ends_with_done(http: httpx.Client) -> None:
    given = answer(http, CHAIN.question, session_id="one", model_id=MODEL)
    assert given.names == ["THINK", "SESSION", "CONTENT", "SOURCE", "DONE"]
    assert given.content == CHAIN.answer
    assert [source["source"] for source in given.documents["SOURCE"]] == ["a.md", "b.md"]
    assert given.session["session_id"] == given.done["session_id"] == "one"
    assert given.done["status"] == "answered"
    assert given.done["turn_id"] == given.session["turn_id"]


def test_a_follow_up_needs_the_session_alone(http: httpx.Client) -> None:
    first = answer(http, FIRST)
    name = first.session["session_id"]
    second = answer(http, THICKNESS, session_id=name)
    assert second.content == "40 mm"
    assert second.session["parent_turn_id"] == first.session["turn_id"]
    apart = answer(http, FIRST, session_id=name, parent_turn_id="")
    assert (apart.session["parent_turn_id"], apart.session["branch"]) == ("", "branch-2")


def test_a_request_chooses_among_the_owner_s_models(settings: Settings, scripted: ScriptedServer) -> None:
    options = ServerOptions(llms={"large": f"{scripted.base_url}#large"})
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        scripted.responses = dam = Dam(lambda request: request.model == "large", answer=lambda _: None)
        dam.opened.set()
        for model_id in ("large", f"{COLLECTION}/naive@large"):
            assert answer(http, FIRST, session_id=model_id, model_id=model_id).content == "the drum"
        assert [request.prompt.kind for request in dam.held if request.model == "large"] == ["read", "read"]
        spec = f"{scripted.base_url}#large"
        refused = http.post("/knowledge_chat_conversation", json={"question": FIRST, "model_id": spec})
        assert refused.status_code == 404


def test_the_filter_puts_key_passages_into_the_sources(settings: Settings, scripted: ScriptedServer) -> None:
    models: list[str] = []

    def noting(request: ReceivedRequest) -> None:
        if request.messages[0][1] == INSERT_BLOCK_SYSTEM:
            models.append(request.model)

    scripted.responses = noting
    options = ServerOptions(llms={"small": f"{scripted.base_url}#small"})
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        body = {"model_id": f"{COLLECTION}/naive", "rerank_top_n": 2, "use_insert_block": True}
        given = answer(http, FIRST, insert_block_llm_id="small", **body)
        assert given.content == "the drum"
        (source,) = given.documents["SOURCE"]
        assert (source["source"], source["key_passage"]) == ("a.md", "Norm A names the drum.")
        assert source["reason"] == "It holds a needed fact."
        assert given.done["insert_block"] == {"judged": 2, "taken_out": 1, "unknown": 0, "none_left": False}
        assert set(models) == {"small"}
        without = answer(http, FIRST, model_id=f"{COLLECTION}/naive", rerank_top_n=2)
        assert len(without.documents["SOURCE"]) == 2
        assert without.done["insert_block"] is None
        refused = http.post("/knowledge_chat_conversation", json={"question": FIRST, "insert_block_llm_id": "large"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (404, "insert_block_llm_id")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"model_id": "notes/none"}, 404, "notes/judge"),
        ({"model_id": "notes/judge@large"}, 404, "--name-llm"),
        ({"model_id": "fast"}, 404, "fast"),
        ({"question": " \n"}, 422, "question"),
        ({"question": "long " * 5000}, 400, "longer than 20000 characters"),
        ({"question": "a\x00b"}, 422, "NUL"),
        ({"session_id": "a\x00b"}, 422, "NUL"),
        ({"rerank_top_n": 0}, 422, "rerank_top_n"),
    ],
)
def test_wrong_requests_are_refused(http: httpx.Client, change: dict[str, object], status: int, words: str) -> None:
    refused = http.post("/knowledge_chat_conversation", json={"question": FIRST} | change)
    assert refused.status_code == status
    assert words in refused.json()["error"]["message"]


def test_an_unknown_parent_and_a_failed_model_are_errors_of_the_stream(http: httpx.Client, settings: Settings) -> None:
    unknown = answer(http, FIRST, parent_turn_id="none")
    assert unknown.names == ["THINK", "ERROR", "DONE"]
    assert "'none'" in unknown.texts["ERROR"]
    down = settings.with_models(llm="http://127.0.0.1:9/v1#none")
    with serving(down) as url, httpx.Client(base_url=url, timeout=60) as broken:
        failed = answer(broken, FIRST)
    assert failed.names[-2:] == ["ERROR", "DONE"]
    assert failed.done["status"] == "failed"


@pytest.mark.slow
def test_another_worker_takes_over_and_begins_the_answer_again(settings: Settings, scripted: ScriptedServer) -> None:
    """The first worker is killed before the last call: the turn is kept once, and no verdict is paid for twice."""
    scripted.responses = dam = Dam(lambda request: (request.prompt.kind, request.prompt.query) == LAST_CALL)
    seen = Answered()
    with a_worker() as (worker, http):
        body = {"question": CHAIN.question, "session_id": "one"}
        with (
            pytest.raises(httpx.RemoteProtocolError),
            http.stream("POST", "/knowledge_chat_conversation", json=body) as response,
        ):
            for name, text in events_in(response.iter_lines()):
                seen.take(name, text)
                if name == "SESSION":
                    assert dam.reached.wait(60)
                    worker.kill()
    assert seen.names == ["THINK", "SESSION"]
    dam.opened.set()
    verdicts = [call for call in dam.let_through if call[0] == "judge"]
    scripted.responses = after = Dam()
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60) as second:
        again = answer(second, CHAIN.question, session_id="one")
    assert again.names == ["THINK", "SESSION", "RESTART", "CONTENT", "SOURCE", "DONE"]
    assert again.documents["RESTART"] == [{"events": ["THINK", "CONTENT"]}]
    assert again.content == CHAIN.answer
    assert again.session["turn_id"] == seen.session["turn_id"]
    assert verdicts
    assert not set(verdicts) & set(after.let_through)
    with Conversations(COLLECTION, settings=settings) as conversations:
        assert [turn["query"] for turn in conversations.conversation("one").turns()] == [CHAIN.question]


@contextmanager
def a_worker() -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A server as a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(command("serve", "--port", str(port)), stderr=subprocess.DEVNULL) as worker:
        try:
            transport = httpx.HTTPTransport(retries=8)  # until it listens
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, transport=transport) as http:
                assert http.get("/v1/models").status_code == 200
                yield worker, http
        finally:
            worker.kill()
