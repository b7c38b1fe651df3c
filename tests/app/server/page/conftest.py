"""What the tests of the web page stand on: a server over the example corpus, and a browser without a word of error."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def standards_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder whose database holds the example corpus."""
    home = tmp_path_factory.mktemp("standards") / "home"
    given = {"JUDGETREE_HOME": str(home), "JUDGETREE_EMBEDDINGS": "local:use"}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        assert main(["index", str(REPO / "data" / "standards"), "-c", COLLECTION]) == 0
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return home


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    """The scripted model, which knows the questions of the example corpus."""
    with ScriptedServer(QUESTIONS, dialogues=find_dialogues(beside=QUESTIONS)) as server:
        yield server


@pytest.fixture(scope="module")
def site(standards_home: Path, model: ScriptedServer) -> Iterator[str]:
    """Address of a server over the example corpus."""
    settings = load_settings(
        home=standards_home, llm=f"{model.base_url}#scripted", embeddings="local:use", retries=0, judge_llm=""
    )
    with serving(settings, ServerOptions()) as url:
        yield url


@pytest.fixture
def page(site: str, tmp_path: Path) -> Iterator[Page]:
    """The page in a browser of its own; what it writes to the console fails the test."""
    with browser(tmp_path / "browser") as opened:
        opened.appear()
        opened.open(f"{site}/")
        opened.wait("document.querySelector('.composer')")
        yield opened
        assert opened.console() == []
