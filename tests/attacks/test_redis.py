"""A Redis that fails in a turn: a typed error, nothing half written, and the next try pays for nothing twice."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest
import redis
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from judgetree.app.cli import main
from judgetree.app.commands.doctor import Check, run_checks
from judgetree.graphs.savers.appending import following
from judgetree.graphs.savers.redis_scripts import THREAD_KINDS
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.checkpoints import Saver, locks_of, newest_first, open_checkpointer
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.addresses import Address
from judgetree.modules.errors import LostParts, SettingsError, StoreFailure, ThreadMoved
from judgetree.modules.locks.redis import RedisLocks
from tests.attacks.failing_turns import During, is_answered, opened
from tests.database_servers import RedisServer, redis_server
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, SCREW, TABLE, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import TableRetriever

_SHORT = "?socket_timeout=0.2"
"""Seconds of silence after which these tests give a command up."""
_MOST_TRIES = 8


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis without modules, as judgetree needs none."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(plain: RedisServer) -> Iterator[RedisServer]:
    """The same, empty and as it was started."""
    with client_of(plain) as client:
        client.flushall()
    yield plain
    if not plain.runs:
        plain.start()
    with client_of(plain) as client:
        client.config_set("maxmemory", 0)
        client.config_set("appendonly", "yes")


@contextmanager
def client_of(server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url) as client:
        yield client


def keys_in(server: RedisServer) -> dict[bytes, bytes | None]:
    """All keys with their contents, but for the locks, which expire."""
    with client_of(server) as client:
        return {each: client.dump(each) for each in client.scan_iter() if not each.startswith(b"judgetree:lock:")}


# --- faults while the model answers ---


def disconnect(server: RedisServer) -> None:
    with client_of(server) as client:
        client.client_kill_filter(_type="normal", skipme=True)


def restart(server: RedisServer) -> None:
    server.kill()
    server.start()


def forget_scripts(server: RedisServer) -> None:
    with client_of(server) as client:
        client.script_flush()


def stop_for_a_while(server: RedisServer) -> None:
    os.kill(server.pid, signal.SIGSTOP)


def fill(server: RedisServer) -> None:
    with client_of(server) as client:
        client.config_set("maxmemory", 1)


def become_replica(server: RedisServer) -> None:
    with client_of(server) as client:
        client.replicaof("127.0.0.1", "1")


def heal(server: RedisServer) -> None:
    with suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGCONT)
    with client_of(server) as client:
        client.config_set("maxmemory", 0)
        client.replicaof("NO", "ONE")


FAULTS: Mapping[str, Callable[[RedisServer], None]] = {
    "disconnects": disconnect,
    "was-killed-and-restarted": restart,
    "lost-its-scripts": forget_scripts,
    "hangs": stop_for_a_while,
    "memory-is-full": fill,
    "became-a-replica": become_replica,
}
"""What its owner, or its failing machine, does while the model answers."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_survives_its_redis(server: RedisServer, tmp_path: Path, fault: str) -> None:
    llm = During(lambda: FAULTS[fault](server))
    with opened(llm, f"{server.url}{_SHORT}", tmp_path) as talks:
        was_answered = is_answered(talks, fault)
        heal(server)
        assert was_answered or any(is_answered(talks, fault) for _ in range(_MOST_TRIES))
        assert llm.kinds.count("read") <= 2, "the call that was under way, and one more"
        assert [turn["query"] for turn in talks.conversation(fault).history()] == [CLASS]


# --- servers that refuse ---


