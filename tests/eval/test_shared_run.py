"""One run by several real processes over a Milvus server and PostgreSQL: each question once, even if one is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ChatRequest
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.rows.store import RunStore
from tests.eval.dataset_files import standards_row, write_standards
from tests.modules.conftest import LiteServer

QUESTIONS = 5


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """As many questions as drums, each answered by a document of its own."""
    quotes = {f"{number}.md": f"Drum {number} is {number + 3} mm thick." for number in range(QUESTIONS)}
    rows = (
        standards_row(f"q{number}", f"How thick is drum {number}?", f"{number + 3} mm", source, quote)
        for number, (source, quote) in enumerate(quotes.items())
    )
    return write_standards(tmp_path / "data", quotes, *rows)


class Gate:
    """Holds the first request until ``opened``, and notes which question was asked how often, and when."""

    def __init__(self, *, together: int = 0) -> None:
        self._meeting = threading.Barrier(together) if together else None
        self._noting = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.first = ""
        self.again_after_killing: bool | None = None
        self.killing = threading.Event()
        self.reached = threading.Event()
        self.all_others = threading.Event()
        self.opened = threading.Event()

    def __call__(self, request: ChatRequest) -> ChatReply | None:
        with self._noting:
            question = request.prompt.query
            self.first = self.first or question
            self.asked[question] += 1
            is_first = self.asked.total() == 1
            if question == self.first and not is_first:
                self.again_after_killing = self.killing.is_set()
            if len(self.asked) == QUESTIONS:
                self.all_others.set()
            meets = self._meeting is not None and self.asked.total() <= self._meeting.parties
        if self._meeting is not None and meets:
            self._meeting.wait(120)
        elif self._meeting is None and is_first:
            self.reached.set()
            self.opened.wait(120)
        return None


@contextmanager
def worker(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    document: dict[str, object] = json.loads(out)
    return document


@contextmanager
def command_of(
    llm: str, dataset: str, out: Path, lite_server: LiteServer, postgres_url: str, *, home: Path
) -> Iterator[list[str]]:
    """A command that runs a data set with the servers that processes share; its settings are in the environment."""
    settings = {
        "LLM": llm,
        "EMBEDDINGS": "local:use",
        "MILVUS_URI": lite_server.uri,
        "CHECKPOINTS": postgres_url,
        "HOME": str(home),
    }
    config = out.with_name("experiment.yaml")
    config.write_text("topk: 1\nsearch_type: sparse\nconcurrency: 1\ncache: 'off'\n", encoding="utf-8")
    options = ["--dataset", dataset, "--systems", "naive", "--config", str(config), "--out", str(out), "--json"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(f"JUDGETREE_{name}", value)
        yield [sys.executable, "-m", "judgetree.app", "eval", "run", *options]


@pytest.fixture
def command(
    questions: Path, tmp_path: Path, lite_server: LiteServer, postgres_url: str
) -> Iterator[tuple[ScriptedServer, list[str]]]:
    with ScriptedServer(load_standards_qa(questions)) as server:
        llm, dataset, home = f"{server.base_url}#scripted", f"standards:{questions}", tmp_path / "home"
        with command_of(llm, dataset, tmp_path / "run", lite_server, postgres_url, home=home) as run:
            yield server, run


def test_two_processes_share_the_questions_of_a_run(command: tuple[ScriptedServer, list[str]], tmp_path: Path) -> None:
    server, run = command
    server.responses = gate = Gate(together=2)
    with worker(run) as one, worker(run) as other:
        summaries = [ended(one), ended(other)]
    assert sum(int(str(summary["asked"])) for summary in summaries) == QUESTIONS
    assert all(int(str(summary["asked"])) >= 1 for summary in summaries)
    assert all(int(str(summary["asked"])) + int(str(summary["kept"])) == QUESTIONS for summary in summaries)
    assert set(gate.asked.values()) == {1}
    rows = RunStore(tmp_path / "run").read_attempts()
    assert sorted(row.question_id for row in rows) == [f"q{number}" for number in range(QUESTIONS)]
    assert {row.status for row in rows} == {"answered"}
    assert not (tmp_path / "run" / "checkpoints.sqlite").exists()


def test_question_of_a_killed_process_is_taken_over(command: tuple[ScriptedServer, list[str]], tmp_path: Path) -> None:
    server, run = command
    server.responses = gate = Gate()
    with worker(run) as victim:
        assert gate.reached.wait(120), "the first process never asked"
        with worker(run) as survivor:
            assert gate.all_others.wait(120), "the second process never came this far"
            gate.killing.set()
            victim.kill()
            victim.wait()
            gate.opened.set()
            assert ended(survivor)["asked"] == QUESTIONS
    assert gate.again_after_killing is True, "it was asked while the first process was still at it"
    assert sorted(row.question_id for row in RunStore(tmp_path / "run").read_attempts()) == [
        f"q{number}" for number in range(QUESTIONS)
    ]


def test_process_that_cannot_share_is_refused(command: tuple[ScriptedServer, list[str]], tmp_path: Path) -> None:
    _, run = command
    with RunStore(tmp_path / "run").held(shared=True):
        alone = {**os.environ, "JUDGETREE_CHECKPOINTS": ""}
        refused = subprocess.run(run, env=alone, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 2
    assert f"process {os.getpid()} on " in refused.stderr
