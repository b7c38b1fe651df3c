"""What readers see is chosen in real graphs, in sub-runs too, and by replays alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judgetree.evaluation.replay.play import run_episode
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import fingerprint_of
from judgetree.graphs.tree.nodes import ChunkNode
from judgetree.modules.errors import SettingsError, ThreadMismatch
from judgetree.modules.reader.evidence_choice import USEFUL, EvidenceChoice, passage_tokens
from tests.eval.replay.test_play import BushyWorld
from tests.graphs.bushy import ROOT, bushy_context
from tests.graphs.fakes import chunk, thread

LIMITS = {"max_rec_depth": 1, "max_llm_calls": 60}


def context_of(evidence: EvidenceChoice, **others: float) -> RagContext:
    return replace(bushy_context("breadth", topk=4, suffices=0.3, **LIMITS, **others), evidence=evidence)  # type: ignore[arg-type]


def searched(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        graph.invoke(ROOT, thread("t"))
        return SearchTree.from_history(graph, "t")


def scores_of(chunks: tuple[ChunkNode, ...]) -> list[int | None]:
    return [each.score for each in chunks]


def test_every_reader_sees_what_is_chosen_best_verdicts_first() -> None:
    usual, sufficient, everything = (
        searched(context_of(choice))
        for choice in (USEFUL, EvidenceChoice(evidence="sufficient"), EvidenceChoice(evidence="all"))
    )
    for query in sufficient.query_nodes():
        scores = scores_of(query.shown_chunks)
        assert scores == sorted(scores, key=lambda score: -(score or 0))
        assert len(set(scores)) == 1 if 2 in scores else 0 not in scores or set(scores) == {0}
    assert any(2 in scores_of(query.shown_chunks) for query in sufficient.query_nodes())
    for query, same in zip(everything.query_nodes(), usual.query_nodes(), strict=True):
        assert len(query.shown_chunks) == 4
        assert scores_of(query.shown_chunks) == sorted(scores_of(query.chunks), key=lambda score: -(score or 0))
        useful = [each for each in same.chunks if each.score != 0]
        assert list(same.shown_chunks) == (useful or list(same.chunks))


@pytest.mark.parametrize(
    ("tokens", "ranker"),
    [(None, None), (20, None), (40, None), (30, "mmr"), (40, "log_det"), (40, "facility_location")],
)
@pytest.mark.parametrize("kind", ["useful", "sufficient", "all"])
def test_a_replay_counts_what_the_readers_of_the_live_search_see(
    kind: str, tokens: int | None, ranker: str | None
) -> None:
    """Without answers to sub-questions, which a replay does not know."""

    class World(BushyWorld):
        gold = frozenset(f"q/{rank}" for rank in range(4))

        def judged(self, query: str):  # type: ignore[no-untyped-def]
            judged = super().judged(query)
            chunks = (
                replace(
                    each,
                    keys=frozenset({each.chunk_id}),
                    tokens=passage_tokens(chunk(each.chunk_id, f"text {each.rank} of {query}")),
                    text=f"text {each.rank} of {query}",
                )
                for each in judged.chunks
            )
            return replace(judged, chunks=tuple(chunks))

    choice = EvidenceChoice(evidence=kind, evidence_tokens=tokens, evidence_ranker=ranker)  # type: ignore[arg-type]
    context = replace(bushy_context("breadth", topk=4, max_rec_depth=0), evidence=choice)
    seen = {each.chunk_id for each in searched(context).root.shown_chunks}
    played = run_episode(World(), context.policy, context.stop, Limits(max_rec_depth=0), choice)
    assert played.found == seen


def test_the_choice_is_in_the_fingerprint_unless_it_is_the_default() -> None:
    def fingerprint(choice: EvidenceChoice) -> dict[str, str]:
        return fingerprint_of(query=ROOT, system="judge", services=context_of(choice))

    assert not any("evidence" in key for key in fingerprint(USEFUL))
    other = fingerprint(EvidenceChoice(evidence="all", evidence_tokens=9))
    assert other == fingerprint(USEFUL) | {"reader.evidence": "all", "reader.evidence_tokens": "9"}
    ranked = fingerprint(EvidenceChoice(evidence="all", evidence_tokens=9, evidence_ranker="mmr"))
    assert ranked == other | {"reader.evidence_ranker": "mmr"}
    with build_judge_rag(context=context_of(USEFUL)) as graph:
        graph.invoke(ROOT, thread("t"))
        with pytest.raises(ThreadMismatch, match="evidence_tokens: none then, 9 now"):
            graph.invoke(ROOT, thread("t"), context=context_of(EvidenceChoice(evidence_tokens=9)))


def test_systems_that_have_nothing_to_choose_from_say_so() -> None:
    with pytest.raises(SettingsError, match="'naive' judges nothing: leave evidence out"):
        RagSession("c", system="naive", evidence="all")
    with pytest.raises(SettingsError, match="'llm' searches nothing: leave evidence_tokens out"):
        RagSession(system="llm", evidence_tokens=100)
    with pytest.raises(SettingsError, match=r"evidence: .*it is 'best'"):
        RagSession("c", evidence="best")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="Give RagContext\\(evidence=EvidenceChoice"):
        context_of("all")  # type: ignore[arg-type]
