"""Turns of other programs put in a line, on embedded Milvus Lite and on a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.index.connection import MilvusConnection
from judgetree.modules.memory.memory import ConversationMemory, backfill, by_time, chained
from judgetree.modules.memory.turns import QaPair
from tests.modules.memories import Clock, foreign_row, new_name, opened_memories
from tests.modules.turn_factory import ids_of, make_turn

NOON, ONE = "2026-01-01T12:00:00", "2026-01-01T13:00:00+00:00"


@pytest.fixture
def collection() -> str:
    return new_name()


@pytest.fixture
def memory(connection: MilvusConnection, collection: str) -> Iterator[ConversationMemory]:
    """Two linked turns and a fork of session s; rows of another program in s, and in t, where there is nothing else."""
    with opened_memories(connection, collection, Clock()) as open_memory:
        memory = open_memory()
        memory.add_turns("s", [make_turn(1), make_turn(2), make_turn(3, branch_id="fork")])
        rows = [
            foreign_row("b", "s", "third", ONE),
            foreign_row("z", "s", "first", NOON, turn_id="own", topic="rivers", context_docs='["a.md"]'),
            foreign_row("a", "s", "second", ONE),
            foreign_row("t1", "t", "alone", NOON),
        ]
        connection.client.upsert(collection, rows)
        yield memory


def places(memory: ConversationMemory, conversation_id: str) -> list[tuple[str, str, str, int]]:
    turns = memory.turns_of(conversation_id)
    return [(turn["turn_id"], turn["parent_turn_id"], turn["branch_id"], turn["turn_number"]) for turn in turns]


LINKED = [("own", "main-2", "main", 3), ("a", "own", "main", 4), ("b", "a", "main", 5)]


def test_turns_are_chained_by_time_after_the_last_of_the_main_branch(memory: ConversationMemory) -> None:
    before = places(memory, "s"), places(memory, "t")
    assert (backfill(memory, dry_run=True), backfill(memory, "s", dry_run=True)) == (4, 3)
    assert (places(memory, "s"), places(memory, "t")) == before
    assert backfill(memory) == 4
    assert places(memory, "s")[-3:] == LINKED
    assert places(memory, "t") == [("t1", "", "main", 1)]
    assert ids_of(memory.get_recent_history("s", 4, spans={"main": 5})) == ["main-2", "own", "a", "b"]
    after = places(memory, "s"), places(memory, "t")
    assert backfill(memory) == backfill(memory, "s") == 0
    assert (places(memory, "s"), places(memory, "t")) == after


def test_one_session_leaves_the_others(memory: ConversationMemory) -> None:
    assert backfill(memory, "t") == 1
    assert set(memory.records_without_parent()) == {"s"}
    assert backfill(memory, "never") == 0


def test_after_an_interruption_it_goes_on(memory: ConversationMemory) -> None:
    unlinked = memory.records_without_parent("s")["s"]
    assert memory.set_parents("s", chained(unlinked[:1], after=make_turn(2))) == 1
    assert backfill(memory, "s") == 2
    assert places(memory, "s")[-3:] == LINKED


def test_all_else_of_a_row_stays(memory: ConversationMemory, connection: MilvusConnection, collection: str) -> None:
    columns = ["*"]
    (before,) = connection.client.query(collection, filter='pk == "z"', output_fields=columns, limit=2)
    recent = memory.get_recent_history("s", 1, spans={"main": 5})
    backfill(memory)
    (after,) = connection.client.query(collection, filter='pk == "z"', output_fields=columns, limit=2)
    links = {"turn_id": "own", "parent_turn_id": "main-2", "branch_id": "main", "turn_number": 3}
    assert dict(after) == {**before, **links}
    assert (after["topic"], after["user_query"], after["context_docs"]) == ("rivers", "first", '["a.md"]')
    assert memory.get_recent_history("s", 1, spans={"main": 5}) != recent
    assert "own" in {turn["turn_id"] for turn, _ in memory.retrieve_relevant_history("s", "q", 9, spans={"main": 5})}


@given(minutes=st.lists(st.integers(0, 3), max_size=6), after=st.none() | st.builds(make_turn, st.integers(1, 5)))
def test_a_chain_is_a_path(minutes: list[int], after: QaPair | None) -> None:
    turns = [make_turn(1, turn_id=f"t{position}", minute=minute) for position, minute in enumerate(minutes)]
    chain = chained(sorted(turns, key=by_time), after=after)
    assert ids_of(chain) == [
        f"t{position}" for position in sorted(range(len(minutes)), key=lambda at: (minutes[at], at))
    ]
    for parent, turn in zip([after, *chain], chain, strict=False):
        assert turn["parent_turn_id"] == (parent["turn_id"] if parent else "")
        assert turn["turn_number"] == (parent["turn_number"] + 1 if parent else 1)
