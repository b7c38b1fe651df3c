"""``judgetree fork`` and ``judgetree diff`` over the scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, SUB_QUESTION, Cli, Dam, killed, new_thread


@pytest.fixture
def asked(cli: Cli, home: Path) -> str:
    """A thread of the question of two steps, finished."""
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread).ok()
    return thread


def name_of(cli: Cli, thread: str, source: str, query: str = "1") -> str:
    """The name of a query's chunk of a file, as `fork` shows it without a node."""
    lines = cli("fork", thread).ok().out.splitlines()
    return next(part for line in lines if source in line for part in line.split() if part.startswith(f"{query}#"))


def test_a_fork_says_what_it_saved_and_the_diff_where_it_parts(
    cli: Cli, asked: str, scripted: ScriptedServer, tmp_path: Path
) -> None:
    node = name_of(cli, asked, "a.md")
    scripted.reset()
    done = cli("fork", asked, "--node", node, "--set", "drop", "--json", "--svg", str(tmp_path / "f.svg")).ok()
    document = json.loads(done.out)
    fork = document["fork"]
    assert (fork["thread_id"], fork["node"], fork["changes"]) == (asked, node, {"drop": ""})
    assert document["usage_this_run"]["llm_calls"] == scripted.requests.total() == 1
    assert document["saved"]["llm_calls"] > 1
    assert "fork of" in (tmp_path / "f.svg").read_text(encoding="utf-8")
    tree = cli("tree", document["thread_id"]).ok().out
    assert f"fork of {asked} at {node}: drop\nsaved: " in tree
    diff = cli("diff", asked, document["thread_id"], "--json").ok()
    assert json.loads(diff.out)["first"]["kind"] == "chunk"
    page = tmp_path / "diff.html"
    assert cli("diff", asked, document["thread_id"], "--html", str(page)).ok().out == ""
    assert "First divergence" in page.read_text(encoding="utf-8")
    assert f"{CHAIN.question} (fork of {asked} at {node}: drop)" in cli("threads").ok().out


def test_a_query_that_searches_for_more_judges_only_the_new_chunks(
    cli: Cli, asked: str, scripted: ScriptedServer
) -> None:
    """Four chunks in place of three: one verdict and one answer more; the sub-question is linked."""
    scripted.reset()
    document = json.loads(cli("fork", asked, "--node", "1", "--set", "topk=4", "--json").ok().out)
    assert (scripted.requests["judge"], scripted.requests.total()) == (1, 2)
    chunks = document["tree"]["root"]["chunks"]
    assert [chunk["metadata"]["rank"] for chunk in chunks] == [0, 1, 2, 3]
    children = [child for chunk in chunks for child in chunk["sub_runs"]]
    assert SUB_QUESTION in {child["query"] for child in children}
    assert {child["linked_from"] for child in children} == {asked}
    assert document["answer"] == "40 mm"


def test_another_model_answers_one_query_alone(cli: Cli, asked: str, scripted: ScriptedServer) -> None:
    scripted.reset()
    model = f"{scripted.base_url}#other"
    document = json.loads(cli("fork", asked, "--node", "2", "--set", f"llm={model}", "--json").ok().out)
    root = document["tree"]["root"]
    child = next(child for chunk in root["chunks"] for child in chunk["sub_runs"])
    answered = [[call["model"] for call in node["usage"] if not call["cached"]] for node in (child, root)]
    assert answered == [["other"], ["scripted"]]


@pytest.mark.slow
def test_a_fork_that_was_killed_pays_only_what_was_in_flight(cli: Cli, asked: str, scripted: ScriptedServer) -> None:
    """Killed at the answer of the root, after the verdicts on the new chunks."""
    dam = Dam(lambda request: (request.prompt.kind, request.prompt.query) == ("read", CHAIN.question))
    scripted.responses = dam
    arguments = ("fork", asked, "--node", "1", "--set", "topk=4")
    killed(*arguments, at=dam)
    scripted.responses = None
    scripted.reset()
    assert cli(*arguments).ok().out == "40 mm\n"
    assert scripted.requests.total() == 1
    scripted.reset()
    assert "no model calls" in cli(*arguments).ok().err
    assert not scripted.requests.total()


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--node", "1#1", "--set", "scroe=1"), "Allowed: score, next_query, drop, topk, llm"),
        (("--node", "1#1", "--set", "score"), "Give NAME=VALUE"),
        (("--node", "1#1", "--set", "score=two"), "Give a whole number"),
        (("--node", "1#1", "--set", "drop", "--set", "drop"), "twice"),
        (("--node", "9", "--set", "topk=4"), "The tree has the queries 1 to 3"),
        (("--node", "1"), "Nothing is changed"),
    ],
)
def test_what_cannot_be_changed_is_refused(cli: Cli, asked: str, arguments: tuple[str, ...], advice: str) -> None:
    cli("fork", asked, *arguments).refused(advice)


def test_unknown_threads_and_mixed_sides_are_refused(cli: Cli, asked: str, tmp_path: Path) -> None:
    cli("fork", "nothing", "--node", "1", "--set", "topk=4").refused("nothing")
    cli("diff", asked, str(tmp_path)).refused("Give two of a kind")
    cli("diff", asked, asked, "--question", "q").refused("for two run directories")
    assert "alike" in cli("diff", asked, asked).ok().out
