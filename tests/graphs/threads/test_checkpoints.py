from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from subprocess import run as run_process
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import numpy as np
import pytest
from filelock import FileLock
from langchain_core.documents import Document
from langgraph.checkpoint.base import empty_checkpoint

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.savers.serializer import serializer
from judgetree.graphs.savers.sqlite_saver import ThreadedSqliteSaver
from judgetree.graphs.systems.naive_rag import build_naive_rag
from judgetree.graphs.threads.checkpoints import (
    check_storable,
    keep_latest,
    open_checkpointer,
    store_errors,
)
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import SettingsError
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk

STORES = ["memory", "sqlite", "postgres", "redis"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'new folder' / 'c.sqlite'}"
        case _:
            return str(request.getfixturevalue(f"{request.param}_url"))


def context() -> RagContext:
    table = {"q": [chunk("a", "text with 汉字 and \N{GRINNING FACE}")]}
    return RagContext(reader=FakeLLM(lambda messages: "answer"), retriever=TableRetriever(table))


def test_a_run_is_saved_and_read_back(url: str, request: pytest.FixtureRequest) -> None:
    with build_naive_rag(checkpointer=url, context=context()) as graph:
        graph.invoke("q", {"configurable": {"thread_id": request.node.name}})
        tree = SearchTree.from_history(graph, request.node.name)
        assert tree.root.answer == "answer"
        assert [node.text for node in tree.chunk_nodes()] == ["text with 汉字 and \N{GRINNING FACE}"]
        assert request.node.name in [summary.thread_id for summary in graph.list_threads()]


def test_pruning_leaves_the_newest_state_and_other_threads(url: str, request: pytest.FixtureRequest) -> None:
    pruned, other = f"{request.node.name}-pruned", f"{request.node.name}-other"
    with build_naive_rag(checkpointer=url, context=context()) as graph:
        for thread in (pruned, other):
            graph.invoke("q", {"configurable": {"thread_id": thread}})
        before = SearchTree.from_history(graph, pruned)
        unpruned = len(list(graph.get_state_history({"configurable": {"thread_id": other}})))

        async def prune() -> None:
            store = await graph.aopen_store()
            assert store is not None
            await keep_latest(store, pruned)

        background_loop().run(prune())
        left = len(list(graph.get_state_history({"configurable": {"thread_id": pruned}})))
        after = SearchTree.from_history(graph, pruned)
        assert (after.root.answer, after.root.chunks, after.usage) == ("answer", before.root.chunks, before.usage)
        assert left == (unpruned if url == "memory:" else 1)
        assert len(list(graph.get_state_history({"configurable": {"thread_id": other}}))) == unpruned > 1


