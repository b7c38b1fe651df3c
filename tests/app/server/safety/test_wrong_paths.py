"""Paths that clients get wrong, and HEAD requests."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1", "base URL of clients. GET /v1/models"),
        ("/v1/", "base URL of clients. GET /v1/models"),
        ("/v1/completions", "no bare prompts. Use POST /v1/chat/completions"),
        ("/completions", "no bare prompts. Use POST /v1/chat/completions"),
        ("/v1/embeddings", "GET /v1/collections/{name}/search"),
        ("/nothing", "There is no '/nothing'. GET /openapi.json"),
        ("/v1/v1/models", "There is no '/v1/v1/models'. GET /openapi.json"),
        ("/%00", r"There is no '/\\x00'. GET /openapi.json"),
        (f"/v1/collections/{COLLECTION}/b", "a name with / in it is sent with %2F"),
    ],
)
def test_unknown_paths_are_told_what_to_use(http: httpx.Client, path: str, words: str) -> None:
    for method in ("GET", "POST"):
        answer = http.request(method, path)
        assert answer.status_code == 404
        assert words.replace("\\\\", "\\") in answer.json()["error"]["message"]


def test_names_with_a_slash_are_names_wherever_a_path_takes_one(http: httpx.Client) -> None:
    described = http.get("/openapi.json").json()["paths"]
    for path, operations in described.items():
        for method in operations:
            answer = http.request(method, re.sub(r"\{\w+\}", "a%2Fb", path), json={}, timeout=10)
            error = answer.json()["error"] if answer.status_code >= 400 else {}
            assert error.get("code") != "unknown_path", (method, path)


def test_the_wrong_method_is_told_the_right_one(http: httpx.Client) -> None:
    answer = http.put("/v1/models")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json()["error"]["message"].startswith("'/v1/models' takes GET, not PUT. ")


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
