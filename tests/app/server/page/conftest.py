"""What the tests of the web page stand on: a server over the example corpus, and a browser without a word of error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgetree.app.cli import main
from judgetree.app.scripted.server import ScriptedServer, find_dialogues
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import load_settings
from tests.app.server.page.looking import REPO
from tests.app.server.serving import serving
from tests.driver import Page, browser

QUESTIONS = REPO / "data" / "standards_qa.jsonl"
COLLECTION = "standards"
ASKED = ("en-single-01", "en-2hop-01", "en-2hop-02", "zh-2hop-02")


@contextmanager
def surroundings(**given: str) -> Iterator[None]:
    """Set environment variables for a while, also where pytest's ``monkeypatch`` does not reach."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def standards_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder whose database holds the example corpus."""
    home = tmp_path_factory.mktemp("standards") / "home"
    with surroundings(JUDGETREE_HOME=str(home), JUDGETREE_EMBEDDINGS="local:use"):
        assert main(["index", str(REPO / "data" / "standards"), "-c", COLLECTION]) == 0
    return home


@pytest.fixture(scope="session")
def runs(standards_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two evaluation runs over the corpus: one that asks on, and one of a single level."""
    folder = tmp_path_factory.mktemp("runs")
    data = folder / "data"
    data.mkdir()
    (data / "standards").symlink_to(REPO / "data" / "standards")
    rows = [line for line in QUESTIONS.read_text(encoding="utf-8").splitlines() if json.loads(line)["id"] in ASKED]
    (data / "few.jsonl").write_text("\n".join(rows), encoding="utf-8")
    asked = ["--dataset", f"standards:{data / 'few.jsonl'}", "--corpus", COLLECTION, "--systems", "naive,judge"]
    with ScriptedServer(QUESTIONS) as server:
        chosen = {"JUDGETREE_LLM": f"{server.base_url}#scripted", "JUDGETREE_EMBEDDINGS": "local:use"}
        with surroundings(JUDGETREE_HOME=str(standards_home), **chosen):
            for name, depth in (("deep", "3"), ("shallow", "0")):
                out = ["--out", str(folder / "all" / name), "--max-depth", depth]
                assert main(["eval", "run", *asked, *out]) == 0
    return folder / "all"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    """The scripted model, which knows the questions of the example corpus."""
    with ScriptedServer(QUESTIONS, dialogues=find_dialogues(beside=QUESTIONS)) as server:
        yield server


@pytest.fixture(scope="module")
def site(standards_home: Path, runs: Path, model: ScriptedServer) -> Iterator[str]:
    """Address of a server over the example corpus, and the runs."""
    settings = load_settings(
        home=standards_home, llm=f"{model.base_url}#scripted", embeddings="local:use", retries=0, judge_llm=""
    )
    with serving(settings, ServerOptions(collections=(COLLECTION,), runs=runs, requests_per_minute=1_000_000)) as url:
        yield url


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser that the tests use one after another."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(site: str, chromium: Page) -> Iterator[Page]:
    """The page as at a first visit; what it writes to the console fails the test."""
    chromium.console()
    chromium.open(f"{site}/healthz")
    chromium.run("localStorage.clear(); sessionStorage.clear();")
    chromium.appear()
    chromium.open(f"{site}/")
    chromium.wait("document.querySelector('.composer')")
    try:
        yield chromium
        assert chromium.console() == []
    finally:
        chromium.open("about:blank")
