"""Why an answer is wrong: each kind on the smallest tree that shows it, and exactly one kind for each error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.answers import score_answer
from judgetree.evaluation.reports.failures import FAILURE_KINDS, FAILURE_WORDS, FailureKind, failure_kind
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.store import RowChunk, RunRow
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode, VerdictLabel, walk_chunks
from tests.eval.run_rows import run_row
from tests.eval.run_writer import RunWriter
from tests.eval.shown import evidence_text, with_places

QUESTION = EvalQuestion(id="q", question="How thick is it?", answers=("40 mm",), supporting=("a", "b"))
TEXTS = {"a": "Norm A names the drum.", "b": "The wall of the drum is 40 mm thick."}
REFUSAL = "I cannot answer this question."


def chunk(
    key: str, verdict: VerdictLabel = "pending", child: QueryNode | None = None, sub_answer: str = ""
) -> ChunkNode:
    judged = verdict in ("0", "1", "2")
    return ChunkNode(
        chunk_id=f"chunk-{key}",
        text=TEXTS.get(key, f"Nothing of use in {key}."),
        metadata={
            "verdict": "judged" if judged else verdict,
            "score": int(verdict) if judged else None,
            "sub_answer": sub_answer,
        },
        sub_runs=(child,) if child else (),
    )


def query(*chunks: ChunkNode, depth: int = 0) -> QueryNode:
    return QueryNode(
        thread_id=f"t{depth}",
        query="?",
        depth=depth,
        status="finished",
        evidence=evidence_text(chunks),
        chunks=with_places(chunks),
    )


def asked(key: str, *below: ChunkNode, sub_answer: str = "") -> ChunkNode:
    """A chunk that scored 1 and led to a sub-run that found ``below``."""
    return chunk(key, "1", query(*below, depth=1), sub_answer)


def kind_of(
    *chunks: ChunkNode,
    question: EvalQuestion = QUESTION,
    fingerprint: Mapping[str, str] | None = None,
    **changes: object,
) -> FailureKind | None:
    tree = SearchTree(root=query(*chunks), fingerprint=fingerprint or {"max_rec_depth": "2"})
    return failure_kind(row_of(tree, **changes), question, lambda: tree)


def row_of(tree: SearchTree, **changes: object) -> RunRow:
    found = tuple(
        RowChunk(
            key=each.chunk_id.removeprefix("chunk-"), chunk_id=each.chunk_id, depth=above.depth, rank=0, verdict=""
        )
        for above, each in walk_chunks(tree.root)
    )
    values = {"question": "How thick is it?", "prediction": "a ladder", "thread_id": "t0", "chunks": found}
    return run_row(**{**values, **changes})


def test_right_answer_is_no_failure_however_it_was_found() -> None:
    assert kind_of(chunk("x", "0"), prediction="40 mm") is None


def test_gold_with_blank_lines_and_labels_reached_the_reader_all_the_same() -> None:
    gold = replace(chunk("a"), text="# Norm A\n\nQuery: which drum?\n\nThe drum of norm A.")
    tree = SearchTree(root=query(gold, chunk("b")), fingerprint={"max_rec_depth": "2"})
    assert [each.chunk_id for each in tree.root.shown_chunks] == ["chunk-a", "chunk-b"]
    naive = row_of(tree, system="naive", status="refused", prediction=REFUSAL)
    assert failure_kind(naive, QUESTION, lambda: tree) == "refused_despite_evidence"
    assert failure_kind(replace(naive, status="answered"), QUESTION, lambda: tree) == "reader_missed"


def test_gold_document_that_another_chunk_stands_for_was_found() -> None:
    tree = SearchTree(root=query(chunk("x"), chunk("b")), fingerprint={"max_rec_depth": "2"})
    row = row_of(tree, system="naive", status="answered")
    copied = replace(row, chunks=tuple(replace(each, also=("a",)) for each in row.chunks))
    assert failure_kind(row, QUESTION, lambda: tree) == "retrieval_miss"
    assert failure_kind(copied, QUESTION, lambda: tree) == "reader_missed"


def test_failed_run_is_that_whatever_it_had_found() -> None:
    assert kind_of(chunk("a", "0"), status="failed", prediction="") == "failed_run"


def test_unanswerable_question_is_refused_or_wrong() -> None:
    nobody = replace(QUESTION, answers=(), supporting=())
    assert kind_of(question=nobody) == "answered_unanswerable"
    assert kind_of(question=nobody, status="refused", prediction=REFUSAL) is None


def test_answer_that_contains_gold_fails_by_format() -> None:
    assert kind_of(chunk("x"), prediction="It is 40 mm thick.") == "format_only"


def test_system_without_retrieval_had_but_its_memory() -> None:
    assert kind_of(system="llm") == "closed_book"


def test_cause_cannot_be_told_without_gold_documents_or_without_a_tree() -> None:
    assert kind_of(chunk("a"), question=replace(QUESTION, supporting=())) == "other"
    assert failure_kind(row_of(SearchTree(root=query(chunk("a")))), QUESTION, lambda: None) == "other"


def followed_up(*first: str, second: str, answer: str = "", shown: str = "") -> FailureKind | None:
    """What came of a search in two rounds: what each found, the answer of the second, and what the reader was shown."""
    found = [
        replace(chunk(key), metadata={"found_by": asked, "recursion_depth": number, "round_answer": said})
        for number, (asked, keys, said) in enumerate([("How thick?", first, ""), ("And the wall?", second, answer)])
        for key in keys
    ]
    kept = [each for each in found if each.chunk_id.removeprefix("chunk-") in shown]
    placed = {each.chunk_id: each for each in with_places(kept)}
    root = replace(query(*found), chunks=tuple(placed.get(each.chunk_id, each) for each in found))
    return failure_kind(row_of(SearchTree(root=root), system="self_ask"), QUESTION, lambda: SearchTree(root=root))


def test_gold_of_a_follow_up_reaches_the_reader() -> None:
    assert followed_up("a", second="b", shown="a", answer="40 mm thick") == "reader_missed"
    assert followed_up("a", second="b", shown="a", answer="painted grey yesterday") == "wrong_sub_answer"
    assert followed_up("a", second="b", shown="a") == "wrong_sub_answer", "the follow-up was refused"


def test_gold_that_a_later_round_replaced_did_not_reach_the_reader() -> None:
    assert followed_up("a", second="b", shown="b") == "wrong_sub_answer"
    assert followed_up("a", second="b", shown="ab") == "reader_missed"


def test_question_whose_answers_are_not_known_has_no_failure() -> None:
    assert kind_of(question=replace(QUESTION, answers=(), answers_known=False), status="failed") is None


def test_gold_that_nobody_found_is_a_retrieval_miss() -> None:
    assert kind_of(chunk("a"), chunk("x"), system="naive") == "retrieval_miss"
    assert kind_of(chunk("x", "0")) == "retrieval_miss"
    assert kind_of(chunk("a", "1")) == "retrieval_miss", "no sub-question was asked"
    assert kind_of(asked("x", chunk("y", "0"))) == "retrieval_miss", "no gold chunk led to the sub-question"


def test_gold_scored_0_is_a_false_0_where_it_was_withheld() -> None:
    assert kind_of(chunk("a", "0"), chunk("b", "1")) == "judge_false_0"
    assert kind_of(chunk("a", "0"), chunk("x", "1")) == "judge_false_0"
    assert kind_of(chunk("a", "1"), asked("x", chunk("b", "0"), chunk("y", "1"), sub_answer="ladder in y")) == (
        "judge_false_0"
    )


def test_gold_chunks_that_all_scored_0_were_shown_all_the_same() -> None:
    assert kind_of(chunk("a", "0"), chunk("b", "0")) == "reader_missed"


def test_0_on_gold_is_no_fault_where_the_reader_had_that_gold() -> None:
    found = asked("a", chunk("a", "0"), chunk("b", "1"), sub_answer="40 mm thick")
    assert kind_of(found) == "reader_missed"


def test_2_on_a_part_of_the_gold_that_stopped_the_search_is_a_false_2() -> None:
    assert kind_of(chunk("a", "2"), chunk("x", "1")) == "judge_false_2"
    assert kind_of(asked("a", chunk("x", "2"), sub_answer="ladder")) == "judge_false_2"


def test_where_nothing_could_be_asked_no_judge_is_to_blame() -> None:
    flat = {"max_rec_depth": "0"}
    assert kind_of(chunk("a", "2"), chunk("x", "1"), fingerprint=flat) == "retrieval_miss"
    assert kind_of(chunk("a", "0"), chunk("x", "1"), fingerprint=flat) == "retrieval_miss"
    assert kind_of(chunk("a", "0"), chunk("b", "1"), fingerprint=flat) == "judge_false_0", "it was withheld"


def test_2_is_no_fault_where_it_stopped_nothing() -> None:
    never = {"max_rec_depth": "2", "stop.name": "never"}
    assert kind_of(chunk("a", "2"), chunk("x", "0"), fingerprint=never) == "retrieval_miss"
    beside = asked("x", chunk("y", "0"))
    assert kind_of(chunk("a", "2"), beside) == "retrieval_miss", "its query asked on"
    assert kind_of(chunk("a", "2"), chunk("b", "1")) == "reader_missed", "all gold was there"
    whole = replace(QUESTION, supporting=("a",))
    assert kind_of(chunk("a", "2"), question=whole) == "reader_missed", "the chunk is all the gold"
    at_the_last_level = asked("a", chunk("x", "2"), sub_answer="ladder")
    assert kind_of(at_the_last_level, fingerprint={"max_rec_depth": "1"}) == "bad_sub_question"


def test_sub_question_of_gold_that_found_nothing_new_was_bad() -> None:
    assert kind_of(asked("a", chunk("x", "0"), sub_answer=REFUSAL)) == "bad_sub_question"
    assert kind_of(asked("a", chunk("a", "1"), sub_answer="the drum")) == "bad_sub_question"


def test_a_search_that_misses_the_document_that_a_sub_question_names_is_to_blame() -> None:
    asks = {"Old Mill [0123456789ab]": "Who built the Old Mill?", "norms/ks-1.md": "Which class has KS-1?"}
    asks |= {"Oak (tree) [0123456789ab]": "How old is the oak?", "Dr. No": "Who directed Dr. No?"}
    for missing, text in asks.items():
        below = replace(query(chunk("x", "0"), depth=1), query=text)
        found = chunk("a", "1", below, REFUSAL)
        assert kind_of(found, question=replace(QUESTION, supporting=("a", missing))) == "retrieval_miss"
        assert kind_of(found, question=replace(QUESTION, supporting=("a", "other"))) == "bad_sub_question"


@pytest.mark.parametrize("sub_answer", ["", REFUSAL, "grey ladders everywhere"])
def test_sub_answer_that_loses_the_gold_is_wrong(sub_answer: str) -> None:
    assert kind_of(asked("a", chunk("b", "2"), sub_answer=sub_answer)) == "wrong_sub_answer"


@pytest.mark.parametrize("sub_answer", ["40 mm", "The wall is 40 mm.", "yes"])
def test_sub_answer_that_is_drawn_from_the_gold_hands_it_up(sub_answer: str) -> None:
    assert kind_of(asked("a", chunk("b", "2"), sub_answer=sub_answer)) == "reader_missed"


def test_sub_answer_is_handed_up_through_every_level() -> None:
    deep = chunk("x", "1", query(chunk("b", "2"), depth=2), "40 mm")
    assert kind_of(asked("a", deep, sub_answer="40 mm")) == "reader_missed"
    assert kind_of(asked("a", deep, sub_answer=REFUSAL)) == "wrong_sub_answer"


def test_sub_answer_of_a_shared_run_is_handed_up_where_it_is_shared() -> None:
    first = asked("x", chunk("b", "2"), sub_answer=REFUSAL)
    other = chunk("a", "1", None, "40 mm")
    sharing = replace(other, metadata={**other.metadata, "shared_thread_id": "t1"})
    assert kind_of(first, sharing) == "reader_missed"
    assert kind_of(first, other) == "wrong_sub_answer"


def test_reader_with_all_gold_refused_or_missed_it() -> None:
    both = (chunk("a"), chunk("b"))
    assert kind_of(*both, system="naive") == "reader_missed"
    assert kind_of(*both, system="naive", status="refused", prediction=REFUSAL) == "refused_despite_evidence"


def test_every_kind_has_its_words() -> None:
    assert set(FAILURE_WORDS) == set(FAILURE_KINDS) == set(get_args(FailureKind))


KEYS = st.sampled_from(["a", "b", "x", "y"])
VERDICTS = st.sampled_from(["0", "1", "2", "unknown", "pending", "cancelled"])
ANSWERS = st.sampled_from(["", REFUSAL, "40 mm", "It is 40 mm.", "ladder"])
LEAVES = st.builds(chunk, KEYS, VERDICTS)


def grown(chunks: st.SearchStrategy[ChunkNode]) -> st.SearchStrategy[ChunkNode]:
    below = st.lists(chunks, max_size=3).map(lambda found: query(*found, depth=1))
    return st.builds(chunk, KEYS, VERDICTS, below, ANSWERS)


TREES = st.lists(st.recursive(LEAVES, grown, max_leaves=8), max_size=3).map(
    lambda chunks: SearchTree(root=query(*chunks))
)
QUESTIONS = st.builds(
    EvalQuestion,
    id=st.just("q"),
    question=st.just("?"),
    answers=st.sampled_from([(), ("40 mm",)]),
    answers_known=st.booleans(),
    supporting=st.sampled_from([(), ("a",), ("a", "b")]),
)


@given(
    tree=TREES,
    question=QUESTIONS,
    prediction=ANSWERS,
    status=st.sampled_from(["answered", "refused", "failed"]),
    system=st.sampled_from(["llm", "naive", "judge"]),
    has_tree=st.booleans(),
)
def test_kinds_sum_up(
    tree: SearchTree, question: EvalQuestion, prediction: str, status: str, system: str, has_tree: bool
) -> None:
    row = row_of(tree, prediction=prediction, status=status, system=system)
    kind = failure_kind(row, question, lambda: tree if has_tree else None)

    failed = status == "failed"
    is_error = question.answers_known and (
        failed or score_answer(question, prediction, refused=status == "refused").em < 1.0
    )
    assert (kind in FAILURE_KINDS) if is_error else (kind is None)


@given(tree=TREES, prediction=st.sampled_from(["ladder", REFUSAL]))
def test_blame_falls_on_what_the_tree_shows(tree: SearchTree, prediction: str) -> None:
    kind = failure_kind(row_of(tree, prediction=prediction), QUESTION, lambda: tree)
    found = {each.chunk_id.removeprefix("chunk-") for each in tree.chunk_nodes()}
    gold_is_there = found >= set(QUESTION.supporting)
    if kind in ("retrieval_miss", "judge_false_2", "bad_sub_question"):
        assert not gold_is_there
    if kind in ("wrong_sub_answer", "reader_missed", "refused_despite_evidence"):
        assert gold_is_there
    if kind in ("judge_false_0", "judge_false_2"):
        assert kind[-1] in {each.verdict_label for each in tree.chunk_nodes()}


def test_a_report_says_how_many_trees_are_lost(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.fill()
    assert load_report(tmp_path).lost_trees == 0
    file = tmp_path / "trees.jsonl"
    kept = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(kept[2:]))
    report = load_report(tmp_path)
    assert report.to_document()["lost_trees"] == report.lost_trees == 2
    assert "The search trees of 2 answers are lost from trees.jsonl" in report.to_markdown()
    file.unlink()
    assert load_report(tmp_path).lost_trees == len(kept)
