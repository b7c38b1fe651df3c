"""Bodies and heads that are too large or too slow, over sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.app.server.safety.conftest import Running

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def code_of(answer: bytes) -> str:
    return answer.partition(b"\r\n")[0].split()[1].decode()


def test_a_body_that_says_it_is_too_large_is_not_read(plain: Running) -> None:
    answer = plain.raw(POST + b"Content-Length: 100000000\r\n\r\n")
    assert code_of(answer) == "413"
    assert b'"body_too_large"' in answer


def test_a_hundred_megabytes_in_pieces_are_not_read(plain: Running) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1600):
            sent += 65_536
            yield b" " * 65_536

    with plain.http() as http:
        answer = http.post("/v1/chat/completions", content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert sent < 50_000_000


@pytest.mark.parametrize("length", ["-1", "1e3", "10, 10000000", "0x10"])
def test_lengths_that_are_no_numbers_are_refused(plain: Running, length: str) -> None:
    assert code_of(plain.raw(POST + f"Content-Length: {length}\r\n\r\n".encode())) == "400"


def test_a_length_beside_chunks_cannot_hide_a_request(plain: Running) -> None:
    hidden = b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = plain.raw(POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + hidden)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_only_uploads_may_be_larger(plain: Running) -> None:
    for path, code in (("/v1/collections/notes/documents", 404), ("/v1/collections/a/b/documents", 413)):
        with plain.http() as http:
            status = http.post(path, content=b"x" * 20_000).status_code
            assert status == code or (code == 404 and status != 413)


def test_a_slow_body_ends(plain: Running) -> None:
    with plain.connected() as connection:
        connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        answer = connection.recv(65_536)
    assert code_of(answer) == "408"


def test_a_body_that_drips_ends_too(plain: Running) -> None:
    with plain.connected() as connection:
        connection.sendall(POST + b"Content-Length: 5000\r\n\r\n")
        connection.settimeout(0.05)
        answer = b""
        until = time.monotonic() + 60
        while not answer and time.monotonic() < until:
            connection.sendall(b" ")
            try:
                answer = connection.recv(65_536)
            except TimeoutError:
                continue
    assert code_of(answer) == "408"


@pytest.mark.parametrize("sent", [b"", b"GET /v1/models HTTP/1.1\r\nHost: local"])
def test_a_slow_head_ends(plain: Running, sent: bytes) -> None:
    with plain.connected() as connection:
        connection.sendall(sent)
        assert connection.recv(65_536) == b""


def test_a_slow_second_head_ends(plain: Running) -> None:
    with plain.connected() as connection:
        connection.sendall(b"HEAD /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert code_of(connection.recv(65_536)) == "404"
        connection.sendall(b"GET /none HT")
        assert connection.recv(65_536) == b""


def test_a_large_head_is_refused(plain: Running) -> None:
    many = b"".join(b"X-%d: %s\r\n" % (i, b"x" * 1000) for i in range(60))
    assert code_of(plain.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + many)) == "400"


def test_no_web_socket_opens(plain: Running) -> None:
    upgrade = (
        b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
    )
    assert b" 101 " not in plain.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n")
