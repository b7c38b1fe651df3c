"""Names under which the server may be called, and pages that may change something."""

from __future__ import annotations

import pytest

from tests.app.server.safety.conftest import Running

ASK = "/v1/chat/completions"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8808", "chat.example:443"])
def test_own_names_are_served(plain: Running, host: str) -> None:
    with plain.http(Host=host) as http:
        assert http.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "evil.example:127.0.0.1",
        "user@localhost",
        "localhost:80:80",
        "[::1",
        "10.0.0.1",
        "0.0.0.0",
        "",
    ],
)
def test_other_names_are_refused(plain: Running, host: str) -> None:
    with plain.http(Host=host) as http:
        answer = http.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_host")


def test_two_hosts_are_refused(plain: Running) -> None:
    answer = plain.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://chat.example.evil",
        "file://",
    ],
)
def test_pages_of_other_sites_change_nothing(plain: Running, origin: str) -> None:
    with plain.http(Origin=origin) as http:
        # What a page may send without asking first: a form, or text that looks like JSON.
        answer = http.post(ASK, content=b"{}", headers={"Content-Type": "text/plain"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")
        preflight = http.options(ASK, headers={"Access-Control-Request-Method": "POST"})
        assert preflight.status_code == 405
        assert [name for name in preflight.headers if name.startswith("access-control")] == []


@pytest.mark.parametrize("origin", ["", "https://chat.example"])
def test_own_pages_may(plain: Running, origin: str) -> None:
    with plain.http(Origin=origin or f"http://{plain.place}") as http:
        assert http.post(ASK, json={}).status_code == 422  # a door has read it


def test_every_answer_keeps_browsers_from_guessing_and_embedding(plain: Running) -> None:
    with plain.http() as http:
        answers = [http.get("/v1/models"), http.get("/none"), http.get("/v1/models", headers={"Host": "evil.example"})]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
