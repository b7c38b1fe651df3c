"""Paths that clients get wrong, and HEAD requests."""

from __future__ import annotations

import httpx
import openai
import pytest

from tests.app.conftest import COLLECTION
from tests.app.server.conversations.asking import answered
from tests.app.talks import FIRST


@pytest.mark.parametrize("path", ["/chat/completions", "/models", f"/models/{COLLECTION}/judge", "/collections"])
def test_a_forgotten_v1_is_named(http: httpx.Client, path: str) -> None:
    for method in ("GET", "POST"):
        answer = http.request(method, path)
        assert answer.status_code == 404
        assert f"but /v1{path}: end the client's base URL in /v1" in answer.json()["error"]["message"]


@pytest.mark.parametrize("base", ["/v1", ""])
def test_the_responses_api_is_told_what_to_use(address: str, base: str) -> None:
    with (
        openai.OpenAI(base_url=f"{address}{base}", api_key="none", max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match=r"no Responses API. Use POST /v1/chat/completions"),
    ):
        client.responses.create(model=f"{COLLECTION}/judge", input=FIRST)


def test_other_unknown_paths_stay_unknown(http: httpx.Client) -> None:
    for path in ("/nothing", "/v1/nothing", "/v1/v1/models", "/%00", "/v1"):
        answer = http.get(path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (404, "Not Found")


@pytest.mark.parametrize(
    "path",
    ["/", "/assets/js/main.js", "/assets/none", "/healthz", "/openapi.json", "/v1/models", "/v1/none", "/metrics"],
)
def test_head_answers_as_get_does_without_a_body(http: httpx.Client, path: str) -> None:
    changing = ("date", "x-request-id", "content-length" if path == "/metrics" else "date")
    got, head = ({**answer.headers, "status": answer.status_code} for answer in (http.get(path), http.head(path)))
    assert {k: v for k, v in head.items() if k not in changing} == {k: v for k, v in got.items() if k not in changing}
    assert http.head(path).content == b""


def test_head_of_a_stream_ends_with_its_headers(http: httpx.Client) -> None:
    thread = answered(http, "one", FIRST)["rag_thread_id"]
    for _ in range(3):
        head = http.head(f"/v1/trees/{thread}/events")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
    assert http.head("/v1/chat/completions").status_code == 405
