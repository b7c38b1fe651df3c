"""Errors that holders of keys read: without addresses, paths and replies of models, which the log has."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.errors import as_api_error, failure_words, hides_causes
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.errors import CollectionError, ModelCallError, StoreFailure
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.server.serving import serving
from tests.app.talks import FIRST

MODEL = f"{COLLECTION}/judge"
RAW = "the raw reply of a model"
DOORS = {
    "/v1/chat/completions": {"model": MODEL, "messages": [{"role": "user", "content": FIRST}]},
    "/v1/chat/completions?stream": {"model": MODEL, "messages": [{"role": "user", "content": FIRST}], "stream": True},
    "/v1/chat/completions?fast": {"model": "fast", "messages": [{"role": "user", "content": FIRST}]},
    "/v1/conversations/one/questions": {"model": MODEL, "question": FIRST},
    "/knowledge_chat_conversation": {"model_id": MODEL, "question": FIRST, "session_id": "two"},
}


@pytest.fixture
def failing(scripted: ScriptedServer) -> ScriptedServer:
    scripted.responses = lambda _: ChatReply(text=RAW, status=401)
    return scripted


@pytest.fixture
def keyed(settings: Settings) -> Iterator[httpx.Client]:
    with closing(KeyTables(settings)) as tables:
        _, key = KeyBook(tables).add("ada", collections=None)
    with (
        serving(settings, ServerOptions(needs_keys=True)) as url,
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
    ):
        yield http


@pytest.mark.parametrize("door", DOORS)
def test_a_failed_model_is_not_quoted_to_a_key_and_stands_in_the_log(
    keyed: httpx.Client, failing: ScriptedServer, caplog: pytest.LogCaptureFixture, door: str
) -> None:
    with caplog.at_level(logging.WARNING):
        said = keyed.post(door, json=DOORS[door]).text
    assert "the log of the server says why" in said
    assert RAW not in said
    assert failing.base_url not in said
    assert RAW in caplog.text


def test_the_user_of_this_machine_reads_the_cause(http: httpx.Client, failing: ScriptedServer) -> None:
    said = http.post("/v1/chat/completions", json=DOORS["/v1/chat/completions"]).json()["error"]["message"]
    assert RAW in said
    assert failing.base_url in said


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (
            ModelCallError("Model 'a' at http://b/v1 failed: c"),
            502,
            "A model of the server did not answer as it should.",
        ),
        (StoreFailure("postgresql://db/x refused"), 503, "A part of the server does not work."),
        (CollectionError("No collection 'a' in http://milvus:19530/x."), 400, "No collection 'a' in …"),
        (
            CollectionError("No collection 'a' in /var/lib/jt/milvus.db: make it."),
            400,
            "No collection 'a' in …: make it.",
        ),
        (CollectionError("It is 3 km/h or a/b."), 400, "It is 3 km/h or a/b."),
    ],
)
def test_each_kind_of_error_has_words_without_its_cause(error: Exception, status: int, words: str) -> None:
    token = hides_causes.set(True)
    try:
        shown = as_api_error(error)
        assert failure_words("") == ""
    finally:
        hides_causes.reset(token)
    assert (shown.status, shown.body.message[: len(words)]) == (status, words)
    assert as_api_error(error).body.message == str(error)
