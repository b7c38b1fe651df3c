"""What the tests of search trees over HTTP stand on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.app.conftest import CHAIN, COLLECTION, SUB_QUESTION, Dam, command, new_thread


def ask(http: httpx.Client, question: str = CHAIN.question, **headers: str) -> str:
    """Ask in a new conversation; returns the thread of the search."""
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": question}]}
    answered = http.post("/v1/chat/completions", json=body, headers=headers)
    assert answered.status_code == 200, answered.text
    return str(answered.json()["judgetree"]["thread_id"])


@pytest.fixture
def thread(http: httpx.Client) -> str:
    """Thread of a question that a conversation has asked."""
    return ask(http)


def at_the_sub_answer() -> Dam:
    """A dam before the sub-question is answered, when all is judged."""
    return Dam(lambda request: (request.prompt.kind, request.prompt.query) == ("read", SUB_QUESTION))


@contextmanager
def held_elsewhere(dam: Dam) -> Iterator[str]:
    """A question that another process asks, up to the dam; yields its thread. It ends with the dam."""
    thread = new_thread()
    asked = command("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread)
    with subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert dam.reached.wait(60), "the run never came this far"
            yield thread
            assert process.wait(60) == 0, process.stderr and process.stderr.read()
        finally:
            dam.opened.set()
            process.kill()
