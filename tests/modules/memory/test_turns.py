"""Turns as data: paths through forked conversations, chunks of several turns, histories of others."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.memory.turns import (
    MAIN_BRANCH,
    Branch,
    ChunkRef,
    QaPair,
    count_tokens,
    imported_turn,
    is_on_path,
    merge_refs,
    new_branch,
    path_spans,
    rag_thread_of,
    utc_now,
)
from tests.modules.turn_factory import make_ref, make_turn

FORK_OR_GO_ON = st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=25)
"""A step forks a new branch from a turn, or asks one more turn on a branch; the number chooses which."""


def grow(steps: list[tuple[bool, int]]) -> tuple[dict[str, Branch], list[QaPair]]:
    """A conversation as it would be led: its branches, and its turns in the order in which they were asked."""
    branches = {MAIN_BRANCH: new_branch(MAIN_BRANCH, MAIN_BRANCH)}
    turns: list[QaPair] = []
    for forks, choice in steps:
        if forks and turns:
            branch_id = f"b{len(branches)}"
            branches[branch_id] = new_branch(branch_id, branch_id, forked_from=turns[choice % len(turns)])
        branch = branches[list(branches)[-1 if forks else choice % len(branches)]]
        number = branch["head_number"] + 1
        turn = make_turn(number, branch_id=branch["branch_id"], turn_id=f"t{len(turns)}")
        turn["parent_turn_id"] = branch["head_turn_id"]
        branch["head_turn_id"], branch["head_number"] = turn["turn_id"], number
        turns.append(turn)
    return branches, turns


def walk(turns: list[QaPair], turn_id: str) -> set[str]:
    """Ids from a turn up to its root, parent by parent."""
    by_id = {turn["turn_id"]: turn for turn in turns}
    path: set[str] = set()
    while turn_id:
        path.add(turn_id)
        turn_id = by_id[turn_id]["parent_turn_id"]
    return path


class TestPaths:
    @given(steps=FORK_OR_GO_ON)
    def test_spans_tell_the_path_of_every_turn(self, steps: list[tuple[bool, int]]) -> None:
        branches, turns = grow(steps)
        for head in turns:
            spans = path_spans(branches, head["branch_id"], head["turn_number"])
            path = {turn["turn_id"] for turn in turns if is_on_path(turn, spans)}
            assert path == walk(turns, head["turn_id"])
            assert len(path) == head["turn_number"] == max(spans.values())

    @given(steps=FORK_OR_GO_ON)
    def test_a_branch_has_the_path_of_its_newest_turn(self, steps: list[tuple[bool, int]]) -> None:
        branches, turns = grow(steps)
        for branch_id, branch in branches.items():
            spans = path_spans(branches, branch_id, branch["head_number"])
            assert {turn["turn_id"] for turn in turns if is_on_path(turn, spans)} == walk(turns, branch["head_turn_id"])

    def test_before_the_first_turn_there_is_no_path(self) -> None:
        branches, _ = grow([])
        assert path_spans(branches, MAIN_BRANCH, 0) == path_spans(branches, "", 0) == {}
        assert not is_on_path(make_turn(1), {})

    def test_a_branch_that_only_forked_adds_no_span(self) -> None:
        branches = {
            MAIN_BRANCH: new_branch(MAIN_BRANCH, "main"),
            "fork": new_branch("fork", "fork", forked_from=make_turn(2)),
        }
        assert path_spans(branches, "fork", 2) == {MAIN_BRANCH: 2}
        assert path_spans(branches, "fork", 1) == {MAIN_BRANCH: 1}
        assert path_spans(branches, "fork", 4) == {"fork": 4, MAIN_BRANCH: 2}


REFS = st.builds(
    make_ref,
    st.sampled_from("abcd"),
    score=st.sampled_from([None, 0, 1, 2]),
    retrieval_score=st.sampled_from([None, 0.1, 0.9]),
)
TURNS_WITH_REFS = st.lists(st.lists(REFS, max_size=4), max_size=4).map(
    lambda lists: [{**make_turn(number), "chunks": refs} for number, refs in enumerate(lists, start=1)]
)


def worth(ref: ChunkRef) -> tuple[float, float]:
    score, retrieval_score = ref["score"], ref["retrieval_score"]
    return (0.5 if score is None else score, float("-inf") if retrieval_score is None else retrieval_score)


class TestMergeRefs:
    @given(turns=TURNS_WITH_REFS)
    def test_each_chunk_is_there_once_with_its_best_score(self, turns: list[QaPair]) -> None:
        given_refs = [ref for turn in turns for ref in turn["chunks"]]
        merged = merge_refs(turns)
        assert sorted(ref["chunk_id"] for ref in merged) == sorted({ref["chunk_id"] for ref in given_refs})
        for ref in merged:
            assert worth(ref) == max(worth(other) for other in given_refs if other["chunk_id"] == ref["chunk_id"])
        assert [worth(ref) for ref in merged] == sorted(map(worth, merged), reverse=True)

    @given(turns=TURNS_WITH_REFS, data=st.data())
    def test_the_order_of_the_turns_does_not_matter(self, turns: list[QaPair], data: st.DataObject) -> None:
        assert merge_refs(data.draw(st.permutations(turns))) == merge_refs(turns)

    @given(turns=TURNS_WITH_REFS)
    def test_merging_what_was_merged_changes_nothing(self, turns: list[QaPair]) -> None:
        merged = merge_refs(turns)
        assert merge_refs([{**make_turn(1), "chunks": merged}]) == merged

    def test_of_equals_the_newer_turns_chunk_is_first(self) -> None:
        turns: list[QaPair] = [
            {**make_turn(1), "chunks": [make_ref("old", score=2), make_ref("again", score=2)]},
            {**make_turn(2), "chunks": [make_ref("new", score=2)]},
            {**make_turn(3), "chunks": [make_ref("again", score=0)]},
        ]
        assert [ref["chunk_id"] for ref in merge_refs(turns)] == ["new", "old", "again"]

    def test_nothing_merges_to_nothing(self) -> None:
        assert merge_refs([]) == merge_refs([make_turn(1)]) == []


class TestImportedTurns:
    def test_a_turn_of_another_program_follows_its_parent(self) -> None:
        parent = imported_turn("q", "a", parent=None, turn_id="t1", timestamp="then")
        turn = imported_turn("r", "", parent=parent, turn_id="t2", timestamp="later")
        assert (parent["parent_turn_id"], parent["turn_number"], parent["status"]) == ("", 1, "answered")
        assert (turn["parent_turn_id"], turn["turn_number"], turn["status"]) == ("t1", 2, "refused")
        assert (turn["branch_id"], turn["standalone_query"], turn["timestamp"]) == (MAIN_BRANCH, "r", "later")

    def test_a_turns_tree_has_a_thread_of_its_own(self) -> None:
        ids = [("a", "b"), ("a:", "b"), ("a", ":b"), ("1:a", "b"), ("", "a:b"), ("a:b", "")]
        assert len({rag_thread_of(*pair) for pair in ids}) == len(ids)
        assert rag_thread_of("a", "b") == rag_thread_of("a", "b")

    def test_tokens_grow_with_the_text(self) -> None:
        assert count_tokens() == 0
        assert 0 < count_tokens("ab") < count_tokens("ab" * 50) < count_tokens("汉字" * 50)
        assert count_tokens("a", "b") == count_tokens("a") + count_tokens("b")

    def test_times_sort_as_text(self) -> None:
        first, second = utc_now(), utc_now()
        assert first <= second
        assert len(first) == len(second)
        assert datetime.fromisoformat(first).tzinfo == UTC