def test_what_is_saved_in_postgres_is_what_langgraphs_own_saver_saves(postgres_url: str) -> None:
    aio = pytest.importorskip("langgraph.checkpoint.postgres.aio")
    checkpoint = empty_checkpoint()
    channels = {"text": "inline", "none": None, "chunks": [chunk("a", "own row")], "removed": "x", "number": 1.5}
    checkpoint["channel_values"] = channels  # type: ignore[typeddict-item]
    versions: dict[str, str | int | float] = dict.fromkeys([*channels, "never"], "1")
    writes = [("chunks", [chunk("b", "written")]), ("__error__", "boom")]

    async def saved_by(saver: Any, thread: str) -> list[object]:
        saver.serde = serializer()
        place = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": "parent"}}
        put = await saver.aput(place, checkpoint, {"step": 1, "mine": "x"}, versions)
        for some in (writes, writes[1:]):
            await saver.aput_writes(put, some, "task", "path")
        async with saver._cursor() as cursor:
            rows: list[object] = [put]
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                await cursor.execute(f"SELECT * FROM {table} WHERE thread_id = %s", (thread,))
                mine = {"thread_id": "", "judgetree_seq": None}
                rows.append(sorted(({**row, **mine} for row in await cursor.fetchall()), key=repr))
        return rows

    async def both() -> tuple[list[object], list[object]]:
        async with (
            open_checkpointer(postgres_url) as ours,
            aio.AsyncPostgresSaver.from_conn_string(postgres_url) as own,
        ):
            return await saved_by(ours, "saved"), await saved_by(own, "saved-too")

    ours, langgraphs = asyncio.run(both())
    assert ours[1:] == langgraphs[1:]
    assert ours[0] == {"configurable": {"thread_id": "saved", "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}


def test_store_that_another_one_is_making_ready_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"

    async def open_it() -> str:
        async with open_checkpointer(f"sqlite:///{file}") as saver:
            return type(saver).__name__

    async def meanwhile() -> str:
        with FileLock(tmp_path / "c.sqlite.lock"), closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE started (x)")
            other.execute("BEGIN IMMEDIATE")
            opening = asyncio.ensure_future(open_it())
            _, still_waiting = await asyncio.wait([opening], timeout=0.5)
            assert still_waiting, "it fails at once, where it should wait"
            other.execute("COMMIT")
        return await opening

    assert asyncio.run(meanwhile()) == "ThreadedSqliteSaver"


READER = """
import sys
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.rag.search_tree import SearchTree
with build_judge_rag(checkpointer=sys.argv[1]) as graph:
    print(SearchTree.from_history(graph, "t").to_json())
"""


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_another_process_reads_the_same_tree(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'c.sqlite'}" if store == "sqlite" else str(request.getfixturevalue(f"{store}_url"))
    with build_naive_rag(checkpointer=url, context=context()) as graph:
        graph.invoke("q", {"configurable": {"thread_id": "t"}})
        here = SearchTree.from_history(graph, "t")
    there = run_process([sys.executable, "-c", READER, url], capture_output=True, text=True, check=True).stdout
    assert SearchTree.from_json(there) == here


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:/one-slash", "", "sqlite:///"])
def test_an_unknown_store_names_those_there_are(url: str) -> None:
    async def opened() -> None:
        async with open_checkpointer(url):
            pass

    with pytest.raises(SettingsError, match=r"memory:, sqlite:///.*JUDGETREE_CHECKPOINTS"):
        asyncio.run(opened())


def test_an_unusable_sqlite_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_bytes(b"this is no database" * 100)
    with (
        pytest.raises(SettingsError, match="file is not a database"),
        build_naive_rag(checkpointer=f"sqlite:///{tmp_path / 'c.sqlite'}", context=context()) as graph,
    ):
        graph.invoke("q")


def test_an_open_store_that_fails_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with (
        build_naive_rag(checkpointer=f"sqlite:///{file}", context=context()) as graph,
        closing(sqlite3.connect(file)) as other,
    ):
        graph.invoke("q", {"configurable": {"thread_id": "t"}})
        other.execute("DROP TABLE writes")
        with pytest.raises(
            SettingsError, match=r"c\.sqlite' cannot be used: no such table: writes.*JUDGETREE_CHECKPOINTS"
        ):
            graph.invoke("q", {"configurable": {"thread_id": "t2"}})


def test_a_new_postgres_may_be_opened_by_many_at_once(postgres_url: str) -> None:
    """Each saver has connections of its own, as processes have."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS untouched WITH (FORCE)")
        connection.execute("CREATE DATABASE untouched")
    parts = urlsplit(postgres_url)
    url = urlunsplit(parts._replace(path="/untouched"))

    async def opened() -> bool:
        async with open_checkpointer(url) as saver:
            return await saver.aget_tuple({"configurable": {"thread_id": "none"}}) is None

    async def all_at_once() -> list[bool]:
        return await asyncio.gather(*(opened() for _ in range(6)))

    assert asyncio.run(all_at_once()) == [True] * 6


@pytest.mark.slow
def test_questions_after_a_restart_of_postgres_are_answered(postgres_url: str, request: pytest.FixtureRequest) -> None:
    import psycopg

    cut = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with build_naive_rag(checkpointer=postgres_url, context=context()) as graph:
        for number in range(3):
            graph.invoke("q", {"configurable": {"thread_id": f"{request.node.name}-{number}"}})
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute(cut)


def test_an_open_postgres_that_fails_says_what_to_do(postgres_url: str, request: pytest.FixtureRequest) -> None:
    import psycopg

    with build_naive_rag(checkpointer=postgres_url, context=context()) as graph:
        graph.invoke("q", {"configurable": {"thread_id": request.node.name}})
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("ALTER TABLE checkpoint_writes RENAME TO elsewhere")
            try:
                with pytest.raises(SettingsError, match=r"cannot be used: .*checkpoint_writes.*JUDGETREE_CHECKPOINTS"):
                    graph.invoke("q", {"configurable": {"thread_id": f"{request.node.name}-2"}})
            finally:
                other.execute("ALTER TABLE elsewhere RENAME TO checkpoint_writes")


def test_a_file_that_another_program_has_locked_is_waited_for(tmp_path: Path) -> None:
    async def wait_s() -> float:
        async with open_checkpointer(f"sqlite:///{tmp_path / 'c.sqlite'}") as saver:
            assert isinstance(saver, ThreadedSqliteSaver)
            return float(saver.inner.conn.execute("PRAGMA busy_timeout").fetchone()[0]) / 1000

    assert asyncio.run(wait_s()) == 30


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_or_replaced_while_open_loses_nothing_in_silence(tmp_path: Path, replaced: bool) -> None:
    file = tmp_path / "c.sqlite"
    with build_naive_rag(checkpointer=f"sqlite:///{file}", context=context()) as graph:
        graph.invoke("q")
        if replaced:
            (tmp_path / "backup").write_bytes(file.read_bytes())
            (tmp_path / "backup").replace(file)
        else:
            file.unlink()
        with pytest.raises(SettingsError, match="deleted or replaced while it was open; close the session or graph"):
            graph.invoke("q", {"configurable": {"thread_id": "t"}})
        graph.close()
        for rest in tmp_path.glob("c.sqlite-*"):
            rest.unlink()
        graph.invoke("q", {"configurable": {"thread_id": "t"}})
        assert SearchTree.from_history(graph, "t").root.answer == "answer"


def test_an_unreachable_postgres_hides_the_password() -> None:
    psycopg = pytest.importorskip("psycopg")
    url = "postgresql://user:hunter2@127.0.0.1:1/db"
    with pytest.raises(SettingsError) as caught, store_errors(url):
        psycopg.connect(url)
    assert "hunter2" not in str(caught.value)
    assert "'postgresql://127.0.0.1:1/db'" in str(caught.value)


class Foreign:
    """A type that the serialiser was never told of."""


def test_the_serialiser_reads_documents_and_refuses_other_types() -> None:
    serde = serializer()
    document = Document(page_content="x", metadata={"score": None, "rank": 1})
    assert serde.loads_typed(serde.dumps_typed([document])) == [document]
    with pytest.raises(TypeError):
        serde.dumps_typed(Foreign())


def values() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Foreign(), "Foreign"),
        (lambda: 1, "function"),
        (values(), "generator"),
        ([1, {"a": (2, Foreign())}], "Foreign"),
        ({Foreign(): 1}, "Foreign"),
        (2**70, "int"),
    ],
)
def test_metadata_that_cannot_be_saved_is_named(value: object, kind: str) -> None:
    """It raised "Type is not msgpack serializable: Document", and nothing said which of the retriever's values."""
    context = RagContext(
        reader=FakeLLM(lambda messages: "answer"),
        retriever=TableRetriever(
            {"q": [chunk("a", "text"), Document(page_content="b", metadata={"chunk_id": "b", "seen": value})]}
        ),
    )
    with pytest.raises(
        SettingsError, match=rf"chunk 'b' .*'seen' has a value of type '{kind}'\. Allowed: texts, .*Convert it"
    ):
        build_naive_rag().invoke("q", context=context)


@pytest.mark.parametrize(
    "value",
    [
        None,
        float("nan"),
        b"\xff",
        {"a": [1, {"b": (2, None)}], 3: "c"},
        {"x", "y"},
        datetime(2026, 11, 25, tzinfo=UTC),
        Decimal("1.2"),
        Path("a/b"),
        uuid4(),
        np.array([1.0, 2.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metadata_that_can_be_saved_is_taken(value: object) -> None:
    check_storable([Document(page_content="a", metadata={"chunk_id": "a", "seen": value})])
