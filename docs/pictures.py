"""Draws the pictures in ``images/`` anew: ``python docs/pictures.py``; the page's needs chromium and chromium-driver.

The model is the scripted one, so that everybody gets the same pictures but for the seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # for the browser and the server of the tests

from judgetree import RagSession  # noqa: E402
from judgetree.app.cli import main  # noqa: E402
from judgetree.app.scripted.server import ScriptedServer, find_dialogues  # noqa: E402
from judgetree.app.server.serving.options import ServerOptions  # noqa: E402
from judgetree.modules.settings import load_settings  # noqa: E402
from tests.app.server.page.looking import ask, wait_for_answer  # noqa: E402
from tests.app.server.serving import serving  # noqa: E402
from tests.driver import browser  # noqa: E402

FOLDER = ROOT / "docs" / "images"
DATA = ROOT / "data"
QUESTIONS = DATA / "standards_qa.jsonl"
HOPPING = "What is the highest service temperature of the gasket in a KV-133 Rating F40 flange?"
TALK = (
    "Over what distance must the brake of a KV-178 hoist catch a weight that drops?",
    "And how much does it grip at rest?",
    "In which colour does KV-192 show that a motor is turning?",
)


@contextmanager
def surroundings(home: Path) -> Iterator[None]:
    """Ask the scripted model, with a home folder of its own and the packaged embedder."""
    before = dict(os.environ)
    with ScriptedServer(QUESTIONS, dialogues=find_dialogues(beside=QUESTIONS)) as model:
        os.environ |= {"JUDGETREE_HOME": str(home), "JUDGETREE_EMBEDDINGS": "local:use"}
        os.environ |= {"JUDGETREE_LLM": f"{model.base_url}#scripted", "JUDGETREE_JUDGE_LLM": ""}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def draw_svgs(folder: Path, home: Path) -> None:
    """Write ``tree.svg`` and ``conversation.svg``: the question of the demo, and a conversation."""
    with surroundings(home):
        _run("index", str(DATA / "standards"), "-c", "standards")
        _run("ask", HOPPING, "-c", "standards", "--thread-id", "flange")
        _run("tree", "flange", "--direction", "down", "--svg", str(folder / "tree.svg"))
        with RagSession("standards") as session:
            talk = session.chat("hoist")
            for question in TALK:
                talk.ask(question)
        _run("conversations", "draw", "hoist", "--svg", str(folder / "conversation.svg"))


def draw_page(folder: Path, home: Path) -> None:
    """Write ``page.png``: the page with an answer and its tree, over the collection that ``draw_svgs`` made."""
    serving_collection = ServerOptions(collections=("standards",))
    with (
        surroundings(home),
        serving(load_settings(), serving_collection) as address,
        browser(home.parent / "browser") as page,
    ):
        page.appear()
        page.open(f"{address}/")
        ask(page, HOPPING)
        wait_for_answer(page)
        page.wait("document.querySelector('.node.query.answered') && !document.getAnimations().length")
        (folder / "page.png").write_bytes(page.picture())


def _run(*words: str) -> None:
    if main(list(words)) != 0:
        raise SystemExit(f"judgetree {' '.join(words)} failed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        draw_svgs(FOLDER, Path(made) / "home")
        draw_page(FOLDER, Path(made) / "home")
