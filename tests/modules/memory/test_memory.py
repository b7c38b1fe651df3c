"""The memory's contract, on embedded Milvus Lite and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import MilvusConnection
from judgetree.modules.index.index import Index
from judgetree.modules.memory.memory import ConversationMemory, in_order
from judgetree.modules.memory.schema import MAX_ID_BYTES, moment_us
from judgetree.modules.memory.turns import QaPair
from tests.database_servers import is_locked
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.memories import Clock, OpenMemory, foreign_row, new_name, opened_memories
from tests.modules.turn_factory import ids_of, make_ref, make_turn

NASTY = ['a" or conversation_id != "', "%", "'", "\\", "*", "a\nb", "🐈", "汉字", "", " ", "a", "a ", "\x01", "null"]
TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=30)
MAIN = {"main": 99}
KEY = st.sampled_from(NASTY) | st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collection() -> str:
    return new_name()


@pytest.fixture
def open_memory(connection: MilvusConnection, collection: str, clock: Clock) -> Iterator[OpenMemory]:
    with opened_memories(connection, collection, clock) as open_memory:
        yield open_memory


@pytest.fixture
def memory(open_memory: OpenMemory) -> ConversationMemory:
    return open_memory()


@pytest.fixture(scope="module")
def shared(embedded: MilvusConnection) -> Iterator[ConversationMemory]:
    """One memory for all examples of a property: they clean up after themselves."""
    with opened_memories(embedded, new_name(), Clock()) as open_memory:
        yield open_memory()


def full_turn() -> QaPair:
    return {
        **make_turn(3, "And his?", "Oslo, Nordmarka"),
        "standalone_query": "Where was his brother born?",
        "parent_turn_id": "t2",
        "answered_from": "web",
        "chunks": [make_ref("c1", score=None, retrieval_score=None), make_ref("c2")],
        "rag_thread_id": "thread",
        "request_id": "request",
        "summary": "They spoke of two brothers.",
        "usage": {"llm_calls": 2, "prompt_tokens": 3, "completion_tokens": 4, "seconds": 0.25},
    }


class TestKeeping:
    def test_nothing_is_remembered_at_first(self, memory: ConversationMemory) -> None:
        assert memory.conversations() == memory.turns_of("s") == memory.get_recent_history("s", 3, spans=MAIN) == []
        assert memory.retrieve_relevant_history("s", "question", 3) == []
        assert memory.missing("s", ["a", "b"]) == {"a", "b"}
        assert memory.delete_turns("s") == 0
        assert memory.records_without_parent() == {}

    def test_a_turn_comes_back_as_it_was(self, memory: ConversationMemory, open_memory: OpenMemory) -> None:
        memory.add_turns("s", [full_turn()])
        assert memory.turns_of("s") == [full_turn()]
        memory.close()
        assert memory.turns_of("s") == open_memory().turns_of("s") == [full_turn()]

    def test_others_can_read_columns(
        self, memory: ConversationMemory, connection: MilvusConnection, collection: str
    ) -> None:
        memory.add_turns("s", [full_turn()])
        (row,) = connection.client.query(collection, filter='turn_id == "main-3"', output_fields=["*"], limit=2)
        assert (row["conversation_id"], row["user_query"], row["assistant_response"]) == (
            "s",
            "And his?",
            "Oslo, Nordmarka",
        )
        assert (row["parent_turn_id"], row["branch_id"], row["turn_number"]) == ("t2", "main", 3)
        assert (row["timestamp"], row["token_count"]) == (full_turn()["timestamp"], full_turn()["token_count"])
        assert '"chunk_id": "c2"' in row["context_docs"]

    def test_what_is_embedded_is_the_question_in_both_forms_with_its_answer(self, open_memory: OpenMemory) -> None:
        embedder = BagOfWordsEmbedder()
        open_memory(embedder).add_turns("s", [full_turn(), make_turn(4)])
        assert embedder.embedded == ["And his?\nWhere was his brother born?\nOslo, Nordmarka", "question 4\nanswer 4"]

    def test_turns_and_queries_are_embedded_folded_and_shown_as_they_were(self, open_memory: OpenMemory) -> None:
        embedder = BagOfWordsEmbedder()
        memory = open_memory(embedder)
        memory.add_turns("s", [make_turn(1, query="The ﬁre of 10⁶ W?", answer="No")])
        ((turn, _),) = memory.retrieve_relevant_history("s", "the ﬁ\u00adre", 1)
        assert embedder.embedded == ["The fire of 10^6 W?\nNo", "the fire"]
        assert turn["query"] == "The ﬁre of 10⁶ W?"

    def test_a_turn_added_again_replaces_itself(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(1), make_turn(2), make_turn(1, answer="another")])
        memory.add_turns("s", [make_turn(2, answer="better")])
        assert memory.turns_of("s") == [make_turn(1, answer="another"), make_turn(2, answer="better")]

    def test_missing_turns_are_named(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(number, turn_id=f"t{number}") for number in range(600)])
        assert memory.missing("s", [f"t{number}" for number in range(601)]) == {"t600"}
        assert memory.missing("other", ["t1"]) == {"t1"}
        assert memory.missing("s", []) == set()

    def test_any_number_of_turns_is_read(self, memory: ConversationMemory) -> None:
        turns = [make_turn(number) for number in range(1, 1101)]
        memory.add_turns("s", turns)
        assert memory.turns_of("s") == turns
        assert memory.turns_of("s", ids_of(turns[3:700])) == turns[3:700]
        assert memory.turns_of("s", []) == []
        assert memory.delete_turns("s") == 1100

    def test_deleted_turns_are_gone(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(1), make_turn(2), make_turn(3)])
        memory.add_turns("other", [make_turn(1)])
        assert memory.delete_turns("s", ["main-2", "never"]) == 1
        assert (
            ids_of(memory.turns_of("s"))
            == ids_of(memory.get_recent_history("s", 9, spans=MAIN))
            == ["main-1", "main-3"]
        )
        assert memory.delete_turns("s", []) == 0
        assert memory.delete_turns("s") == 2
        assert memory.conversations() == ["other"]

    def test_long_texts_come_back_whole(self, memory: ConversationMemory) -> None:
        turn = make_turn(1, "汉" * 70_000, "answer " * 30_000)
        turn["chunks"] = [make_ref(f"{number}" * 64) for number in range(500)]
        memory.add_turns("s", [turn])
        assert memory.turns_of("s") == [turn]

    def test_a_turn_beyond_all_measure_is_refused(self, open_memory: OpenMemory) -> None:
        memory = open_memory()
        with pytest.raises(CollectionError, match=r"'main-1' is too long to be saved: 10\d+ bytes"):
            memory.add_turns("s", [make_turn(2), make_turn(1, "x" * 5_000_000)])
        assert memory.turns_of("s") == []

    @settings(max_examples=25)
    @given(query=TEXT, answer=TEXT, summary=TEXT | st.just("\ud800"))
    def test_any_text_comes_back(self, shared: ConversationMemory, query: str, answer: str, summary: str) -> None:
        turn: QaPair = {**make_turn(1), "query": query, "answer": answer, "standalone_query": query, "summary": summary}
        shared.add_turns("texts", [turn])
        assert shared.turns_of("texts") == [turn]
        shared.delete_turns("texts")


class TestSessions:
    @settings(max_examples=30)
    @given(conversations=st.lists(KEY, min_size=2, max_size=2, unique=True), turn_id=KEY, branch_id=KEY)
    def test_sessions_are_apart(
        self, shared: ConversationMemory, conversations: list[str], turn_id: str, branch_id: str
    ) -> None:
        check_apart(shared, conversations, turn_id=turn_id, branch_id=branch_id)

    def test_an_odd_name_is_a_name(self, memory: ConversationMemory) -> None:
        for name in NASTY:
            check_apart(memory, [name, "other"], turn_id=name, branch_id=name)

    @pytest.mark.parametrize("conversation_id", ["x" * (MAX_ID_BYTES + 1), "汉" * 400, "a\x00b", "\ud800"])
    @pytest.mark.parametrize(
        "use",
        [
            lambda memory, conversation_id: memory.add_turns(conversation_id, [make_turn(1)]),
            lambda memory, conversation_id: memory.turns_of(conversation_id),
            lambda memory, conversation_id: memory.get_recent_history(conversation_id, 3, spans=MAIN),
            lambda memory, conversation_id: memory.retrieve_relevant_history(conversation_id, "query", 3),
            lambda memory, conversation_id: memory.delete_turns(conversation_id),
        ],
    )
    def test_an_impossible_name_is_refused(
        self, shared: ConversationMemory, conversation_id: str, use: Callable[[ConversationMemory, str], object]
    ) -> None:
        with pytest.raises(CollectionError, match=r"conversation_id=.* cannot be stored. Allowed: at most 1024 bytes"):
            use(shared, conversation_id)

    def test_a_name_of_the_greatest_length_is_allowed(self, memory: ConversationMemory) -> None:
        memory.add_turns("汉" * 341, [make_turn(1)])
        assert memory.conversations() == ["汉" * 341]


def check_apart(memory: ConversationMemory, conversations: list[str], *, turn_id: str, branch_id: str) -> None:
    """Two conversations with turns of the same id and path: neither sees, changes or deletes the other's."""
    try:
        _check_apart(memory, conversations, turn_id=turn_id, branch_id=branch_id)
    finally:
        for conversation in memory.conversations():
            memory.delete_turns(conversation)


