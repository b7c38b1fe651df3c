from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from judgetree.graphs.rag.search_tree import SearchTree
from tests.app.conftest import CHAIN, CHINESE, COLLECTION, SUB_QUESTION, Cli, drawn, new_thread


@pytest.fixture
def thread(cli: Cli, home: Path) -> str:
    name = new_thread()
    assert cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", name).status == 0
    return name


def test_a_tree_is_shown_as_text(cli: Cli, thread: str) -> None:
    done = cli("tree", thread).ok()
    assert done.out.startswith(f"Q: {CHAIN.question}\nA: 40 mm")
    assert f"Q: {SUB_QUESTION}" in done.out


def test_a_narrow_terminal_gets_narrow_lines(cli: Cli, thread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, cli("tree", thread).out.splitlines())) <= 60


def test_a_tree_is_written_in_every_format(cli: Cli, thread: str, tmp_path: Path) -> None:
    texts = drawn(cli, "tree", thread, formats=("svg", "html", "json", "dot", "graphml"), folder=tmp_path)
    assert SearchTree.from_json(texts["json"]).root.answer == "40 mm"
    assert ET.fromstring(texts["svg"]).tag.endswith("svg")
    assert ET.fromstring(texts["graphml"]).tag.endswith("graphml")
    assert texts["dot"].startswith("digraph")
    assert texts["html"].lower().startswith("<!doctype html")


def test_a_dash_is_standard_output(cli: Cli, thread: str) -> None:
    document = json.loads(cli("tree", thread, "--json", "-").out)
    assert document["root"]["thread_id"] == thread
    cli("tree", thread, "--json", "-", "--dot", "-").refused("--dot FILE")


def test_a_sub_run_has_a_tree_of_its_own(cli: Cli, thread: str) -> None:
    whole = SearchTree.from_json(cli("tree", thread, "--json", "-").out)
    child = next(node for node in whole.query_nodes() if node.query == SUB_QUESTION)
    assert cli("tree", child.thread_id).out.startswith(f"Q: {SUB_QUESTION}\n")


@pytest.mark.parametrize("system", ["naive", "llm", "ircot", "iter_retgen", "self_ask", "react", "search_r1", "crag"])
def test_other_systems_have_trees_too(cli: Cli, home: Path, system: str) -> None:
    name = new_thread()
    cli("ask", CHINESE.question, "-c", COLLECTION, "--system", system, "--thread-id", name)
    assert cli("tree", name).out.startswith(f"Q: {CHINESE.question}\n")


def test_an_unknown_thread_is_told_with_its_remedy(cli: Cli, home: Path) -> None:
    cli("tree", "nobody").refused("'nobody'", "judgetree threads")


def test_threads_are_listed_newest_first(cli: Cli, thread: str) -> None:
    later = new_thread()
    cli("ask", CHINESE.question, "-c", COLLECTION, "--system", "naive", "--thread-id", later)
    lines = cli("threads").out.splitlines()
    assert [line.split()[0] for line in lines] == [later, thread]
    assert lines[0].endswith(f"naive  answered  {CHINESE.question}")
    (newest,) = json.loads(cli("threads", "--json", "--limit", "1").out)
    assert (newest["thread_id"], newest["system"], newest["answer_status"]) == (later, "naive", "answered")


def test_a_damaged_store_is_named(cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "own.sqlite"
    monkeypatch.setenv("JUDGETREE_CHECKPOINTS", f"sqlite:///{store}")
    assert cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "damaged").status == 0
    content = store.read_bytes()
    store.write_bytes(content[:4096] + b"\xab" * (len(content) - 4096))
    for command in (("threads",), ("tree", "damaged")):
        cli(*command).refused("own.sqlite' cannot be used: database disk image is malformed. Restore the file")
