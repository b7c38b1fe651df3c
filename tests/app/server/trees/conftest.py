"""What the tests of search trees over HTTP stand on."""

from __future__ import annotations

import httpx
import pytest

from tests.app.conftest import CHAIN, COLLECTION


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
