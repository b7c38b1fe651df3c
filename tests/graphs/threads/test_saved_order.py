"""The newest checkpoint is the one that was saved last, in every store, whatever the clocks of its writers say."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.base import PRUNE_HEADS_SQL
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.savers.appending import following
from judgetree.graphs.savers.postgres_order import by_place
from judgetree.graphs.savers.serializer import serializer
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.checkpoints import (
    Saver,
    keep_latest,
    newest_first,
    open_checkpointer,
    thread_marks,
)
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import ThreadMoved
from tests.clocks import Clock, make_ids_decrease
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.rag.test_interrupts import AskingJudge, asked, context_with
from tests.graphs.two_steps import ROOT, SUB, context_of

STORES = ["memory", "sqlite", "postgres", "redis"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'c.sqlite'}"
        case _:
            return str(request.getfixturevalue(f"{request.param}_url"))


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Saver]:
    async with open_checkpointer(url) as saver:
        yield saver


def config_of(thread_id: str, namespace: str = "", checkpoint_id: str | None = None) -> dict[str, Any]:
    place = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return {"configurable": place if checkpoint_id is None else {**place, "checkpoint_id": checkpoint_id}}


async def put(saver: BaseCheckpointSaver[str], checkpoint_id: str, config: dict[str, Any], **metadata: Any) -> None:
    checkpoint = {**empty_checkpoint(), "id": checkpoint_id}
    checkpoint["channel_values"], checkpoint["channel_versions"] = {"kept": [checkpoint_id]}, {"kept": checkpoint_id}
    await saver.aput(config, checkpoint, metadata, {"kept": checkpoint_id})  # type: ignore[arg-type]


def id_of(saved: CheckpointTuple | None) -> str | None:
    return None if saved is None else str(saved.config["configurable"]["checkpoint_id"])


async def listed(saver: Saver, config: dict[str, Any] | None, **options: Any) -> list[str | None]:
    return [id_of(each) async for each in saver.alist(config, **options)]  # type: ignore[arg-type]


def test_order_of_saving_decides_everywhere(url: str, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    own = config_of(name)

    async def led() -> None:
        async with opened(url) as saver:
            for number, each in enumerate("dcab"):
                await put(saver, each, own, even=number % 2 == 0)
                assert id_of(await saver.aget_tuple(own)) == each
            await put(saver, "z", config_of(name, "inner"), even=True)
            await put(saver, "a", config_of(f"{name} other"), even=True)
            assert await listed(saver, own) == ["b", "a", "c", "d"]
            assert await listed(saver, own, limit=2) == ["b", "a"]
            assert await listed(saver, own, filter={"even": True}) == ["a", "d"]
            assert await listed(saver, own, before=config_of(name, checkpoint_id="a")) == ["c", "d"]
            assert await listed(saver, own, before=config_of(name, checkpoint_id="a"), limit=1) == ["c"]
            inner = {"configurable": {"thread_id": name}}
            assert await listed(saver, inner, limit=2) == ["z", "b"], "all namespaces"
            before_inner = {"configurable": {"checkpoint_id": "z"}}
            assert await listed(saver, own, before=before_inner) == ["b", "a", "c", "d"], "a place of another namespace"
            assert await listed(saver, own, before=config_of(name, checkpoint_id="bb")) == ["b", "a"], "unknown: by id"
            assert id_of(await saver.aget_tuple(config_of(name, checkpoint_id="d"))) == "d"
            assert await newest_first(saver, name) == [f"{name} other", name]
            await put(saver, "A", own)
            assert await newest_first(saver, name) == [name, f"{name} other"]
            marks = await thread_marks(saver, [name])
            assert marks is None or marks[name][0] == "A"
            await keep_latest(saver, name)
            left = await listed(saver, own)
            assert left == (["A", "b", "a", "c", "d"] if url == "memory:" else ["A"])
            newest = await saver.aget_tuple(own)
            assert newest is not None
            assert newest.checkpoint["channel_values"] == {"kept": ["A"]}
            await saver.adelete_thread(name)
            assert (await saver.aget_tuple(own), await listed(saver, own)) == (None, [])
            assert await newest_first(saver, name) == [f"{name} other"]

    asyncio.run(led())


def test_a_save_that_must_follow_another_checkpoint_is_refused(url: str, request: pytest.FixtureRequest) -> None:
    if url == "memory:":
        pytest.skip("checkpoints in memory belong to one process, whose locks are enough")
    own = config_of(request.node.name)

    async def append(saver: Saver, checkpoint_id: str, after: str) -> bool:
        try:
            await put(saver, checkpoint_id, following({**own}, after))  # type: ignore[arg-type]
        except ThreadMoved:
            return False
        return True

    async def led() -> None:
        async with opened(url) as one, opened(url) as other:
            savers = itertools.cycle([one, other])
            first = await asyncio.gather(*(append(next(savers), f"first {each}", "") for each in range(8)))
            assert first.count(True) == 1
            newest = f"first {first.index(True)}"
            assert await listed(one, own) == [newest]
            second = await asyncio.gather(*(append(next(savers), f"b{each}", newest) for each in range(8)))
            assert second.count(True) == 1
            assert not await append(one, "c", newest), "overtaken"
            await put(one, "fork", {"configurable": {**own["configurable"], "checkpoint_id": newest}})
            assert id_of(await other.aget_tuple(own)) == "fork", "a save that follows nothing is never refused"
            await one.adelete_thread(request.node.name)
            assert not await append(one, "d", "fork"), "deleted"

    asyncio.run(led())


# --- files and tables of older versions ---


def rows_of_an_older_version(saver: BaseCheckpointSaver[str], name: str, names: Sequence[str]) -> None:
    for each in names:
        checkpoint = {**empty_checkpoint(), "id": each}
        saver.put(config_of(name), checkpoint, {}, {})  # type: ignore[arg-type]


def test_a_file_of_an_older_version_goes_on_and_keeps_its_order(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"

    def write_as_before(names: Sequence[str]) -> None:
        with SqliteSaver.from_conn_string(str(file)) as older:
            older.serde = serializer()
            rows_of_an_older_version(older, "t", names)

    async def led(*names: str) -> list[str | None]:
        async with opened(f"sqlite:///{file}") as saver:
            for each in names:
                await put(saver, each, config_of("t"))
            return await listed(saver, config_of("t"))

    write_as_before("ab")
    assert asyncio.run(led("A")) == ["A", "b", "a"]
    write_as_before("B")
    assert asyncio.run(led()) == ["B", "A", "b", "a"], "what an older version saves later is not hidden"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = 'b'")
        connection.commit()
        connection.execute("VACUUM")
    assert asyncio.run(led("0")) == ["0", "B", "A", "a"]


def test_tables_of_an_older_version_get_the_column_once_and_keep_their_order(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    from langgraph.checkpoint.postgres import PostgresSaver

    base, _, query = postgres_url.partition("?")
    url = f"{base.rpartition('/')[0]}/older?{query}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE older")

    async def open_together() -> None:
        async def open_one() -> None:
            async with opened(url):
                pass

        await asyncio.gather(*(open_one() for _ in range(4)))

    async def led(*names: str) -> list[str | None]:
        async with opened(url) as saver:
            for each in names:
                await put(saver, each, config_of("t"))
            assert await listed(saver, config_of("t"), limit=1) == [id_of(await saver.aget_tuple(config_of("t")))]
            return await listed(saver, config_of("t"))

    with PostgresSaver.from_conn_string(url) as older:
        older.serde = serializer()
        older.setup()
        rows_of_an_older_version(older, "t", "bxa")
        asyncio.run(open_together())
        assert asyncio.run(led()) == ["x", "b", "a"], "the old order: by id"
        assert asyncio.run(led("A")) == ["A", "x", "b", "a"]
        rows_of_an_older_version(older, "t", "B")
        assert asyncio.run(led()) == ["B", "A", "x", "b", "a"], "what an older version saves later is not hidden"

        async def before(checkpoint_id: str) -> list[str | None]:
            async with opened(url) as saver:
                return await listed(saver, None, before=config_of("t", checkpoint_id=checkpoint_id))

        assert asyncio.run(before("B")) == ["A", "x", "b", "a"]
        assert asyncio.run(before("x")) == ["b", "a"]


# --- graphs ---


def test_a_tree_is_resumed_forked_and_read_while_ids_decrease(
    url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ids_decrease(monkeypatch)
    place = thread(request.node.name)
    with build_judge_rag(checkpointer=url, context=context_with(AskingJudge("b"))) as graph:
        assert asked(graph.invoke(ROOT, place)) == ["Judge b?"]
        assert graph.invoke(Command(resume="yes"), place)["answer"] == "Vellin"
        tree = SearchTree.from_history(graph, request.node.name)
        assert [node.query for node in tree.query_nodes()] == [ROOT, SUB]
        assert tree.root.status == "finished"
        history = list(graph.get_state_history(place))
        steps = [(snapshot.metadata or {})["step"] for snapshot in history]
        assert steps == sorted(steps, reverse=True)
        assert [each.config for each in history[1:]] == [each.parent_config for each in history[:-1]]
        assert list(graph.get_state_history(place, limit=2)) == history[:2]


def test_a_save_at_an_old_checkpoint_is_the_newest_afterwards(
    url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ids_decrease(monkeypatch)
    place = thread(request.node.name)
    with build_judge_rag(checkpointer=url, context=context_of(FakeLLM(lambda messages: "Vellin"))) as graph:
        graph.invoke(ROOT, place)
        history = list(graph.get_state_history(place))
        compiled = background_loop().run(graph.aopen())
        changed = background_loop().run(compiled.aupdate_state(history[2].config, {"answer": "mine"}, "generate"))
        newest = graph.get_state(place)
        assert newest.config["configurable"]["checkpoint_id"] == changed["configurable"]["checkpoint_id"]
        assert newest.values["answer"] == "mine"
        assert newest.parent_config == history[2].config
        assert graph.get_state(history[0].config).values["answer"] == "Vellin"


def test_threads_are_listed_by_their_last_save(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    names = [f"listed {number} {id(clock)}" for number in range(3)]
    with build_judge_rag(checkpointer=url, context=context_of(FakeLLM(lambda messages: "Vellin"))) as graph:
        for name in names:
            clock.in_another_process(clock.now_s - 60)
            graph.invoke(ROOT, thread(name))
        assert [each.thread_id for each in graph.list_threads(limit=3)] == names[::-1]


# --- what LangGraph has to keep for this ---


def test_ids_of_one_process_increase_while_its_clock_goes_back_and_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A saver that a user gives goes by ids, which is right within a process as long as this holds."""
    clock = Clock(monkeypatch)
    made = [str(ids.uuid6(clock_seq=-2))]
    for back_s in (60, 60, 0, 3600):
        clock.now_s -= back_s
        made += [str(ids.uuid6(clock_seq=step)) for step in range(3)]
    assert made == sorted(set(made))


def test_a_given_saver_in_memory_is_right_while_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, saver = Clock(monkeypatch), InMemorySaver()
    with build_judge_rag(checkpointer=saver, context=context_with(AskingJudge("b"))) as graph:
        assert asked(graph.invoke(ROOT, thread("t"))) == ["Judge b?"]
        clock.now_s -= 60
        assert graph.invoke(Command(resume="yes"), thread("t"))["answer"] == "Vellin"
        assert SearchTree.from_history(graph, "t").root.answer == "Vellin"


def test_langgraphs_statement_that_finds_what_is_kept_is_the_one_that_is_changed() -> None:
    assert by_place(PRUNE_HEADS_SQL) != PRUNE_HEADS_SQL, "LangGraph finds the newest checkpoints in another way"
