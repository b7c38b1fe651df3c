"""kill -9 in the middle of a search tree, at the default durability; then the tree is drawn, and the run resumed."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.calls.record import INTERRUPTED
from judgetree.modules.index.factory import open_index
from judgetree.modules.settings import load_settings
from tests.app.conftest import Cli, Dam, killed, write_corpus
from tests.facts import fact, question

REST, THIRD = "What is the flash point of the oil of class Delta?", "What is the flash point of Vellin oil?"
ROW = question(
    "q",
    "What is the flash point of the oil that pump KS-1 needs?",
    "212 °C",
    fact("a.md", "Pump KS-1 belongs to class Delta.", "Which class has pump KS-1?", "Delta", REST),
    fact("b.md", "Class Delta runs on Vellin oil.", "Which oil does class Delta run on?", "Vellin oil", THIRD),
    fact("c.md", "Vellin oil flashes at 212 °C.", THIRD, "212 °C"),
)
NOISE = {"n1.md": "Ladders are painted grey.", "n2.md": "Ropes are checked each spring."}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([ROW]) as running:
        yield running


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with an index of the facts."""
    folder = tmp_path_factory.mktemp("pumps")
    write_corpus(folder / "corpus", {fact.source: fact.quote for fact in ROW.supporting} | NOISE)
    settings = load_settings(home=folder / "home", embeddings="local:use")
    with open_index("pumps", settings, data_path=folder / "corpus") as index:
        index.get_index_done()
    return folder / "home"


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, pumps: Path) -> dict[str, str]:
    chosen = {
        "JUDGETREE_HOME": str(pumps),
        "JUDGETREE_LLM": f"{server.base_url}#scripted",
        "JUDGETREE_EMBEDDINGS": "local:use",
        "JUDGETREE_TIMEOUT_S": "60",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    return chosen


def at(kind: str, query: str) -> Dam:
    return Dam(lambda request: (request.prompt.kind, request.prompt.query) == (kind, query))


def interrupted(document: dict[str, Any]) -> list[str]:
    """The nodes of a tree whose calls were in flight at the kill, one a call."""
    nodes = SearchTree.from_json(json.dumps(document["tree"])).query_nodes()
    return [record["node"] for node in nodes for record in node.usage if record["error"] == INTERRUPTED]


def without_texts(cli: Cli, thread_id: str) -> list[dict[str, Any]]:
    """The calls of a tree that had a reply and are not recorded, and recorded ones that the tree does not have."""
    calls = [call for call in json.loads(cli("calls", thread_id, "--json").out) if call["record"]["kind"] == "chat"]
    answered = [call for call in calls if call["record"]["error"] != INTERRUPTED]
    assert len(answered) > 5
    return [call for call in answered if call["transcript"] is None or not call["query_number"]]


@pytest.fixture
def undisturbed(cli: Cli, server: ScriptedServer) -> Counter[tuple[str, str, str]]:
    """The calls of a process that is not killed."""
    server.responses = dam = Dam()
    assert cli("ask", ROW.question, "-c", "pumps").out == "212 °C\n"
    return Counter(dam.let_through)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "query"),
    [
        pytest.param("judge", REST, id="first verdicts of the first sub-run"),
        pytest.param("read", THIRD, id="answer of the deepest sub-run"),
        pytest.param("read", ROW.question, id="answer of the root"),
    ],
)
def test_a_killed_question_is_drawn_and_resumed(
    cli: Cli, server: ScriptedServer, undisturbed: Counter[tuple[str, str, str]], kind: str, query: str
) -> None:
    thread_id = f"{kind}-{len(query)}"
    server.responses = dam = at(kind, query)
    killed("ask", ROW.question, "-c", "pumps", "--thread-id", thread_id, at=dam)

    tree = SearchTree.from_json(cli("tree", thread_id, "--json", "-").out)
    assert (tree.root.status, tree.root.query) == ("open", ROW.question)
    assert "KS-1" in cli("tree", thread_id, "--svg", "-").out

    server.responses = resumed = Dam()
    document = json.loads(cli("ask", "--resume", "--thread-id", thread_id, "--json").out)
    assert (document["answer"], document["status"]) == ("212 °C", "answered")
    both = Counter(dam.let_through + resumed.let_through)
    assert undisturbed - both == Counter()
    assert (both - undisturbed).total() <= len(interrupted(document)) - len(dam.held), "what was in flight, no more"
    if query == ROW.question:
        assert resumed.let_through == [("read", ROW.question, "")], "every sub-run was finished"
    assert document["usage_this_run"]["llm_calls"] == len(resumed.let_through)
    assert without_texts(cli, thread_id) == []


@pytest.mark.slow
def test_question_without_a_checkpoint_repays_only_in_flight_calls(
    cli: Cli, server: ScriptedServer, pumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written at exit alone, the checkpoints of a killed process hold nothing of what it paid for."""
    monkeypatch.setenv("JUDGETREE_DURABILITY", "exit")
    command = ["ask", ROW.question, "-c", "pumps", "--thread-id", "at-exit", "--json"]
    server.responses = dam = at("read", ROW.question)
    killed(*command, at=dam)

    server.responses = resumed = Dam()
    document = json.loads(cli(*command).out)
    assert (document["answer"], document["status"]) == ("212 °C", "answered")
    assert resumed.let_through == [("read", ROW.question, "")]
    assert document["usage_this_run"]["llm_calls"] == 1
    assert interrupted(document) == ["generate"]
    assert without_texts(cli, "at-exit") == []
    assert document["usage"]["llm_calls"] == len(dam.let_through) + 2, "the books have what the killed process paid"
    journal = sqlite3.connect(pumps / "checkpoints-calls.sqlite")
    with closing(journal):
        assert journal.execute("SELECT count(*) FROM calls WHERE root = 'at-exit'").fetchone() == (0,), "none is left"
