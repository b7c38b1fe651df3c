"""What faults took from an answer, counted on trees drawn up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judgetree.evaluation.metrics.damage import caveats_besides, damage_of, damage_to_calls, format_damage
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.record import caveats_of, count_caveats
from judgetree.modules.calls.usage import CallRecord
from judgetree.modules.caveats.kinds import CAVEAT_KINDS, CaveatKind
from tests.call_records import call_record

SPENT = "The budget of 60 model calls for this question is spent."


def about(chunk_id: str, *, error: str = "", node: str = "judge") -> CallRecord:
    return call_record(f"{chunk_id}{error}", error=error, chunk_id=chunk_id, node=node)


def chunk(verdict: str, *, child: QueryNode | None = None, **metadata: JsonScalar) -> ChunkNode:
    known = {"verdict": verdict, "score": 1 if verdict == "judged" else None, **metadata}
    return ChunkNode(chunk_id="c", text="", metadata=known, sub_runs=(child,) if child else ())


def damage(*chunks: ChunkNode, usage: tuple[CallRecord, ...] = ()) -> dict[str, int]:
    return {**damage_of(SearchTree(root=QueryNode(thread_id="t", query="q", chunks=chunks, usage=usage)))}


FAILED, ANSWERED, OF_READER = about("c", error="HTTP 500"), about("c"), about("", error="HTTP 500", node="generate")


@pytest.mark.parametrize(
    ("found", "usage", "expected"),
    [
        (chunk("judged"), (ANSWERED,), {}),
        (chunk("judged"), (FAILED, ANSWERED), {}),  # such as a response format that was refused
        (chunk("unknown"), (FAILED,), {"failed_verdicts": 1}),
        (chunk("unknown"), (), {"failed_verdicts": 1}),
        (chunk("unknown"), (FAILED, ANSWERED), {"unusable_verdicts": 1}),
        (chunk("judged", sub_run_error="no sub-question: HTTP 500"), (ANSWERED, FAILED), {"failed_sub_questions": 1}),
        (chunk("judged", sub_run_error="no sub-question: it repeats the query"), (ANSWERED,), {}),
        (chunk("judged", sub_run_error="HTTP 500", next_rag_thread_id="s"), (ANSWERED,), {"failed_sub_runs": 1}),
        (chunk("judged", sub_run_error=SPENT, budget_spent=True, next_rag_thread_id="s"), (ANSWERED,), {}),
        (chunk("judged", sub_run_error=SPENT, budget_spent=True), (ANSWERED, OF_READER), {"budget_cuts": 1}),
        (chunk("judged", sub_run_error=SPENT, next_rag_thread_id="s"), (ANSWERED,), {"failed_sub_runs": 1}),
        (chunk("cancelled"), (), {}),
        (chunk("cancelled"), (OF_READER,), {"budget_cuts": 1}),
        (chunk("pending"), (), {}),
    ],
)
def test_damage_counts_faults_but_no_limits(
    found: ChunkNode, usage: tuple[CallRecord, ...], expected: dict[str, int]
) -> None:
    assert damage(found, usage=usage) == expected


def test_sub_runs_count_and_failed_reranks_do() -> None:
    came, rerank = (call_record("r", kind="rerank", error=error, node="retrieve") for error in ("", "HTTP 500"))
    below = QueryNode(thread_id="s", query="q", depth=1, chunks=(chunk("unknown"), chunk("unknown")), usage=(rerank,))
    counted = damage(chunk("judged", child=below), chunk("unknown"), usage=(came, ANSWERED))
    assert counted == {"failed_verdicts": 2, "unusable_verdicts": 1, "failed_reranks": 1}
    assert format_damage(damage_of(SearchTree(root=below))) == "2 failed verdicts, 1 failed rerank"


def cut_off(node: str) -> CallRecord:
    return call_record("c", chunk_id="c", node=node, cut_off=True)


NO_QUESTION = chunk("judged", sub_run_error="no sub-question: it was cut off")


@pytest.mark.parametrize(
    ("found", "usage", "count"),
    [
        (chunk("judged"), (ANSWERED, cut_off("generate")), 1),
        (chunk("judged"), (cut_off("judge"),), 1),
        (chunk("judged"), (cut_off("judge"), ANSWERED), 0),
        (NO_QUESTION, (cut_off("judge"), ANSWERED), 1),
        (chunk("judged", score=2), (cut_off("judge"),), 0),
    ],
)
def test_cut_off_reply_counts_where_it_was_used(found: ChunkNode, usage: tuple[CallRecord, ...], count: int) -> None:
    assert damage(found, usage=usage).get("cut_off_replies", 0) == count
    assert format_damage(damage_to_calls([cut_off("condense")])) == "1 cut-off reply"


@pytest.mark.parametrize("kind", CAVEAT_KINDS)
@pytest.mark.parametrize(
    ("node", "found"),
    [
        ("generate", (chunk("judged"),)),
        ("judge", (chunk("judged"),)),
        ("judge", (NO_QUESTION,)),
        ("judge", (chunk("judged", score=2),)),
        ("judge_set", (chunk("judged"), chunk("judged"), chunk("judged"))),
    ],
)
def test_a_reply_counts_once_as_damage_or_as_caveat(kind: CaveatKind, node: str, found: tuple[ChunkNode, ...]) -> None:
    record = call_record("c", node=node, cut_off=kind in ("reply_cut", "filtered"))
    if kind != "reply_cut":
        record["caveats"] = [kind]
    assert caveats_of(record) == (kind,)
    tree = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=found, usage=(record,)))
    for lost in (damage_of(tree), damage_to_calls([record])):
        besides = caveats_besides(count_caveats([record]), lost)
        assert [*lost.values(), *besides.values()] == [1]
        assert set(lost) <= ({"cut_off_replies"} if kind == "reply_cut" else set())


def test_step_of_a_conversation_is_damaged_by_its_last_call_alone() -> None:
    refused, asked = about("", error="HTTP 400", node="assess"), about("", node="assess")
    assert damage_to_calls([refused, asked]) == {}
    assert damage_to_calls([asked, refused, about("", error="late", node="condense")]) == {
        "failed_conversation_calls": 2
    }


def test_tree_without_chunks_has_no_damage() -> None:
    root = QueryNode(thread_id="t", query="q")
    assert damage_of(SearchTree(root=replace(root, usage=(OF_READER,)))) == {}
    assert format_damage({}) == ""
