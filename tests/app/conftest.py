"""What the tests of the command line stand on: a small corpus with a question of two steps, indexed once a worker."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from judgetree.app.cli import all_commands, main
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.endpoints import Responses
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.settings import load_settings
from tests.app.talks import DRUM, embedded_texts
from tests.facts import fact, question
from tests.modules.conftest import lite_server

__all__ = ["lite_server"]

COLLECTION = "notes"
SUB_QUESTION = "How thick is the wall of the drum?"
CHAIN = question(
    "en-2hop-02",
    "How thick is the wall of the vessel that Norm A names?",
    "40 mm",
    fact("a.md", "Norm A names the drum.", "Which vessel does Norm A name?", "the drum", SUB_QUESTION),
    fact("b.md", "The drum's wall is 40 mm thick.", SUB_QUESTION, "40 mm"),
    aliases=("40 millimetres",),
)
CHINESE_FACT = fact("zh.md", "甲类容器的壁厚为四十毫米。", "甲类容器的壁厚是多少？", "四十毫米")
CHINESE = question("zh", CHINESE_FACT.question, CHINESE_FACT.answer, CHINESE_FACT, lang="zh")
CORPUS = {
    "a.md": "# Norm A\n\nNorm A names the drum.",
    "b.md": "# Drums\n\nThe drum's wall is 40 mm thick.",
    "deep/ladders.txt": "Ladders are painted grey.",
    "zh.md": "甲类容器的壁厚为四十毫米。",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str

    def ok(self) -> Outcome:
        assert self.status == 0, self.err
        return self

    def refused(self, *advice: str) -> Outcome:
        """Check that the command ended as a user error, with no result and this advice."""
        assert (self.status, self.out) == (2, "")
        assert [text for text in advice if text not in self.err] == [], self.err
        return self


Cli = Callable[..., Outcome]


def write_corpus(folder: Path, files: dict[str, str] = CORPUS) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def new_thread() -> str:
    return f"thread-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def indexed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder whose database holds the corpus; only copies of it are written to."""
    folder = tmp_path_factory.mktemp("indexed")
    corpus = write_corpus(folder / "corpus")
    names = ("JUDGETREE_HOME", "JUDGETREE_EMBEDDINGS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(JUDGETREE_HOME=str(folder / "home"), JUDGETREE_EMBEDDINGS="local:use")
    try:
        assert main(["index", str(corpus), "-c", COLLECTION]) == 0
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return folder / "home"


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN, CHINESE], dialogues=[DRUM]) as server:
        yield server


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, scripted: ScriptedServer) -> dict[str, str]:
    """Settings of a command: the scripted model, a quick embedder; terminals of a known width, without colours."""
    chosen = {
        "JUDGETREE_LLM": f"{scripted.base_url}#scripted",
        "JUDGETREE_EMBEDDINGS": "local:use",
        "JUDGETREE_RETRIES": "0",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    return chosen


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, indexed_home: Path, surroundings: dict[str, str]) -> Path:
    """A home folder of the test's own that holds the corpus."""
    own = tmp_path / "home"
    shutil.copytree(indexed_home, own)
    monkeypatch.setenv("JUDGETREE_HOME", str(own))
    return own


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], surroundings: dict[str, str]) -> Cli:
    """The command line in this process."""

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        status = main(list(arguments))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(status=status, out=captured.out, err=captured.err)

    return run


@pytest.fixture(scope="session")
def talking_home(indexed_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the vectors of a dialogue, whose computing would take most of a test's time."""
    own = tmp_path_factory.mktemp("talking") / "home"
    shutil.copytree(indexed_home, own)
    create_embeddings("local:use", load_settings(home=own)).embed_documents([*embedded_texts(), CHAIN.question])
    return own


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, talking_home: Path, cli: Cli) -> Cli:
    """``judgetree chat`` over the corpus, with these lines on a pipe; ``options`` stand for those of conversation s."""
    own = tmp_path / "home"
    shutil.copytree(talking_home, own)
    monkeypatch.setenv("JUDGETREE_HOME", str(own))

    def run(*lines: str, options: tuple[str, ...] = ("-c", COLLECTION, "--conversation", "s")) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return cli("chat", *options)

    return run


def command(*arguments: str) -> list[str]:
    """The command line as a process."""
    return [sys.executable, "-m", "judgetree.app", *arguments]


def every_command() -> dict[str, click.Command]:
    """All commands and groups of the command line, by their words."""

    def below(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(f"{words} {name}".strip(), inner)

    return dict(below("", all_commands()))


def drawn(cli: Cli, *command: str, formats: Sequence[str], folder: Path) -> dict[str, str]:
    """What a command writes with an option for each format."""
    files = {form: folder / f"drawn.{form}" for form in formats}
    done = cli(*command, *(part for form, file in files.items() for part in (f"--{form}", str(file))))
    assert (done.status, done.out) == (0, "")
    return {form: file.read_text(encoding="utf-8") for form, file in files.items()}


def read_to_end(terminal: int) -> bytes:
    """All that programs still write to a terminal, until they have closed it."""
    sent = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while piece := os.read(terminal, 4096):
            sent += piece
    return sent


@dataclass
class Dam:
    """Lets model calls through until one ``stops``; holds that one back, and all that follow."""

    stops: Callable[[ReceivedRequest], bool] = lambda _: False
    answer: Responses = lambda _: None
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    let_through: list[tuple[str, str, str]] = field(default_factory=list)
    """Kind, query and, for a verdict, the passage."""
    held: list[ReceivedRequest] = field(default_factory=list)

    def __call__(self, request: ReceivedRequest) -> ChatReply | None:
        prompt = request.prompt
        if self.stops(request):
            self.reached.set()
        if self.reached.is_set():
            self.held.append(request)
            self.opened.wait(60)
        else:
            self.let_through.append((prompt.kind, prompt.query, prompt.passage if prompt.kind == "judge" else ""))
        return self.answer(request)


def killed(*arguments: str, at: Dam) -> None:
    """Run a command as a process that is killed once the dam holds a call back."""
    with subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert at.reached.wait(60), "the run never came this far"
        process.kill()
    at.opened.set()
