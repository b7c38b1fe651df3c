"""kill -9 in the middle of a search tree, at the default durability; then the tree is drawn, and the run resumed."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from judgetree.app.cli import main
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ChatRequest
from judgetree.evaluation.datasets.standards_qa import Question
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.calls.record import INTERRUPTED
from judgetree.modules.index.factory import open_index
from judgetree.modules.settings import load_settings
from tests.app.conftest import Outcome
from tests.facts import fact

REST, THIRD = "What is the flash point of the oil of class Delta?", "What is the flash point of Vellin oil?"
ROW = Question(
    id="q",
    lang="en",
    question="What is the flash point of the oil that pump KS-1 needs?",
    answer="212 °C",
    type="3hop",
    supporting=(
        fact("a.md", "Pump KS-1 belongs to class Delta.", "Which class has pump KS-1?", "Delta", REST),
        fact("b.md", "Class Delta runs on Vellin oil.", "Which oil does class Delta run on?", "Vellin oil", THIRD),
        fact("c.md", "Vellin oil flashes at 212 °C.", THIRD, "212 °C"),
    ),
)
NOISE = {"n1.md": "Ladders are painted grey.", "n2.md": "Ropes are checked each spring."}


Call = tuple[str, str, str]
"""Kind, query and, for a verdict, the passage."""


def call_of(request: ChatRequest) -> Call:
    prompt = request.prompt
    return prompt.kind, prompt.query, prompt.passage if prompt.kind == "judge" else ""


@dataclass
class Dam:
    """Keeps count of requests, and lets them through until one matches; holds that one back and all that follow."""

    kind: str = ""
    query: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    let_through: list[Call] = field(default_factory=list)
    held: list[Call] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> ChatReply | None:
        if request.prompt.kind == self.kind and request.prompt.query == self.query:
            self.reached.set()
        if self.reached.is_set():
            self.held.append(call_of(request))
            self.opened.wait(60)
        else:
            self.let_through.append(call_of(request))
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([ROW]) as running:
        yield running


@pytest.fixture(scope="module")
def surroundings(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An indexed folder, and the environment of a command that uses it."""
    folder = tmp_path_factory.mktemp("pumps")
    corpus = folder / "corpus"
    corpus.mkdir()
    texts = {fact.source: fact.quote for fact in ROW.supporting} | NOISE
    for name, text in texts.items():
        (corpus / name).write_text(text, encoding="utf-8")
    home = folder / "home"
    model = f"{server.base_url}#scripted"
    with open_index("pumps", load_settings(home=home, embeddings="local:use"), data_path=corpus) as index:
        index.get_index_done()
    return {
        "JUDGETREE_HOME": str(home),
        "JUDGETREE_LLM": model,
        "JUDGETREE_EMBEDDINGS": "local:use",
        "JUDGETREE_TIMEOUT_S": "60",
    }


