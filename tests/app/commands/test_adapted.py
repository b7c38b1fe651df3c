"""What a model refuses by name, and what it is sent in its place, as ``ask`` tells it."""

from __future__ import annotations

import json
from pathlib import Path

from judgetree.app.scripted.endpoints import Outgoing
from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, Cli


def test_ask_says_once_what_its_model_is_not_sent(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    """The temperature was left out of every call, and no line said so."""
    posts = scripted._endpoints._posts
    answer = posts["/v1/chat/completions"]

    def post(raw: bytes) -> Outgoing:
        if "temperature" in json.loads(raw):
            body = {"error": {"message": "temperature is not supported", "param": "temperature"}}
            return Outgoing(status=400, body=json.dumps(body).encode())
        return answer(raw)

    posts["/v1/chat/completions"] = post
    done = cli("ask", CHAIN.question, "-c", COLLECTION)
    assert done.status == 0
    assert " ".join(done.err.split()).count("refuses temperature (left out); its calls are sent so") == 1
