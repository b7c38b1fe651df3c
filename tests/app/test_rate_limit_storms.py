"""A storm of HTTP 429: told once with its wait, and left at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.app.conftest import CHAIN, COLLECTION, command, write_corpus
from tests.loopback import QuietHandler, serving

TIMEOUT_S = 45
"""Less than the minute that each call waits."""


@dataclass
class Storm:
    """An endpoint that answers 429 to everything, and asks to wait for a minute."""

    url: str = ""
    refused: list[str] = field(default_factory=list)
    has_begun: threading.Event = field(default_factory=threading.Event)


@pytest.fixture(params=["120", "Thu, 01 Jan 1970 00:02:00 GMT"], ids=["seconds", "date"])
def storm(request: pytest.FixtureRequest) -> Iterator[Storm]:
    found = Storm()

    class Handler(QuietHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return "Thu, 01 Jan 1970 00:00:00 GMT"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}).encode()
            self.answer(body, status=429, headers={"Retry-After": request.param})
            found.refused.append(self.path)
            found.has_begun.set()

    with serving(Handler) as address:
        found.url = f"{address}/v1"
        yield found


def questions(folder: Path) -> Path:
    file = folder / "qa.csv"
    file.write_text("question,answer\nWhat is six by nine?,54\nWhat is six by six?,36\n", encoding="utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("door", ["ask", "eval", "index"])
def test_a_storm_is_told_once_and_left_by_ctrl_c(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storm: Storm, door: str
) -> None:
    monkeypatch.setenv("JUDGETREE_LLM", f"{storm.url}#m")
    corpus = write_corpus(tmp_path / "corpus")
    arguments = {
        "ask": ("ask", CHAIN.question, "-c", COLLECTION),
        "eval": ("eval", "run", "--questions", str(questions(tmp_path)), "--systems", "llm", "--out", "run"),
        "index": ("index", str(corpus), "-c", "other"),
    }[door]
    environment = dict(os.environ)
    if door == "index":
        environment["JUDGETREE_EMBEDDINGS"] = f"{storm.url}#m"
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, bufsize=1
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:  # ends with the process
        said.append(line)
        if "HTTP 429" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=TIMEOUT_S)
    whole = "".join(said) + rest
    assert process.returncode == 130, whole
    assert whole.count("answers HTTP 429") == 1
    assert "made again in" in whole
    assert "given up after 600 s" in " ".join(whole.split())
    assert "Traceback" not in whole
