"""Old conversations go with all they have; nothing of any other is touched, whatever happens meanwhile."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest

from judgetree.graphs.conversation.expiry import ExpiryReport
from judgetree.graphs.conversation.identity import new_conversation_id
from judgetree.graphs.conversation.turn.context import ConversationOptions, turn_fingerprint
from judgetree.graphs.conversation.turn.state import new_conversation
from judgetree.graphs.conversation.turn.store import ConversationStore
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import CollectionError, SettingsError
from judgetree.modules.index.connection import connect
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from judgetree.modules.memory.memory import ConversationMemory
from tests.graphs.conversation.talk import (
    ANSWERS,
    CLASS,
    DOWN,
    OIL,
    SCREW,
    TABLE,
    TalkingLLM,
    open_conversations,
    saved,
    settings_in,
)
from tests.graphs.fakes import TableRetriever, chunk
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.memories import foreign_row
from tests.modules.turn_factory import make_turn

DEEP = "Which oil does KS-1 need?"
LONG_AGO = "2020-01-01T00:00:00+00:00"


class MemoryWithHooks(ConversationMemory):
    """A real memory that can be told to fail, or to do something before it deletes."""

    before_deletion: Callable[[str], object] = staticmethod(lambda conversation_id: None)

    def delete_turns(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> int:
        self.before_deletion(conversation_id)
        return super().delete_turns(conversation_id, turn_ids)


@pytest.fixture
def memory(tmp_path: Path) -> MemoryWithHooks:
    return MemoryWithHooks(BagOfWordsEmbedder(), uri=settings_in(tmp_path).milvus_address)


@pytest.fixture
def talks(tmp_path: Path, llm: TalkingLLM, memory: MemoryWithHooks) -> Iterator[Conversations]:
    with open_conversations(tmp_path, llm, memory=memory) as opened, memory:
        yield opened


def store_of(talks: Conversations) -> ConversationStore:
    return background_loop().run(talks.services.open()).store


def new_id(talks: Conversations) -> str:
    """An id for a conversation of the store."""
    return new_conversation_id(background_loop().run(background_loop().run(talks.services.open()).make_store_id()))


def write(talks: Conversations, name: str, updated_at: str, **changes: object) -> None:
    """Keep a conversation that was last spoken in at a given time."""
    state = {**new_conversation(name, new_id(talks), updated_at), "title": "a question", **changes}
    background_loop().run(store_of(talks).begin(state))  # type: ignore[arg-type]


def threads(talks: Conversations) -> set[str]:
    """Every thread that the store has any checkpoint of."""

    saver = store_of(talks).saver

    async def listed() -> set[str]:
        saved = [each async for each in saver.alist(None)]
        return {each.config["configurable"]["thread_id"] for each in saved} - {"judgetree:store"}

    return background_loop().run(listed())


def own_database(postgres_url: str) -> str:
    """A new database on a server that other tests use too."""
    import psycopg

    name = f"expiry_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
    return urlsplit(postgres_url)._replace(path=f"/{name}").geturl()


def own_redis(redis_url: str) -> str:
    """The second database, emptied, of a server whose first other tests use."""
    import redis

    url = redis_url.removesuffix("/0") + "/1"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


def ids(talks: Conversations) -> set[str]:
    return {summary.name for summary in talks.summaries()}


def name_of(talks: Conversations, conversation_id: str) -> str:
    return next(each.name for each in talks.summaries() if each.conversation_id == conversation_id)


def asking_in_the_other(talks: Conversations, memory: MemoryWithHooks) -> dict[str, str]:
    """Ask in the other one of "a" and "b" once the first of them is deleted; how that ended, by its name."""
    ended: dict[str, str] = {}

    def ask(conversation_id: str) -> None:
        if not ended:
            name = "ab".replace(name_of(talks, conversation_id), "")
            ended[name] = talks.conversation(name).ask(CLASS).status

    memory.before_deletion = ask  # type: ignore[method-assign]
    return ended


def days_later(days: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(days=days)


def last_spoken(talks: Conversations, conversation_id: str) -> datetime:
    found = next(each for each in talks.summaries() if each.name == conversation_id)
    return datetime.fromisoformat(found.updated_at)


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def local_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not hasattr(time, "tzset"):
        pytest.skip("the time zone of a process cannot be changed here")
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("local_time")
@pytest.mark.parametrize("here", [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")], ids=str)
def test_age_is_counted_in_24_hours(tmp_path: Path, here: ZoneInfo, llm: TalkingLLM, memory: MemoryWithHooks) -> None:
    written = {
        "to the microsecond": "2026-03-28T00:30:00.000000+00:00",
        "a microsecond short": "2026-03-28T00:30:00.000001+00:00",
        "in Z": "2026-03-28T00:30:00Z",
        "without a zone, so UTC": "2026-03-28T00:30:00",
        "without a zone, a microsecond short": "2026-03-28T00:30:00.000001",
        "in the winter time of Berlin": "2026-03-28T01:30:00+01:00",
        "short, in the winter time of Berlin": "2026-03-28T02:00:00+01:00",
        "west of here": "2026-03-27T19:30:00-05:00",
        "west of here, a microsecond short": "2026-03-27T19:30:00.000001-05:00",
    }
    # Summer time begins in Berlin in these 48 hours.
    now = datetime(2026, 3, 30, 0, 30, tzinfo=UTC).astimezone(here)
    settings = settings_in(tmp_path, checkpoints="memory:")
    with open_conversations(tmp_path, llm, memory=memory, settings=settings) as talks, memory:
        for conversation_id, updated_at in written.items():
            write(talks, conversation_id, updated_at)
        report = talks.delete_old_conversations(2, clock=lambda: now)
        assert set(report.conversations) == {each for each in written if "short" not in each}
        assert ids(talks) == {each for each in written if "short" in each}


@pytest.mark.parametrize("kept_in", ["sqlite", "memory", "postgres", "redis"])
def test_everything_of_an_old_conversation_goes_and_nothing_of_another(
    request: pytest.FixtureRequest, tmp_path: Path, kept_in: str, llm: TalkingLLM, memory: MemoryWithHooks
) -> None:
    urls = {"sqlite": f"sqlite:///{tmp_path / 'c.sqlite'}", "memory": "memory:"}
    if kept_in == "postgres":
        urls["postgres"] = own_database(request.getfixturevalue("postgres_url"))
    elif kept_in == "redis":
        urls["redis"] = own_redis(request.getfixturevalue("redis_url"))
    url = urls[kept_in]
    facts = [
        GoldFact(quote="KS-1 is class Delta", question=CLASS, remaining_question=OIL),
        GoldFact(quote="Class Delta needs Vellin", question=OIL),
    ]
    services = RagContext(
        reader=llm,
        retriever=TableRetriever({**TABLE, DEEP: [chunk("class", "KS-1 is class Delta, and is green.")]}),
        judge=OracleJudge({DEEP: facts, OIL: facts[1:], CLASS: facts[:1]}),
    )
    settings = settings_in(tmp_path, checkpoints=url)
    with memory, Conversations(system="judge", context=services, memory=memory, settings=settings) as talks:
        before = threads(talks)
        young = talks.conversation("young")
        young.ask(CLASS)
        of_young = threads(talks) - before
        old = talks.conversation("old")
        old.ask(DEEP)
        old.ask(DEEP, parent_turn_id="")
        llm.broken = {"read": DOWN}
        assert old.ask(CLASS).status == "failed"
        llm.broken = {}
        of_old = threads(talks) - before - of_young
        old_id = old.conversation_id
        assert len(of_old) > 1 + 2 * 2, "its own, and of each turn the root and a sub-question"
        when = last_spoken(talks, "old")
        young.ask("And its oil?")

        reported = talks.delete_old_conversations(3, dry_run=True, clock=lambda: when + timedelta(days=3))
        assert ids(talks) >= {"old", "young"}
        assert len(old.turns()) == 2
        report = talks.delete_old_conversations(3, clock=lambda: when + timedelta(days=3))

        assert report == ExpiryReport(conversations=("old",), turns=2, threads=len(of_old), dry_run=False)
        assert vars(reported) == {**vars(report), "dry_run": True}
        assert not threads(talks) & of_old
        assert of_young <= threads(talks)
        assert old.turns() == memory.turns_of(old_id) == []
        assert [turn["answer"] for turn in young.history()] == [ANSWERS[CLASS], ANSWERS[OIL]]
        assert young.search_tree(young.history()[0]) is not None


def test_a_conversation_that_is_answering_is_left_alone_and_reported(talks: Conversations) -> None:
    talks.conversation("busy").ask(CLASS)

    async def swept() -> ExpiryReport:
        async with (await talks.services.open()).locks.hold("busy"):
            return await talks.adelete_old_conversations(1, clock=days_later(2))

    report = background_loop().run(swept())
    assert (report.conversations, report.busy, report.turns) == ((), ("busy",), 0)
    assert len(talks.conversation("busy").history()) == 1
    assert talks.delete_old_conversations(1, clock=days_later(2)).conversations == ("busy",)


def test_a_conversation_that_is_used_meanwhile_stays(talks: Conversations, memory: MemoryWithHooks) -> None:
    for conversation_id in "ab":
        write(talks, conversation_id, LONG_AGO)
    spoken = asking_in_the_other(talks, memory)
    report = talks.delete_old_conversations(1)
    ((name, _),) = spoken.items()
    assert [*report.conversations, name] in (["a", "b"], ["b", "a"])
    assert [turn["answer"] for turn in talks.conversation(name).history()] == [ANSWERS[CLASS]]


def test_a_turn_that_failed_again_leaves_no_thread(
    talks: Conversations, memory: MemoryWithHooks, llm: TalkingLLM
) -> None:
    """Going on with an open turn writes threads, but not the time, before the turn is saved."""
    open_turn = {"turn_id": "t", "parent_turn_id": "", "branch_id": "main", "turn_number": 1, "query": CLASS}
    open_turn["fingerprint"] = turn_fingerprint(ConversationOptions(), talks.services.limits)
    for name in "ab":
        write(talks, name, LONG_AGO, open_turn={**open_turn, "request_id": "", "collection": ""})
    llm.broken = {"read": DOWN}
    asked = asking_in_the_other(talks, memory)
    assert set(talks.delete_old_conversations(1).conversations) == {"a", "b"}
    assert [*asked.values()] == ["failed"]
    assert threads(talks) == set()


def test_what_an_interruption_leaves_the_next_call_deletes(
    talks: Conversations, memory: MemoryWithHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = store_of(talks).saver
    delete_thread = saver.adelete_thread
    left = -1

    def count_down(error: Exception) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise error

    async def failing_delete(thread_id: str) -> None:
        count_down(sqlite3.OperationalError("disk I/O error"))
        await delete_thread(thread_id)

    monkeypatch.setattr(saver, "adelete_thread", failing_delete)
    memory.before_deletion = lambda conversation_id: count_down(CollectionError("gone"))  # type: ignore[method-assign]
    steps = 0
    while left <= 0:
        steps += 1
        left = 0  # asking deletes threads too
        for conversation_id in "ab":
            talks.conversation(conversation_id).ask(CLASS)
        left = steps
        try:
            talks.delete_old_conversations(1, clock=days_later(2))
        except (SettingsError, CollectionError):
            left = 0
            report = talks.delete_old_conversations(1, clock=days_later(2))
            assert report.conversations, "there was something left, and it was found"
        assert threads(talks) == set()
        assert memory.conversations() == []
    assert steps == 1 + 2 * (1 + 2), "for each of two: the memory, the search tree, its own thread; then none failed"


def test_orphaned_turns_of_this_store_are_deleted_when_old(talks: Conversations, memory: MemoryWithHooks) -> None:
    undated = {**make_turn(3), "timestamp": ""}
    old, spoken_in, without_time = (new_id(talks) for _ in range(3))
    of_another_store = new_conversation_id("0" * 32)
    memory.add_turns(old, [make_turn(1), make_turn(2), undated])  # type: ignore[list-item]
    memory.add_turns(spoken_in, [make_turn(1), {**make_turn(2), "timestamp": datetime.now(UTC).isoformat()}])
    memory.add_turns(without_time, [undated])  # type: ignore[list-item]
    memory.add_turns(of_another_store, [make_turn(1)])
    memory.add_turns("of another program", [make_turn(1)])
    live = talks.conversation("live")
    live.ask(CLASS)
    memory.add_turns(live.conversation_id, [make_turn(1, turn_id="foreign")])
    expected = ExpiryReport(conversations=(), turns=3, threads=0, dry_run=True, orphans=(old,))
    assert talks.delete_old_conversations(30, dry_run=True) == expected
    assert vars(talks.delete_old_conversations(30)) == {**vars(expected), "dry_run": False}
    kept = [live.conversation_id, spoken_in, without_time, of_another_store, "of another program"]
    assert memory.conversations() == sorted(kept)
    assert len(memory.turns_of(live.conversation_id)) == 2


def test_one_that_cannot_be_read_is_left_alone_and_keeps_nothing_else(talks: Conversations) -> None:
    write(talks, "old", LONG_AGO)
    write(talks, "newer", LONG_AGO, format="judgetree-conversation/99")
    report = talks.delete_old_conversations(1)
    assert (report.conversations, report.unreadable) == (("old",), ("newer",))
    assert threads(talks) == {"conversation:newer"}


@pytest.mark.parametrize("days", [0, -1, 1.0, True, "3", None])
def test_an_impossible_age_is_refused_before_anything_is_read(talks: Conversations, days: object) -> None:
    with pytest.raises(SettingsError, match="whole numbers of days from 1 on"):
        talks.delete_old_conversations(days)  # type: ignore[arg-type]


def test_any_age_is_possible_and_the_settings_have_one(tmp_path: Path, llm: TalkingLLM) -> None:
    settings = settings_in(tmp_path, conversation_expire_days=2, checkpoints="memory:")
    with open_conversations(tmp_path, llm, settings=settings) as talks:
        talks.conversation("s").ask(CLASS)
        assert talks.delete_old_conversations(10**9).conversations == ()
        assert talks.cleanup_expired_conversations(clock=days_later(1.9)).conversations == ()
        report = background_loop().run(talks.acleanup_expired_conversations(clock=days_later(2), dry_run=True))
        assert report.conversations == ("s",)


def test_progress_is_told_for_each_that_is_old(talks: Conversations, memory: MemoryWithHooks) -> None:
    for conversation_id in "ab":
        write(talks, conversation_id, LONG_AGO)
    memory.add_turns(new_id(talks), [make_turn(1)])
    talks.conversation("young").ask(SCREW)
    told: list[tuple[int, int]] = []
    talks.delete_old_conversations(1, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_pages_of_any_size_find_the_same_threads(talks: Conversations) -> None:
    for conversation_id in "ab":
        talks.conversation(conversation_id).ask(CLASS)
    found = background_loop().run(store_of(talks).all_threads())
    for size in (1, 3, 7):
        store = ConversationStore(store_of(talks).saver, page_checkpoints=size)
        assert background_loop().run(store.all_threads()) == found
    assert {kept.name for kept in found.values()} == {"a", "b"}
    for kept in found.values():
        state = background_loop().run(store_of(talks).load(kept.name))
        assert state is not None
        assert set(kept.threads) == set(background_loop().run(store_of(talks).threads_of(state)))
        assert kept.threads[-1] == f"conversation:{kept.name}"


def test_backfill_takes_one_name_or_all_once(tmp_path: Path, talks: Conversations, memory: MemoryWithHooks) -> None:
    of_another_store = new_conversation_id("0" * 32)
    for session in "ab":
        memory.add_turns(session, [make_turn(1)])
    with closing(connect(settings_in(tmp_path).milvus_address)) as connection:
        for key in ("a2", "a3", "b2", "b3"):
            row = foreign_row(key, key[0], "a question", f"2026-02-0{key[1]}")
            connection.client.upsert("conversations", [row])
        row = foreign_row("other", of_another_store, "a question", "2026-02-01")
        connection.client.upsert("conversations", [row])
    assert talks.backfill("a", dry_run=True) == 2
    assert talks.backfill("a") == 2
    assert [turn["turn_number"] for turn in talks.conversation("a").history()] == [1, 2, 3]
    assert (talks.backfill(dry_run=True), talks.backfill(), talks.backfill()) == (2, 2, 0)
    assert [turn["turn_number"] for turn in talks.conversation("b").history()] == [1, 2, 3]
    assert talks.backfill("nobody") == 0
    own = [talks.conversation(name).conversation_id for name in "ab"]
    assert memory.conversations() == sorted([*own, of_another_store]), "turns moved from the names to the ids"


def test_backfilled_turns_are_gone_on_with(tmp_path: Path, talks: Conversations, memory: MemoryWithHooks) -> None:
    talks.conversation("known").ask(CLASS)
    memory.add_turns("foreign", [make_turn(1)])
    # Another program may know a conversation by its name, or by its id.
    sessions = {"foreign": "foreign", "known": "known", "by id": talks.conversation("known").conversation_id}
    with closing(connect(settings_in(tmp_path).milvus_address)) as connection:
        for key, session in sessions.items():
            day = 3 if key == "by id" else 2
            row = foreign_row(f"{key}-late", session, "a question", f"2099-02-0{day}")
            connection.client.upsert("conversations", [row])
    assert talks.backfill() == 3
    for name, last, turns in (("foreign", "foreign-late", 2), ("known", "by id-late", 3)):
        talk = talks.conversation(name)
        assert [turn["turn_number"] for turn in talk.history()] == list(range(1, turns + 1))
        turn = saved(talk.ask(SCREW))
        assert (turn["turn_number"], turn["parent_turn_id"]) == (turns + 1, last)
        assert len(talk.history()) == turns + 1
