"""Replays decide as live searches do, call by call."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from judgetree.evaluation.replay.play import run_episode
from judgetree.evaluation.replay.world import JudgedChunk, JudgedQuery
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.search.stop import create_stop
from judgetree.graphs.systems.judge_rag import build_judge_rag
from tests.graphs.bushy import ROOT, RUNNABLE, bushy_context, draw
from tests.graphs.fakes import thread

TOPK, SUFFICES = 4, 0.05


class BushyWorld:
    """The bushy world of the live tests, without a graph."""

    question = ROOT
    gold: frozenset[str] = frozenset()

    def judged(self, query: str) -> JudgedQuery:
        chunks = tuple(self._chunk(f"{query}/{rank}", rank) for rank in range(TOPK))
        return JudgedQuery(chunks=chunks).as_by_a_model(batched=False)

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        return f"{chunk_id}~{len(tried)}"

    def _chunk(self, chunk_id: str, rank: int) -> JudgedChunk:
        luck = draw(0, chunk_id)
        score = 2 if luck < SUFFICES else 1 if luck < 0.6 else 0
        return JudgedChunk(
            chunk_id=chunk_id,
            keys=frozenset(),
            rank=rank,
            retrieval_score=1 - rank / 10,
            score=score,
            p_needed=draw("p", chunk_id),
            next_query=chunk_id if score == 1 else "",
        )


def grants_of(tree: SearchTree) -> dict[str, tuple[int, int]]:
    """Round and priority of each sub-question that was asked."""
    grants = {}
    for chunk in tree.chunk_nodes():
        if chunk.tries:
            grants |= {each["query"]: (each["round"], each["priority"]) for each in chunk.tries}
        elif chunk.granted_in is not None:
            grants[chunk.next_query] = chunk.granted_in
    return grants


@pytest.mark.parametrize("policy", [*RUNNABLE, "mcts:backup=mean,tries=2"])
@pytest.mark.parametrize(("calls", "width"), [(30, 1), (47, 3)])
def test_a_replay_makes_the_choices_and_the_calls_of_a_live_search(policy: str, calls: int, width: int) -> None:
    limits = Limits(max_rec_depth=2, max_llm_calls=calls, width=width)
    context = bushy_context(policy, topk=TOPK, max_rec_depth=2, max_llm_calls=calls, width=width)
    with build_judge_rag(context=context) as graph:
        graph.invoke(ROOT, thread("t"))
        tree = SearchTree.from_history(graph, "t")
    played = run_episode(BushyWorld(), create_policy(policy), create_stop("set"), limits)
    assert {each.candidate.next_query: (each.round, each.priority) for each in played.expansions} == grants_of(tree)
    assert sorted(each.chunk_id for each, _ in played.skipped if each.attempt == 1) == sorted(
        chunk.chunk_id for chunk in tree.chunk_nodes() if chunk.skipped
    )
    assert played.calls == tree.usage["llm_calls"]