def _check_apart(memory: ConversationMemory, conversations: list[str], *, turn_id: str, branch_id: str) -> None:
    turns = {
        conversation: make_turn(1, f"question of {position}", turn_id=turn_id, branch_id=branch_id)
        for position, conversation in enumerate(conversations)
    }
    for conversation, turn in turns.items():
        memory.add_turns(conversation, [turn])
    assert memory.conversations() == sorted(conversations)
    spans = {branch_id: 1}
    for conversation, turn in turns.items():
        assert memory.turns_of(conversation) == memory.turns_of(conversation, [turn_id]) == [turn]
        assert memory.get_recent_history(conversation, 5, spans=spans) == [turn]
        assert [found for found, _ in memory.retrieve_relevant_history(conversation, "question", 5, spans=spans)] == [
            turn
        ]
        assert memory.missing(conversation, [turn_id, f"{turn_id}+"]) == {f"{turn_id}+"}
    assert memory.delete_turns(conversations[0]) == 1
    assert memory.turns_of(conversations[0]) == []
    assert memory.turns_of(conversations[1]) == [turns[conversations[1]]]


FORKED = [*(make_turn(number) for number in range(1, 7)), *(make_turn(n, branch_id="fork") for n in (4, 5))]
TO_FORK = {"main": 3, "fork": 5}


