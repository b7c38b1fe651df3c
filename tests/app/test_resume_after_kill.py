"""kill -9 in the middle of a search tree, at the default durability; then the tree is drawn, and the run resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judgetree.app.scripted_answers import ChatReply
from judgetree.app.scripted_server import ScriptedServer
from judgetree.app.scripted_wire import ChatRequest
from judgetree.evaluation.datasets import Question, SupportingFact
from judgetree.modules.index_factory import open_index
from judgetree.modules.settings import load_settings

REST, THIRD = "What is the flash point of the oil of class Delta?", "What is the flash point of Vellin oil?"
ROW = Question(
    id="q",
    lang="en",
    question="What is the flash point of the oil that pump KS-1 needs?",
    answer="212 °C",
    type="3hop",
    supporting=(
        SupportingFact(
            source="a.md",
            quote="Pump KS-1 belongs to class Delta.",
            question="Which class has pump KS-1?",
            answer="Delta",
            remaining_question=REST,
        ),
        SupportingFact(
            source="b.md",
            quote="Class Delta runs on Vellin oil.",
            question="Which oil does class Delta run on?",
            answer="Vellin oil",
            remaining_question=THIRD,
        ),
        SupportingFact(source="c.md", quote="Vellin oil flashes at 212 °C.", question=THIRD, answer="212 °C"),
    ),
)
NOISE = {"n1.md": "Ladders are painted grey.", "n2.md": "Ropes are checked each spring."}


@dataclass
class Dam:
    """Lets requests through until the one that matches, then holds back that one and all that follow."""

    kind: str
    query: str
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    answered: int = 0

    def __call__(self, request: ChatRequest) -> ChatReply | None:
        if request.prompt.kind == self.kind and request.prompt.query == self.query:
            self.reached.set()
        if self.reached.is_set() and not self.opened.is_set():
            self.opened.wait(60)
        else:
            self.answered += 1
        return None


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([ROW]) as running:
        yield running


@pytest.fixture
def surroundings(server: ScriptedServer, tmp_path: Path) -> dict[str, str]:
    """An indexed folder, and the environment of a command that uses it."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    texts = {fact.source: fact.quote for fact in ROW.supporting} | NOISE
    for name, text in texts.items():
        (corpus / name).write_text(text, encoding="utf-8")
    home = tmp_path / "home"
    model = f"{server.base_url}#scripted"
    with open_index("pumps", load_settings(home=home, embeddings="local:use"), data_path=corpus) as index:
        index.get_index_done()
    return os.environ | {
        "JUDGETREE_HOME": str(home),
        "JUDGETREE_LLM": model,
        "JUDGETREE_EMBEDDINGS": "local:use",
        "JUDGETREE_TIMEOUT_S": "60",
    }


def judgetree(*arguments: str, env: dict[str, str]) -> str:
    command = [sys.executable, "-m", "judgetree.app", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("kind", "query", "most_paid_twice"),
    [
        ("judge", REST, 3),  # the first level of sub-runs has begun: at most its verdicts were in flight
        ("read", THIRD, 3),  # the deepest run has its verdicts, perhaps not yet all on disk
        ("read", ROW.question, 0),  # every sub-run is finished
    ],
)
def test_a_killed_question_is_drawn_and_resumed(
    server: ScriptedServer, surroundings: dict[str, str], kind: str, query: str, most_paid_twice: int
) -> None:
    undisturbed = json.loads(judgetree("ask", ROW.question, "-c", "pumps", "--json", env=surroundings))
    assert undisturbed["answer"] == "212 °C"
    calls = sum(server.requests.values())

    dam = Dam(kind=kind, query=query)
    server.responses = dam
    command = [sys.executable, "-m", "judgetree.app", "ask", ROW.question, "-c", "pumps", "--thread-id", "killed"]
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert dam.reached.wait(60), "the run never came this far"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    paid_before = dam.answered

    tree = json.loads(judgetree("tree", "killed", "--json", "-", env=surroundings))
    assert tree["root"]["status"] == "open"
    assert tree["root"]["query"] == ROW.question
    svg = judgetree("tree", "killed", "--svg", "-", env=surroundings)
    assert svg.startswith("<") and "KS-1" in svg

    dam.opened.set()
    dam.answered = 0
    resumed = json.loads(judgetree("ask", "--resume", "--thread-id", "killed", "--json", env=surroundings))
    assert (resumed["answer"], resumed["status"]) == ("212 °C", "answered")
    assert calls <= paid_before + dam.answered <= calls + most_paid_twice
    again = json.loads(judgetree("ask", "--resume", "--thread-id", "killed", "--json", env=surroundings))
    assert again["answer"] == "212 °C"
    assert again["usage_this_run"]["llm_calls"] == 0


@pytest.mark.parametrize("change", [["Another question?"], [ROW.question, "--max-depth", "1"]])
def test_the_thread_of_another_question_or_other_settings_is_refused(
    surroundings: dict[str, str], change: list[str]
) -> None:
    judgetree("ask", ROW.question, "-c", "pumps", "--thread-id", "taken", env=surroundings)
    command = [sys.executable, "-m", "judgetree.app", "ask", *change, "-c", "pumps", "--thread-id", "taken"]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "holds another run" in done.stderr
    assert "Traceback" not in done.stderr