def run(*arguments: str, env: dict[str, str]) -> Outcome:
    """A command in this process: only the one that is killed needs its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in env.items():
            patch.setenv(name, value)
        status = main(list(arguments))
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Outcome(status=status, out=said, err=told)


def judgetree(*arguments: str, env: dict[str, str]) -> str:
    done = run(*arguments, env=env)
    assert done.status == 0, done.err
    return done.out


def killed(*arguments: str, env: dict[str, str], at: Dam) -> None:
    """A process that is killed once the dam holds a request back."""
    command = [sys.executable, "-m", "judgetree.app", *arguments]
    with subprocess.Popen(
        command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        assert at.reached.wait(60), "the run never came this far"
        process.send_signal(signal.SIGKILL)
    at.opened.set()


def interrupted(document: dict[str, Any]) -> list[str]:
    """The nodes of a tree whose calls were in flight at the kill, one a call."""
    nodes = SearchTree.from_json(json.dumps(document["tree"])).query_nodes()
    return [record["node"] for node in nodes for record in node.usage if record["error"] == INTERRUPTED]


@pytest.fixture(scope="module")
def undisturbed(server: ScriptedServer, surroundings: dict[str, str]) -> Counter[Call]:
    """The calls of a process that is not killed."""
    server.responses = dam = Dam()
    answer = json.loads(judgetree("ask", ROW.question, "-c", "pumps", "--json", env=surroundings))["answer"]
    assert answer == "212 °C"
    return Counter(dam.let_through)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        pytest.param("judge", REST, id="first verdicts of the first sub-run"),
        pytest.param("read", THIRD, id="answer of the deepest sub-run"),
        pytest.param("read", ROW.question, id="answer of the root"),
    ],
)
def test_a_killed_question_is_drawn_and_resumed(
    server: ScriptedServer, surroundings: dict[str, str], undisturbed: Counter[Call], kind: str, query: str
) -> None:
    thread_id = f"{kind}-{len(query)}"
    server.responses = dam = Dam(kind=kind, query=query)
    killed("ask", ROW.question, "-c", "pumps", "--thread-id", thread_id, env=surroundings, at=dam)

    tree = SearchTree.from_json(judgetree("tree", thread_id, "--json", "-", env=surroundings))
    assert (tree.root.status, tree.root.query) == ("open", ROW.question)
    assert "KS-1" in judgetree("tree", thread_id, "--svg", "-", env=surroundings)

    server.responses = resumed = Dam()
    document = json.loads(judgetree("ask", "--resume", "--thread-id", thread_id, "--json", env=surroundings))
    assert (document["answer"], document["status"]) == ("212 °C", "answered")
    both = Counter(dam.let_through + resumed.let_through)
    assert undisturbed - both == Counter()
    assert (both - undisturbed).total() <= len(interrupted(document)) - len(dam.held), "what was in flight, no more"
    if query == ROW.question:
        assert resumed.let_through == [("read", ROW.question, "")], "every sub-run was finished"
    assert document["usage_this_run"]["llm_calls"] == len(resumed.let_through)


def test_question_without_a_checkpoint_repays_only_in_flight_calls(
    server: ScriptedServer, surroundings: dict[str, str]
) -> None:
    """Written at exit alone, the checkpoints of a killed process hold nothing of what it paid for."""
    env = surroundings | {"JUDGETREE_DURABILITY": "exit"}
    command = ["ask", ROW.question, "-c", "pumps", "--thread-id", "at-exit", "--json"]
    server.responses = dam = Dam(kind="read", query=ROW.question)
    killed(*command, env=env, at=dam)

    server.responses = resumed = Dam()
    document = json.loads(judgetree(*command, env=env))
    assert (document["answer"], document["status"]) == ("212 °C", "answered")
    assert resumed.let_through == [("read", ROW.question, "")]
    assert document["usage_this_run"]["llm_calls"] == 1
    assert interrupted(document) == ["generate"]
    assert document["usage"]["llm_calls"] == len(dam.let_through) + 2, "the books have what the killed process paid"
    journal = sqlite3.connect(Path(env["JUDGETREE_HOME"]) / "checkpoints-calls.sqlite")
    with closing(journal):
        assert journal.execute("SELECT count(*) FROM calls WHERE root = 'at-exit'").fetchone() == (0,), "none is left"


@pytest.mark.parametrize("change", [["Another question?"], [ROW.question, "--max-depth", "1"]])
def test_the_thread_of_another_question_or_other_settings_is_refused(
    server: ScriptedServer, surroundings: dict[str, str], change: list[str]
) -> None:
    server.responses = None
    judgetree("ask", ROW.question, "-c", "pumps", "--thread-id", "taken", env=surroundings)
    done = run("ask", *change, "-c", "pumps", "--thread-id", "taken", env=surroundings)
    assert done.status == 2
    assert "holds another run" in done.err
    assert "Traceback" not in done.err