class TestRecentHistory:
    def test_the_newest_turns_of_a_path_come_oldest_first(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", FORKED[::-1])
        assert ids_of(memory.get_recent_history("s", 3, spans=TO_FORK)) == ["main-3", "fork-4", "fork-5"]
        assert ids_of(memory.get_recent_history("s", 2, spans={"main": 4})) == ["main-3", "main-4"]
        assert len(memory.get_recent_history("s", 9, spans={"main": 6})) == 6
        assert memory.get_recent_history("s", 3, spans={}) == memory.get_recent_history("s", 0, spans=MAIN) == []

    def test_older_turns_stand_in_for_those_not_remembered(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(number) for number in (1, 2, 5, 9)])
        assert ids_of(memory.get_recent_history("s", 3, spans={"main": 8})) == ["main-1", "main-2", "main-5"]

    def test_own_writes_are_seen_at_once(
        self, memory: ConversationMemory, open_memory: OpenMemory, clock: Clock
    ) -> None:
        memory.add_turns("s", [make_turn(1)])
        assert ids_of(memory.get_recent_history("s", 5, spans=MAIN)) == ["main-1"]
        open_memory().add_turns("s", [make_turn(2)])
        clock.now = 299
        assert ids_of(memory.get_recent_history("s", 5, spans=MAIN)) == ["main-1"]
        clock.now = 301
        assert ids_of(memory.get_recent_history("s", 5, spans=MAIN)) == ["main-1", "main-2"]
        memory.add_turns("s", [make_turn(3)])
        assert ids_of(memory.get_recent_history("s", 5, spans=MAIN)) == ["main-1", "main-2", "main-3"]


