from __future__ import annotations

import asyncio
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.conversation.turn.state import new_conversation
from judgetree.graphs.conversation.turn.store import ConversationStore
from judgetree.graphs.threads.checkpoints import open_checkpointer
from judgetree.modules.index.connection import connect
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import Cli, drawn
from tests.app.talks import AGAIN, FIRST, PAINT, THICKNESS
from tests.modules.memories import foreign_row

FORK = "branch-2"


@pytest.fixture
def spoken(chat: Cli, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Two branches of conversation "s", and settings that no question could be asked with."""
    assert chat(FIRST, THICKNESS, "/after 1", PAINT).status == 0
    monkeypatch.setenv("JUDGETREE_LLM", "openai:gpt-4o-mini")
    return load_settings()


def test_conversations_are_listed(cli: Cli, spoken: Settings) -> None:
    done = cli("conversations", "list").ok()
    assert done.out.startswith("s  20")
    assert done.out.endswith(f"  3 turns  2 branches    {FIRST}\n")
    (summary,) = json.loads(cli("conversations", "list", "--json").out)
    assert (summary["name"], summary["title"], summary["turns"]) == ("s", FIRST, 3)


def test_what_is_not_there_is_told_and_nothing_is_made(cli: Cli, tmp_path: Path) -> None:
    for command in ("show", "draw", "delete"):
        cli("conversations", command, "s").refused("judgetree conversations list")
    assert json.loads(cli("conversations", "expire", "--json").out)["conversations"] == []
    assert cli("conversations", "backfill", "--json").status == 0
    assert not (Path.cwd() / ".judgetree").exists()


def test_turns_are_shown_by_branch(cli: Cli, spoken: Settings) -> None:
    done = cli("conversations", "show", "s")
    assert done.out == f"1. {FIRST}\n   the drum\n2. {PAINT}\n   grey\n"
    assert f"* {FORK}  up to turn 2, from turn 1 of main" in done.err
    assert cli("conversations", "show", "s", "--branch", "main").out.endswith(f"2. {THICKNESS}\n   40 mm\n")
    shown = json.loads(cli("conversations", "show", "s", "--branch", "main", "--json").out)
    assert [turn["answer"] for turn in shown["turns"]] == ["the drum", "40 mm"]
    assert [branch["name"] for branch in shown["branches"]] == ["main", FORK]
    cli("conversations", "show", "s", "--branch", "other").refused(f"Branches: main, {FORK}")


def test_a_conversation_is_drawn_in_every_format(cli: Cli, spoken: Settings, tmp_path: Path) -> None:
    text = cli("conversations", "draw", "s").out
    assert FIRST in text
    assert "3 turns · 2 branches" in text  # as the list counts
    texts = drawn(cli, "conversations", "draw", "s", formats=("svg", "html", "json", "dot"), folder=tmp_path)
    tree = ConversationTree.from_json(texts["json"])
    assert [turn["query"] for turn in tree.turns] == [FIRST, THICKNESS, PAINT]
    assert all(tree.tree_of(turn) for turn in tree.turns)
    assert ET.fromstring(texts["svg"]).tag.endswith("svg")
    assert THICKNESS in texts["html"]
    assert texts["dot"].startswith("digraph")


def test_a_branch_and_a_conversation_are_deleted_once_the_user_is_sure(cli: Cli, spoken: Settings, chat: Cli) -> None:
    cli("conversations", "delete", "s").refused("--yes")
    cli("conversations", "delete", "s", "--branch", FORK, "--yes").refused("switch")
    assert cli("conversations", "delete", "s", "--yes").status == 0
    assert cli("conversations", "list", "--json").out == "[]\n"
    assert cli("conversations", "show", "s").status == 2


def test_the_turns_of_a_deleted_branch_are_gone(cli: Cli, chat: Cli) -> None:
    chat(FIRST, THICKNESS, "/after 1", PAINT, "/branch main")
    assert "1 turn" in cli("conversations", "delete", "s", "--branch", FORK, "--yes").err
    assert PAINT not in cli("conversations", "draw", "s").out


def test_old_conversations_expire_and_newer_ones_stay(cli: Cli, spoken: Settings) -> None:
    async def begin_long_ago() -> None:
        async with open_checkpointer(spoken.checkpoint_url) as saver:
            store = ConversationStore(saver)
            await store.begin(new_conversation("old", "1.2", "2020-01-01T00:00:00.000000+00:00"))

    asyncio.run(begin_long_ago())
    planned = cli("conversations", "expire", "--days", "400", "--dry-run")
    assert (planned.status, planned.out) == (0, "old\n")
    assert "would have deleted 1 conversation with 0 turns and 1 thread" in planned.err
    done = json.loads(cli("conversations", "expire", "--json").out)
    assert (done["conversations"], done["dry_run"]) == (["old"], False)
    assert [each["name"] for each in json.loads(cli("conversations", "list", "--json").out)] == ["s"]


def test_turns_of_another_program_are_linked_once(cli: Cli, spoken: Settings) -> None:
    rows = [foreign_row(f"k{n}", "theirs", AGAIN, f"2026-01-01T0{n}:00:00Z") | {"dense": [0.1] * 512} for n in (1, 2)]
    connection = connect(spoken.milvus_address)
    connection.client.insert(spoken.conversation_collection, rows)
    connection.close()
    assert json.loads(cli("conversations", "backfill", "--dry-run", "--json").out) == {"turns": 2, "dry_run": True}
    assert "linked 0 turns" in cli("conversations", "backfill", "s").err
    assert "linked 2 turns" in cli("conversations", "backfill").err
    assert "linked 0 turns" in cli("conversations", "backfill").err


def test_the_age_in_the_help_is_that_of_the_settings(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    days = Settings.model_fields["conversation_expire_days"].default
    assert f"JUDGETREE_CONVERSATION_EXPIRE_DAYS, which is {days}." in cli("conversations", "expire", "--help").out
