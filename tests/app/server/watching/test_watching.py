"""Health, metrics and the log of a running server."""

from __future__ import annotations

import json
import logging
import queue
from logging.handlers import QueueHandler

import httpx
import pytest

from judgetree.app.server.watching import health
from judgetree.app.server.watching.request_log import JsonLines
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.server.serving import serving
from tests.app.talks import FIRST

SECRET = "sk-abcdefghijklmnop"


@pytest.fixture(autouse=True)
def patient_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a model that answers takes longer than a probe waits for it."""
    monkeypatch.setattr(health, "_TIMEOUT_S", 60.0)


def ask(http: httpx.Client, question: str = FIRST, **headers: str) -> httpx.Response:
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": question}]}
    return http.post("/v1/chat/completions", json=body, headers=headers)


def test_a_server_that_can_answer_is_ready(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    ready = http.get("/readyz")
    assert (ready.status_code, ready.json()) == (
        200,
        {"ready": True, "milvus": "ok", "checkpoints": "ok", "model": "ok"},
    )


def test_a_server_without_its_model_lives_and_is_not_ready(settings: Settings) -> None:
    with (
        serving(settings.with_models(llm="http://127.0.0.1:9/v1#none")) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        assert http.get("/healthz").status_code == 200
        ready = http.get("/readyz", timeout=30)
        assert ready.status_code == 503
        assert {name for name, word in ready.json().items() if word not in ("ok", False)} == {"model"}


def test_a_server_whose_store_was_deleted_is_not_ready(settings: Settings) -> None:
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60) as http:
        assert ask(http).status_code == 200
        for file in settings.home.glob("checkpoints.sqlite*"):
            if file.is_file():
                file.unlink()
        assert ask(http).status_code == 503
        ready = http.get("/readyz")
    assert (ready.status_code, ready.json()["checkpoints"]) == (503, "StoreFailure")


def test_metrics_count_requests_by_door_and_no_foreign_text(http: httpx.Client) -> None:
    ask(http)
    http.get("/v1/models/none")
    http.get("/nowhere/" + "x" * 500)
    http.get("/healthz", headers={"Host": "elsewhere.example"})
    text = http.get("/metrics").text
    assert 'judgetree_requests_total{door="/v1/chat/completions",status="200"} 1.0' in text
    assert 'judgetree_requests_total{door="/v1/models/{model_id:path}",status="404"} 1.0' in text
    assert 'judgetree_requests_total{door="none",status="404"} 1.0' in text
    assert 'judgetree_requests_total{door="none",status="400"} 1.0' in text
    assert "judgetree_running_questions 0.0" in text
    assert "xxx" not in text


def test_requests_are_logged_with_their_id_and_without_texts(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    requests: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logger, handler = logging.getLogger("judgetree.server"), QueueHandler(requests)
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO):
            answer = ask(http, f"{FIRST} {SECRET}", **{"X-Request-Id": "mine-1", "Authorization": f"Bearer {SECRET}"})
            own = requests.get(timeout=30)  # it is logged after the client has its answer
    finally:
        logger.removeHandler(handler)
    assert answer.headers["X-Request-Id"] == "mine-1"
    line = json.loads(JsonLines().format(own))
    expected = {"request_id": "mine-1", "door": "/v1/chat/completions", "status": 200, "caller": "local"}
    assert expected.items() <= line.items()
    everything = json.dumps([line] + [json.loads(JsonLines().format(record)) for record in caplog.records])
    assert not any(text in everything for text in (SECRET, FIRST, "the drum"))


@pytest.mark.parametrize("given", ["a b", "x" * 129, "naïve", ""])
def test_an_id_that_is_no_plain_name_is_replaced(http: httpx.Client, given: str) -> None:
    answer = http.get("/healthz", headers={"X-Request-Id": given.encode()})
    assert answer.headers["X-Request-Id"] not in ("", given)