class TestRelevantHistory:
    def test_what_shares_words_comes_first(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(1, "cats sleep", "all day"), make_turn(2, "dogs bark", "at night")])
        memory.add_turns("other", [make_turn(1, "dogs", "bark")])
        (first, best), (second, rest) = memory.retrieve_relevant_history("s", "dogs bark", 5)
        assert (first["turn_id"], second["turn_id"]) == ("main-2", "main-1")
        assert -1 <= rest < best <= 1.001
        assert ids_of([turn for turn, _ in memory.retrieve_relevant_history("s", "dogs bark", 1)]) == ["main-2"]

    def test_the_same_words_are_next_to_one(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", [make_turn(1, "cats sleep", "all day")])
        assert memory.retrieve_relevant_history("s", "cats sleep all day", 1)[0][1] == pytest.approx(1, abs=1e-4)

    def test_path_and_number_restrict_it(self, memory: ConversationMemory) -> None:
        memory.add_turns("s", FORKED)

        def found(*, spans: dict[str, int] | None = None, below_number: int | None = None) -> set[str]:
            hits = memory.retrieve_relevant_history("s", "question", 20, spans=spans, below_number=below_number)
            return {turn["turn_id"] for turn, _ in hits}

        assert found(spans=TO_FORK) == {"main-1", "main-2", "main-3", "fork-4", "fork-5"}
        assert found(spans=TO_FORK, below_number=5) == {"main-1", "main-2", "main-3", "fork-4"}
        assert found(below_number=2) == {"main-1"}
        assert found(spans={}) == found(spans={"never": 9}) == found(below_number=1) == set()

    @pytest.mark.parametrize(("query", "top_k"), [("", 3), (" \n", 3), ("cats", 0)])
    def test_no_question_costs_nothing(self, open_memory: OpenMemory, query: str, top_k: int) -> None:
        embedder = BagOfWordsEmbedder()
        memory = open_memory(embedder)
        memory.add_turns("s", [make_turn(1)])
        embedder.embedded.clear()
        assert memory.retrieve_relevant_history("s", query, top_k) == []
        assert embedder.embedded == []

    def test_few_turns_among_many_are_found_however_far_they_are(
        self, memory: ConversationMemory, connection: MilvusConnection, collection: str
    ) -> None:
        near = [make_turn(number, f"cats sleep w{number}", "cats cats", branch_id="near") for number in range(1, 1000)]
        far = [make_turn(number, f"x{number}", "unlike") for number in (1, 2, 3)]
        memory.add_turns("s", [*near, *far])
        connection.client.flush(collection)
        # Loading again builds the index of what was flushed; else vectors may still be compared one by one.
        connection.client.release_collection(collection)
        connection.client.load_collection(collection)
        hits = memory.retrieve_relevant_history("s", "cats sleep", 3, spans={"main": 3})
        assert {turn["turn_id"] for turn, _ in hits} == {"main-1", "main-2", "main-3"}


class TestRowsOfOthers:
    @pytest.fixture
    def foreign(self, memory: ConversationMemory, connection: MilvusConnection, collection: str) -> ConversationMemory:
        memory.add_turns("s", [make_turn(1)])
        rows = [
            foreign_row("k2", "s", "second", "2026-01-01 03:00:00"),
            foreign_row("k1", "s", "first", "2026-01-01T02:00:00Z", turn_id="own", extra="kept"),
            foreign_row("k0", "s", "timeless"),
        ]
        connection.client.upsert(collection, rows)
        return memory

    def test_they_are_read(self, foreign: ConversationMemory) -> None:
        turns = foreign.turns_of("s")
        assert ids_of(turns) == ["k0", "main-1", "own", "k2"]
        assert (turns[2]["query"], turns[2]["answer"], turns[2]["parent_turn_id"]) == ("first", "yes", "")
        assert turns[2]["timestamp"] == "2026-01-01T02:00:00Z"
        assert foreign.turns_of("s", ["own", "k2"]) == turns[2:]

    def test_they_are_found(self, foreign: ConversationMemory) -> None:
        assert foreign.missing("s", ["own", "k2", "k9"]) == {"k9"}
        assert len(foreign.retrieve_relevant_history("s", "question", 9)) == 4
        assert foreign.delete_turns("s", ["own", "k2"]) == 2

    def test_they_are_on_no_path(self, foreign: ConversationMemory) -> None:
        assert ids_of(foreign.get_recent_history("s", 9, spans={"main": 9})) == ["main-1"]
        assert foreign.records_without_parent() == {"s": foreign.turns_of("s", ["k0", "own", "k2"])}
        assert foreign.records_without_parent("other") == {}

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("1970-01-01T00:00:00.000001+00:00", 1),
            ("1970-01-01 01:00:00+01:00", 0),
            ("1970-01-01", 0),
            ("1969-12-31T23:59:59Z", -1_000_000),
            ("yesterday", None),
            ("", None),
        ],
    )
    def test_times_are_read_in_any_iso_form(self, text: str, moment: int | None) -> None:
        assert moment_us(text) == moment


