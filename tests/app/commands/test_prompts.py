"""``judgetree prompts``, and prompts of one's own in the other commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.prompts.table import PROMPTS
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread

ORACLE = "Answer like an oracle."
OWN = f"""\
format: judgetree-prompts/1
reader:
  system: {ORACLE}
  user: "{{evidence}}\\n\\nQ: {{query}}"
judge:
  examples:
    - user: A passage about nothing.
      assistant: '{{"reason": "nothing", "score": 0, "next_query": ""}}'
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(OWN, encoding="utf-8")
    return file


@pytest.fixture
def scripted(mine: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer([CHAIN], prompts=mine) as server:
        yield server


def test_all_prompts_are_listed_with_what_they_ask(cli: Cli, mine: Path) -> None:
    listed = cli("prompts", "show").ok().out.splitlines()
    assert [line.split()[0] for line in listed] == list(PROMPTS)
    documents = json.loads(cli("prompts", "show", "--prompts", str(mine), "--json").ok().out)
    assert {each["name"] for each in documents if each["own"]} == {"reader", "judge"}
    assert documents[0]["placeholders"] == ["evidence", "query"]
    assert documents[0]["system"] == ORACLE


def test_shown_prompts_are_those_in_force(cli: Cli, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROMPTS["reader"].system.splitlines()[0] in cli("prompts", "show", "reader").ok().out
    monkeypatch.setenv("JUDGETREE_PROMPTS", str(mine))
    shown = cli("prompts", "show", "reader", "condense").ok().out
    assert ORACLE in shown
    assert "Rewrite the new question" in shown
    cli("prompts", "show", "oracle").refused("There is no prompt 'oracle'", "Allowed: reader")


def test_a_copy_is_edited_and_compared(cli: Cli, mine: Path) -> None:
    copied = cli("prompts", "copy", "reader", "judge", "copy.yaml")
    assert (copied.status, copied.out) == (0, "")
    assert "--prompts copy.yaml" in copied.err
    assert (cli("prompts", "diff", "copy.yaml").status, cli("prompts", "diff", "copy.yaml").out) == (0, "")
    cli("prompts", "copy", "copy.yaml").refused("copy.yaml exists", "--force")
    cli("prompts", "copy", "--force", "copy.yaml").ok()
    assert Path("copy.yaml").read_text(encoding="utf-8").count("\n  user: ") == len(PROMPTS)
    changed = cli("prompts", "diff", "mine.yaml")
    assert changed.status == 1
    assert "--- judgetree: reader\n+++ mine.yaml: reader" in changed.out
    against = cli("prompts", "diff", "mine.yaml", "copy.yaml", "--json")
    assert against.status == 1
    assert json.loads(against.out)["changed"] == ["reader", "judge"]
    cli("prompts", "copy", "reader", "judge").refused("'judge'", ".yaml")
    cli("prompts", "copy", "none/copy.yaml").refused("there is no folder none")
    cli("prompts", "diff", "none.yaml").refused("none.yaml cannot be read")


def test_a_question_is_asked_and_resumed_with_own_prompts(
    cli: Cli, home: Path, mine: Path, scripted: ScriptedServer
) -> None:
    thread = new_thread()
    given = ("-c", COLLECTION, "--thread-id", thread)
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    failed = cli("ask", CHAIN.question, *given, "--prompts", "mine.yaml")
    assert failed.status == 1
    resume = f"judgetree ask --resume --thread-id {thread} --prompts mine.yaml"
    assert resume in failed.err
    scripted.configure(faults={})
    cli("ask", "--resume", "--thread-id", thread).refused("reader.prompt: ", "judge.prompt: ", "--prompts")
    judged = scripted.requests["judge"]
    assert cli(*shlex.split(resume)[1:]).ok().out == "40 mm\n"
    assert scripted.requests["judge"] == judged
    cli("ask", CHAIN.question, *given).refused("holds another run")


def test_a_fork_and_an_explanation_take_own_prompts(cli: Cli, home: Path, mine: Path) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, "--prompts", "mine.yaml").ok()
    fork = ("fork", thread, "--node", "1", "--set", "topk=4")
    cli(*fork).refused("reader.prompt: ", "--prompts")
    cli(*fork, "--prompts", "mine.yaml").ok()
    cli("explain", thread, "--depth", "0", "--yes", "--prompts", "mine.yaml").ok()


def test_a_chat_takes_own_prompts(chat: Cli, mine: Path) -> None:
    options = ("-c", COLLECTION, "--conversation", "s", "--prompts", "mine.yaml")
    done = chat(CHAIN.question, options=options).ok()
    assert "40 mm" in done.out
    assert "--prompts mine.yaml" in done.err


def test_unusable_prompts_end_with_2_before_anything_is_asked(
    cli: Cli, home: Path, mine: Path, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.write_text(OWN.replace("{query}", "{qurey}"), encoding="utf-8")
    said = ("mine.yaml", "{qurey} is no placeholder. Did you mean 'query'?", "lacks {query}")
    cli("ask", CHAIN.question, "-c", COLLECTION, "--prompts", "mine.yaml").refused(*said)
    monkeypatch.setenv("JUDGETREE_PROMPTS", "mine.yaml")
    cli("ask", CHAIN.question, "-c", COLLECTION).refused(*said)
    assert not scripted.requests