async def use(url: str) -> None:
    async with open_checkpointer(url) as saver:
        await saver.aget_tuple({"configurable": {"thread_id": "t"}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://ada:hunter2@{at}", r"Check the user and password"),
        ("redis://ada:hunter2@127.0.0.1:1/0", r"redis://127\.0\.0\.1:1/0.*Check JUDGETREE_CHECKPOINTS"),
        ("redis://{at}?socket_timeout=hunter2", "malformed"),
        ("redis://{at}?hunter2=3", "malformed"),
        ("redis://:12/hunter2@{at}", "Write these as %2F"),
        ("redis://:p@ss#hunter2@{at}", "Write these as %2F"),
        ("redis://127.0.0.1:1/hunter", "malformed: behind the host stands the number"),
        ("redis://127.0.0.1:1/0/1", "malformed: behind the host stands the number"),
        ("rediss://{at}?ssl_ca_certs=/hunter2", "cannot be used"),
        ("redis://{at}?socket_timeout=0", "malformed: socket_timeout=0 is no time to wait"),
        ("redis://{at}?socket_connect_timeout=-1", "malformed: socket_connect_timeout=-1 is no time to wait"),
        ("rediss://{at}?socket_connect_timeout=0.3", "If its port speaks no TLS, write redis://"),
    ],
)
def test_an_address_that_does_not_work_is_named_without_its_password(server: RedisServer, url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        asyncio.run(use(url.format(at=server.url.removeprefix("redis://"))))
    assert "hunter2" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("user", ["", ":hunter2@"])
def test_a_password_that_is_wrong_or_missing_is_told(server: RedisServer, user: str) -> None:
    with client_of(server) as client:
        client.config_set("requirepass", "right")
        try:
            with pytest.raises(StoreFailure, match="Check the user and password in JUDGETREE_CHECKPOINTS") as caught:
                asyncio.run(use(server.url.replace("redis://", f"redis://{user}")))
        finally:
            client.config_set("requirepass", "")
    assert not re.search("hunter2|HELLO", str(caught.value))
    assert ("it wants a password, and the address has none" in str(caught.value)) == (not user)


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_server_that_speaks_another_way_may_speak_tls(is_silent: bool) -> None:
    """One that waits for a greeting of TLS, or hangs up at what is none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            for _ in range(_MOST_TRIES):
                with suppress(OSError):
                    listening.accept()[0].close()

        if not is_silent:
            threading.Thread(target=hang_up, daemon=True).start()
        url = f"redis://127.0.0.1:{listening.getsockname()[1]}/0{_SHORT}"
        with pytest.raises(StoreFailure, match="If its port speaks TLS, write rediss://"):
            asyncio.run(use(url))


def test_a_password_stands_in_no_file_and_in_no_key(server: RedisServer, tmp_path: Path) -> None:
    with client_of(server) as client:
        client.config_set("requirepass", "hunter2")
        try:
            url = server.url.replace("redis://", "redis://:hunter2@")
            settings = settings_in(tmp_path, checkpoints=Address(url), record="full")
            llm = TalkingLLM()
            with open_conversations(tmp_path, llm, settings=settings) as talks:
                for query in (CLASS, OIL):
                    assert talks.conversation("a").ask(query).status == "answered"
            contents = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
        finally:
            client.config_set("requirepass", "")
    assert len(texts := plain_texts_in(server)) > 100
    assert [each for each in [*contents, *texts] if b"hunter2" in each] == []


def plain_texts_in(server: RedisServer) -> list[bytes]:
    """All fields and values, unpacked."""
    texts: list[bytes] = []
    with client_of(server) as client:
        for each in client.scan_iter():
            if client.type(each) == b"hash":
                for field, value in client.hgetall(each).items():  # type: ignore[union-attr]
                    texts += [field, value, *unpacked(value)]
    return texts


def unpacked(value: bytes) -> Iterator[bytes]:
    for start in range(len(value) - 1):
        if value[start] == 0x78:  # the first byte of what zlib has compressed
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(value[start:])


def test_a_silent_redis_is_given_up(server: RedisServer) -> None:
    async def silent() -> None:
        async with open_checkpointer(f"{server.url}{_SHORT}") as saver:
            os.kill(server.pid, signal.SIGSTOP)
            try:
                for work in (saver.aget_tuple({"configurable": {"thread_id": "t"}}), saver.adelete_thread("t")):
                    with pytest.raises(StoreFailure, match="Check JUDGETREE_CHECKPOINTS"):
                        await work
            finally:
                os.kill(server.pid, signal.SIGCONT)
            assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is None

    asyncio.run(silent())


def test_data_of_another_format_is_refused_by_name(server: RedisServer) -> None:
    with client_of(server) as client:
        client.set("judgetree:format", "judgetree-redis/99")
    with pytest.raises(SettingsError, match=r"has the format 'judgetree-redis/99'.*another database"):
        asyncio.run(use(server.url))


# --- what is saved is whole ---

_CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def put(saver: Saver, number: int, parent: RunnableConfig = _CONFIG, *, is_new: bool = True) -> RunnableConfig:
    """Save a checkpoint with a value too long to stand in it, which is sent along only if it is new."""
    checkpoint = {**empty_checkpoint(), "id": f"{number}", "channel_values": {"kept": ["x" * 500]}}
    checkpoint["channel_versions"] = {"kept": "1"}
    return await saver.aput(parent, checkpoint, {}, {"kept": "1"} if is_new else {})  # type: ignore[arg-type]


def test_a_full_memory_refuses_a_save_whole(server: RedisServer) -> None:
    async def filled() -> None:
        async with open_checkpointer(server.url) as saver:
            saved = await put(saver, 1)
            before = keys_in(server)
            fill(server)
            for work in (put(saver, 2, saved), saver.aput_writes(saved, [("kept", "y")], "task")):
                with pytest.raises(StoreFailure, match=r"maxmemory: raise it, or delete conversations"):
                    await work
            assert keys_in(server) == before
            assert await saver.aget_tuple(_CONFIG) is not None, "what is saved is read"
            await saver.adelete_thread("t")
            assert set(keys_in(server)) == {b"judgetree:format"}, "what is deleted makes room"

    asyncio.run(filled())


def test_conversations_are_deleted_from_a_full_memory(server: RedisServer, tmp_path: Path) -> None:
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        assert talks.conversation("a").ask(CLASS).status == "answered"
    fill(server)
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        assert [each.name for each in talks.summaries()] == ["a"]
        with pytest.raises(StoreFailure, match="maxmemory"):
            talks.conversation("b").ask(CLASS)
        assert talks.delete("a") > 0
        assert talks.summaries() == []


OF_THREAD = [*(f"judgetree:{kind}:t" for kind in THREAD_KINDS), 'judgetree:writes:t:["", "2"]']
OF_STORE = ["judgetree:saved", "judgetree:names"]
_LONGER = 't:["x"]'
"""A thread whose keys begin like those of the other."""


async def fill_threads(saver: Saver) -> None:
    for thread_id in ("t", _LONGER):
        own: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        saved = await put(saver, 1, own)
        await saver.aput_writes(saved, [("kept", "y")], "task")
        await saver.aput_writes(await put(saver, 2, saved, is_new=False), [("kept", "z")], "task")


def lose(server: RedisServer, *names: str) -> None:
    with client_of(server) as client:
        assert client.delete(*names) == len(names)


def test_no_kind_of_key_escapes_these_tests(server: RedisServer) -> None:
    async def kept() -> None:
        async with open_checkpointer(server.url) as saver:
            await fill_threads(saver)
            await saver.adelete_thread(_LONGER)

    asyncio.run(kept())
    named = {each.decode() for each in keys_in(server)}
    assert named == {*OF_THREAD, *OF_STORE, 'judgetree:writes:t:["", "1"]', "judgetree:format"}


@pytest.mark.parametrize("lost", [*OF_THREAD, *OF_STORE])
def test_a_thread_that_lost_a_key_is_not_begun_anew(server: RedisServer, lost: str) -> None:
    async def read() -> None:
        async with open_checkpointer(server.url) as saver:
            await fill_threads(saver)
            lose(server, lost)
            newest: RunnableConfig = {"configurable": {**_CONFIG["configurable"], "checkpoint_id": "2"}}
            if lost in OF_STORE:  # either is made again from the other
                assert await newest_first(saver, "t") == [_LONGER, "t"]
                assert len([each async for each in saver.alist(None)]) == 4
                await put(saver, 3, following(newest, "2"), is_new=False)
                assert await newest_first(saver, "t") == ["t", _LONGER]
                return
            for config in (_CONFIG, newest):
                with pytest.raises(LostParts, match=r"lost parts .* 't'.*noeviction"):
                    await saver.aget_tuple(config)
            with pytest.raises(LostParts):
                _ = [each async for each in saver.alist(_CONFIG)]
            if ":writ" not in lost:
                with pytest.raises(LostParts, match="lost parts"):
                    await put(saver, 3, newest, is_new=False)
                with pytest.raises((LostParts, ThreadMoved)):
                    await put(saver, 3, following(_CONFIG, ""))
            assert "t" in await newest_first(saver, "t"), "it is listed"
            assert "t" in {each.config["configurable"]["thread_id"] async for each in saver.alist(None)}

    asyncio.run(read())


def test_a_thread_that_lost_any_keys_is_deleted_whole(server: RedisServer) -> None:
    """All but the loss of every key that names it or its places, after which nothing tells of its last writes."""

    async def deleted() -> None:
        async with open_checkpointer(server.url) as saver:
            of_all = [*OF_THREAD, *OF_STORE]
            for lost in itertools.chain.from_iterable(itertools.combinations(of_all, n) for n in range(1, 5)):
                await fill_threads(saver)
                lose(server, *lost)
                await saver.adelete_thread("t")
                of_t = {each for each in keys_in(server) if each.split(b":", 2)[2:3] in ([b"t"], [b't:["", "1"]'])}
                assert of_t == set(), lost
                with client_of(server) as client:
                    left = [each for each in client.zrange("judgetree:saved", 0, -1) if each.startswith(b"1:t")]
                    assert (left, client.zscore("judgetree:names", "t")) == ([], None), lost
                    assert client.hlen(f"judgetree:values:{_LONGER}") > 0
                    client.flushall()
                    client.set("judgetree:format", saver._mark)  # type: ignore[attr-defined]

    asyncio.run(deleted())


def test_a_save_that_is_sent_twice_is_one(server: RedisServer) -> None:
    """Its answer may be lost with the connection, so that the client cannot know."""

    async def twice() -> None:
        async with open_checkpointer(server.url) as saver:
            for _ in range(2):
                await put(saver, 1, following(_CONFIG, ""))
            assert [each.checkpoint["id"] async for each in saver.alist(_CONFIG)] == ["1"]

    asyncio.run(twice())


def test_no_key_is_left_of_what_is_deleted(server: RedisServer, tmp_path: Path) -> None:
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        for name in ("a", 'b: ["x"]', "\N{GRINNING FACE}"):
            talk = talks.conversation(name)
            for query in (CLASS, OIL, SCREW, "And its oil?"):
                assert talk.ask(query).status == "answered"
        assert len(keys_in(server)) > 20
        for name in ("a", 'b: ["x"]', "\N{GRINNING FACE}"):
            talks.delete(name)
        of_store = {key for key in keys_in(server) if b":judgetree:store" in key}
        assert set(keys_in(server)) - of_store == {b"judgetree:format", b"judgetree:saved", b"judgetree:names"}
        with client_of(server) as client:
            assert client.zrange("judgetree:names", 0, -1) == [b"judgetree:store"]


@pytest.mark.parametrize("of", ["conversation", "search", "turn"])
@pytest.mark.parametrize("kind", THREAD_KINDS)
def test_a_conversation_that_lost_a_key_is_named_and_deleted_whole(
    server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, of: str
) -> None:
    llm = TalkingLLM()
    with opened(llm, server.url, tmp_path) as talks:
        assert talks.conversation("other").ask(CLASS).status == "answered"
        before = set(keys_in(server))
        llm.broken = {"read": DOWN} if of == "turn" else {}
        search = talks.conversation("a b").ask(CLASS).tree
        assert search is not None
        roots = {"conversation": "conversation:a b", "search": search.root.thread_id}
        lose(server, f"judgetree:{kind}:{roots.get(of, f'turn:{search.root.thread_id}')}")
        if (of, kind) != ("conversation", "written") and of != "search":  # its newest has no writes, and misses none
            with pytest.raises(LostParts, match=r"lost parts .* judgetree conversations delete 'a b'"):
                talks.conversation("a b").ask(CLASS)
        if of == "search":
            caplog.clear()
            assert [*talks.conversation("a b").tree().trees.values()] == [None]
            assert "a turn is without its search tree: " in caplog.text
        if of == "conversation" and kind != "written":
            with pytest.raises(LostParts, match=r"lost parts .* judgetree conversations delete 'a b'"):
                talks.conversation("a b").history()
            assert [each.name for each in talks.summaries()] == ["other"]
            assert "left out of the list: " in caplog.text and "judgetree conversations delete 'a b'" in caplog.text
            report = talks.delete_old_conversations(1)
            assert report.unreadable == ("a b",)
        assert talks.delete("a b") > 0
        assert set(keys_in(server)) == before
        llm.broken = {}
        assert talks.conversation("other").ask(OIL).status == "answered"


@pytest.mark.parametrize("kind", ["order", "saved", "newest"])
def test_a_store_that_lost_its_id_has_that_of_its_conversations(server: RedisServer, tmp_path: Path, kind: str) -> None:
    def store_id(name: str) -> str:
        with opened(TalkingLLM(), server.url, tmp_path) as talks:
            return talks.conversation(name).ask(CLASS).conversation_id.partition(".")[0]

    first = store_id("a")
    lose(server, f"judgetree:{kind}:judgetree:store")
    assert store_id("b") == first
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        talks.delete("a")
        talks.delete("b")
    assert store_id("c") != first, "made anew, over what was left"
    assert store_id("d") == store_id("c")


def test_a_redis_that_lost_its_format_alone_says_so(
    server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        talks.conversation("a").ask(CLASS)
        assert "judgetree:format" not in caplog.text
    lose(server, "judgetree:format")
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        assert [each.name for each in talks.summaries()] == ["a"]
    assert "has lost its key judgetree:format" in caplog.text


def test_what_is_left_of_a_conversation_is_deleted_by_its_command(
    server: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        talks.conversation("a").ask(CLASS)
    lose(server, "judgetree:newest:conversation:a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGETREE_CHECKPOINTS", server.url)
        patch.setenv("JUDGETREE_HOME", str(tmp_path / "other"))  # the memory here is of another embedder
        patch.setenv("JUDGETREE_EMBEDDINGS", "local:use")
        assert main(["conversations", "delete", "a", "--yes"]) == 0
    assert "deleted what the store has not lost of the conversation 'a'" in capsys.readouterr().err
    assert not [each for each in keys_in(server) if b"conversation:a" in each]


def flush(server: RedisServer) -> None:
    with client_of(server) as client:
        client.flushall()


@pytest.mark.parametrize("opens_another", [False, True])
def test_a_redis_that_was_emptied_between_two_turns_is_noticed(
    server: RedisServer, tmp_path: Path, opens_another: bool
) -> None:
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        assert talks.conversation("a").ask(CLASS).status == "answered"
        flush(server)
        if opens_another:
            asyncio.run(use(server.url))
        for name in ("a", "new"):
            with pytest.raises(LostParts, match=r"has lost everything.*Start judgetree again"):
                talks.conversation(name).ask("And its oil?")
        with pytest.raises(LostParts, match="has lost everything"):
            talks.summaries()
        assert set(keys_in(server)) <= {b"judgetree:format"}, "nothing is begun in it"
    with opened(TalkingLLM(), server.url, tmp_path) as talks:
        assert talks.conversation("a").ask(CLASS).status == "answered"


def test_a_redis_that_was_emptied_in_a_turn_keeps_nothing_of_it(server: RedisServer, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, checkpoints=Address(server.url), record="full")
    with (
        open_conversations(tmp_path, During(lambda: flush(server)), settings=settings) as talks,
        pytest.raises(LostParts, match=r"has lost everything.*The conversation is 'a'"),
    ):
        talks.conversation("a").ask(CLASS)
    assert keys_in(server) == {}


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
def test_a_store_that_is_full_in_mid_search_names_the_thread(
    server: RedisServer, tmp_path: Path, durability: Literal["async", "sync", "exit"]
) -> None:
    """However little of it was saved, asking again on the thread answers."""
    settings = settings_in(tmp_path, checkpoints=Address(server.url), durability=durability)
    context = RagContext(reader=During(lambda: fill(server)), retriever=TableRetriever(TABLE))
    with RagSession(system="naive", context=context, settings=settings) as session:
        with pytest.raises(StoreFailure, match=r"once the store works, ask it again with --thread-id 'my thread'"):
            session.ask(CLASS, thread_id="my thread")
        heal(server)
        assert session.ask(CLASS, thread_id="my thread").answer == "Delta"


def test_a_store_that_was_emptied_in_mid_search_names_the_thread(server: RedisServer, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, checkpoints=Address(server.url))
    context = RagContext(reader=During(lambda: flush(server)), retriever=TableRetriever(TABLE))
    with (
        RagSession(system="naive", context=context, settings=settings) as session,
        pytest.raises(StoreFailure, match="thread is 'my thread', which cannot be resumed: ask under another id"),
    ):
        session.ask(CLASS, thread_id="my thread")
    assert keys_in(server) == {}


# --- locks ---


def test_a_lock_that_its_redis_forgot_ends_its_turn(server: RedisServer) -> None:
    async def forgotten() -> None:
        locks = locks_of(server.url, check_every_s=0.01)
        try:
            with pytest.raises(StoreFailure, match=r"lock in Redis at .* was lost.*Ask again"):
                async with locks.hold("c"):
                    with client_of(server) as client:
                        client.flushall()
                    await asyncio.Event().wait()
            async with locks.hold("c", wait=False):
                pass
        finally:
            await locks.aclose()

    asyncio.run(forgotten())


def test_a_lock_that_ended_unnoticed_is_told(server: RedisServer) -> None:
    async def ended() -> None:
        locks = RedisLocks(server.url, check_every_s=60)
        try:
            with pytest.raises(StoreFailure, match="was lost"):
                async with locks.hold("c"):
                    with client_of(server) as client:
                        client.flushall()
        finally:
            await locks.aclose()

    asyncio.run(ended())


def test_a_lock_whose_renewal_fails_in_a_way_that_nobody_knows_is_given_up(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(locks: RedisLocks, held: object) -> None:
        raise TypeError("no such reply")

    async def failing() -> None:
        locks = RedisLocks(server.url, check_every_s=0.01)
        try:
            with monkeypatch.context() as patch, pytest.raises(StoreFailure, match=r"renewed .*no such reply"):
                patch.setattr(RedisLocks, "_renew", fail)
                async with locks.hold("c"):
                    await asyncio.Event().wait()
            with client_of(server) as client:
                client.flushall()
            async with locks.hold("d"), asyncio.timeout(10):
                with client_of(server) as client:
                    (name,) = (key for key in client.keys("judgetree:lock:*") if client.pexpire(key, 500, lt=True))
                    while client.pttl(name) <= 500:  # noqa: ASYNC110 - nothing tells of a renewal
                        await asyncio.sleep(0.01)
        finally:
            await locks.aclose()

    monkeypatch.setattr("judgetree.modules.locks.redis.EXPIRE_S", 3.0)
    asyncio.run(failing())


@pytest.mark.slow
def test_a_lock_is_given_up_before_it_expires_while_redis_hangs(server: RedisServer) -> None:
    async def hung() -> None:
        locks = locks_of(f"{server.url}?socket_timeout=30", check_every_s=0.1)
        try:
            with pytest.raises(StoreFailure, match="has not answered in time"):
                async with locks.hold("c"):
                    os.kill(server.pid, signal.SIGSTOP)
                    async with asyncio.timeout(10):
                        await asyncio.Event().wait()
        finally:
            os.kill(server.pid, signal.SIGCONT)
            await locks.aclose()

    asyncio.run(hung())


# --- doctor ---


@pytest.mark.parametrize(
    ("options", "works", "said"),
    [
        ({}, True, r"Redis 7\.\S+, no modules, and none needed; keeps AOF"),
        ({"appendonly": "no"}, False, "keeps nothing on a disk; .*restart loses all: set appendonly yes"),
        (
            {"maxmemory": 2**30, "maxmemory-policy": "allkeys-lru"},
            False,
            r"at 1024 MiB it drops keys \(allkeys-lru\), conversations too: set maxmemory-policy noeviction",
        ),
    ],
)
def test_doctor_says_what_may_lose_conversations(
    server: RedisServer, tmp_path: Path, options: dict[str, object], works: bool, said: str
) -> None:
    with client_of(server) as client:
        for name, value in options.items():
            client.config_set(name, value)
        try:
            checks = run_checks(settings_in(tmp_path, checkpoints=Address(server.url)))
            store = next(each for each in checks if each.name == "store")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert (store.works, store.is_needed) == (works, False)
    assert re.search(said, store.detail), store.detail


def until(name: str, checks: Iterator[Check]) -> list[Check]:
    """The checks up to one of a name; what is behind it is not run."""
    found: list[Check] = []
    while not found or found[-1].name != name:
        found.append(next(checks))
    return found


def deny_info(server: RedisServer) -> None:
    with client_of(server) as client:
        client.execute_command("ACL", "SETUSER", "default", "-info")


@pytest.mark.parametrize(
    ("fault", "failing", "said"),
    [
        (fill, ["checkpoints"], "maxmemory: raise it"),
        (become_replica, ["checkpoints"], "Name the primary: this server is a replica"),
        (deny_info, ["store"], "does not answer INFO .*see that appendonly is yes"),
    ],
)
def test_doctor_says_what_a_redis_refuses(
    server: RedisServer, tmp_path: Path, fault: Callable[[RedisServer], None], failing: list[str], said: str
) -> None:
    asyncio.run(use(server.url))  # its format is written already
    fault(server)
    try:
        settings = settings_in(tmp_path, checkpoints=Address(server.url), embeddings="local:unheard")
        checks = until("embedder", run_checks(settings))
    finally:
        with client_of(server) as client:
            client.execute_command("ACL", "SETUSER", "default", "+@all")
        heal(server)
    of_store = [each for each in checks if each.name in ("checkpoints", "store")]
    assert [each.name for each in of_store if not each.works] == failing
    assert re.search(said, next(each.detail for each in of_store if not each.works))
    assert of_store[0].is_needed