class TestRefusals:
    def test_other_embedders_fail(self, memory: ConversationMemory, open_memory: OpenMemory) -> None:
        memory.add_turns("s", [make_turn(1)])
        other = open_memory(BagOfWordsEmbedder("fake:other"))
        for use in (lambda: other.turns_of("s"), lambda: other.add_turns("s", [make_turn(2)])):
            with pytest.raises(CollectionError, match=r"with fake:bag \(dense\), not with fake:other \(dense\)"):
                use()
        with pytest.raises(CollectionError, match=r"vectors of length 8, the memory '\w+' takes 64"):
            open_memory(BagOfWordsEmbedder(dimension=8)).add_turns("s", [make_turn(2)])
        assert memory.turns_of("s") == [make_turn(1)]

    def test_documents_and_conversations_keep_out_of_each_other(
        self, connection: MilvusConnection, make_index: Callable[[MilvusConnection], Index], docs: Path, clock: Clock
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index = make_index(connection)
        index.get_index_done()
        with (
            ConversationMemory(
                BagOfWordsEmbedder(), collection=index.vector_store_name, uri=connection.uri, token=""
            ) as misplaced,
            pytest.raises(CollectionError, match="does not hold conversations"),
        ):
            misplaced.add_turns("s", [make_turn(1)])
        conversations = new_name()
        with opened_memories(connection, conversations, clock) as open_memory:
            open_memory().add_turns("s", [make_turn(1)])
            with (
                Index(BagOfWordsEmbedder(), docs, None, conversations, uri=connection.uri, token="") as wrong,
                pytest.raises(CollectionError, match="Choose another name"),
            ):
                wrong.get_index_done()

    @pytest.mark.parametrize("name", ["", "1a", "a-b", "turns__0123abcd"])
    def test_impossible_names_are_refused(self, name: str) -> None:
        with pytest.raises(CollectionError, match="cannot be a collection's name"):
            ConversationMemory(BagOfWordsEmbedder(), collection=name)

    def test_a_collection_that_was_dropped_is_explained_and_made_again(
        self, memory: ConversationMemory, connection: MilvusConnection, collection: str
    ) -> None:
        memory.add_turns("s", [make_turn(1)])
        connection.client.drop_collection(collection)
        with pytest.raises(
            CollectionError, match=f"The memory '{collection}' cannot be read. Milvus could not query: .* try again"
        ):
            memory.turns_of("s")
        memory.add_turns("s", [make_turn(2)])
        assert memory.turns_of("s") == [make_turn(2)]


class TestSharing:
    def test_threads_and_objects_can_begin_at_once(self, open_memory: OpenMemory) -> None:
        memories = [open_memory(), open_memory()]

        def add(number: int) -> None:
            memories[number % 2].add_turns("s", [make_turn(number)])
            assert memories[number % 2].missing("s", [f"main-{number}"]) == set()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(1, 41)))
        assert memories[0].turns_of("s") == [make_turn(number) for number in range(1, 41)]

    def test_close_frees_the_folder_and_use_opens_it_again(self, tmp_path: Path) -> None:
        with ConversationMemory(BagOfWordsEmbedder(), uri=str(tmp_path / "own.db"), token="") as memory:
            memory.add_turns("s", [make_turn(1)])
            assert is_locked(tmp_path / "own.db" / "LOCK")
            memory.close()
            assert not is_locked(tmp_path / "own.db" / "LOCK")
            assert memory.turns_of("s") == [make_turn(1)]
        assert not is_locked(tmp_path / "own.db" / "LOCK")


def test_turns_are_in_the_order_of_their_times_but_each_after_its_parent() -> None:
    def turn(turn_id: str, number: int, minute: int, parent_id: str) -> QaPair:
        made = make_turn(number, turn_id=turn_id, minute=minute)
        made["parent_turn_id"] = parent_id
        return made

    turns = [
        turn("d", 4, 1, "c"),
        turn("f", 2, 7, "a"),
        turn("c", 3, 8, "b"),
        turn("b", 2, 4, "a"),
        turn("a", 1, 5, ""),
    ]
    assert ids_of(in_order(turns)) == ["a", "b", "f", "c", "d"]
    assert in_order([]) == []
