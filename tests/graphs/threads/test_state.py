from __future__ import annotations

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.graphs.threads.state import ChunkPatch, Search, merge_chunks, merge_searches, merge_usage
from judgetree.modules.calls.usage import CallRecord
from tests.call_records import call_record

KEYS = ("score", "reason", "sub_answer", "next_rag_thread_id")
ids = st.sampled_from(["a", "b", "c", "d"])
scalars = st.one_of(st.none(), st.integers(), st.text(max_size=5))
patches = st.builds(
    lambda chunk_id, changes: ChunkPatch(chunk_id=chunk_id, changes=changes),
    ids,
    st.dictionaries(st.sampled_from(KEYS), scalars),
)


def chunk_of(chunk_id: str, rank: int) -> Document:
    return Document(page_content=f"text {chunk_id}", metadata={"chunk_id": chunk_id, "rank": rank, "score": None})


chunk_lists = st.permutations(["a", "b", "c"]).map(
    lambda order: [chunk_of(chunk_id, rank) for rank, chunk_id in enumerate(order)]
)


@given(chunk_lists)
def test_merge_chunks_with_nothing_changes_nothing(chunks: list[Document]) -> None:
    assert merge_chunks(chunks, []) == chunks


@given(chunk_lists, st.lists(patches))
def test_merge_chunks_twice_is_once(chunks: list[Document], changes: list[ChunkPatch]) -> None:
    once = merge_chunks(chunks, changes)
    assert merge_chunks(once, changes) == once


@given(chunk_lists, st.lists(patches, max_size=6), st.randoms())
def test_merge_chunks_of_disjoint_keys_in_any_order(chunks: list[Document], changes: list[ChunkPatch], random) -> None:  # type: ignore[no-untyped-def]
    taken: set[tuple[str, str]] = set()
    disjoint: list[ChunkPatch] = []
    for patch in changes:
        kept = {key: value for key, value in patch["changes"].items() if (patch["chunk_id"], key) not in taken}
        taken |= {(patch["chunk_id"], key) for key in kept}
        disjoint.append(ChunkPatch(chunk_id=patch["chunk_id"], changes=kept))
    shuffled = disjoint[:]
    random.shuffle(shuffled)
    assert merge_chunks(chunks, disjoint) == merge_chunks(chunks, shuffled)


@given(chunk_lists, st.lists(patches))
def test_merge_chunks_leaves_its_arguments_alone(chunks: list[Document], changes: list[ChunkPatch]) -> None:
    before = deepcopy((chunks, changes))
    merge_chunks(chunks, changes)
    assert (chunks, changes) == before


def test_merge_chunks_sets_only_the_keys_of_the_patch() -> None:
    merged = merge_chunks([chunk_of("a", 0)], [ChunkPatch(chunk_id="a", changes={"score": 2})])
    assert merged == [Document(page_content="text a", metadata={"chunk_id": "a", "rank": 0, "score": 2})]


def test_merge_chunks_sorts_by_rank_and_drops_patches_of_unknown_chunks() -> None:
    merged = merge_chunks([chunk_of("b", 1)], [chunk_of("a", 0), ChunkPatch(chunk_id="gone", changes={"score": 1})])
    assert [chunk.metadata["chunk_id"] for chunk in merged] == ["a", "b"]


def record(call_id: str, tokens: int) -> CallRecord:
    return call_record(call_id, prompt_tokens=tokens, completion_tokens=0)


records = st.lists(st.builds(record, ids, st.just(1)))


@given(records, records, records)
def test_merge_usage_is_a_union(one: list[CallRecord], two: list[CallRecord], three: list[CallRecord]) -> None:
    one = merge_usage([], one)
    assert merge_usage(one, []) == one
    assert merge_usage(merge_usage(one, two), two) == merge_usage(one, two)
    assert merge_usage(merge_usage(one, two), three) == merge_usage(one, merge_usage(two, three))
    assert {r["call_id"] for r in merge_usage(one, two)} == {r["call_id"] for r in (*one, *two)}


def test_merge_usage_lets_the_later_record_of_a_call_win() -> None:
    assert merge_usage([record("a", 1), record("b", 1)], [record("a", 7)]) == [record("a", 7), record("b", 1)]


def test_searches_are_kept_once_in_the_order_of_their_ends() -> None:
    first, second = (Search(query="q", chunk_ids=["a"], seconds=0.5, ended_at=at) for at in (1.0, 2.0))
    assert merge_searches([], []) == []
    assert merge_searches([second], [first]) == merge_searches([first], [second]) == [first, second]
    assert merge_searches([first, second], [first]) == [first, second]
