"""A judge that takes all chunks of a query at once, in the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from langchain_core.documents import Document

from judgetree.evaluation.metrics.damage import damage_of
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, ModelSetupError, SettingsError
from judgetree.modules.judge.contract import SetVerdict, Verdict, expected_calls
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.oracle import OracleJudge
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.graphs.two_steps import GOLD, ROOT, SUB, TABLE

USEFUL = Verdict(status="judged", score=1, p_needed=0.75, is_calibrated=True, next_query=SUB)
USELESS = Verdict(status="judged", score=0, p_needed=0.25)
CHUNKS = [chunk("a", "KS-1 is class Delta."), chunk("n", "noise")]


class PairJudge:
    """Pays one call for all chunks; says what it is given, or raises it."""

    def __init__(self, given: object) -> None:
        self.given = given
        self.asked: list[list[str]] = []

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "pair"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        self.asked.append([each.metadata["chunk_id"] for each in chunks])
        meter.reserve()
        meter.record(kind="chat", model="judge", started=0.0)
        chunks[0].metadata.clear()
        if isinstance(self.given, Exception):
            raise self.given
        return self.given  # type: ignore[return-value]


def rag(judge: PairJudge, **limits: int) -> RagGraph:
    reader = FakeLLM(lambda messages: "Vellin")
    table = {**TABLE, ROOT: CHUNKS}
    return build_judge_rag(
        context=RagContext(reader=reader, retriever=TableRetriever(table), judge=judge, limits=Limits(**limits)),
        checkpointer="memory:",
    )


def ask(graph: RagGraph) -> SearchTree:
    graph.invoke(ROOT, {"configurable": {"thread_id": "t"}})
    return SearchTree.from_history(graph, "t")


def test_all_chunks_are_judged_in_one_branch_and_the_set_s_verdict_is_in_the_tree() -> None:
    judge = PairJudge(SetVerdict(verdicts=(USEFUL, USELESS), suffices=False, p_suffices=0.1))
    graph = rag(judge, max_rec_depth=0)
    events = list(graph.stream(ROOT, {"configurable": {"thread_id": "t"}}, stream_mode="custom"))  # type: ignore[arg-type]
    tree = SearchTree.from_history(graph, "t")
    assert judge.asked == [["a", "n"]]
    assert [(each.score, each.p_needed, each.p_calibrated) for each in tree.root.chunks] == [
        (1, 0.75, True),
        (0, 0.25, False),
    ]
    assert tree.root.set_suffices is False
    assert SearchTree.from_json(tree.to_json()).root == tree.root
    assert [record["node"] for record in tree.root.usage] == ["judge_set", "generate"]
    judged = [(event["chunk_id"], event["score"]) for event in events if event["event"] == "verdict"]
    assert judged == [("a", 1), ("n", 0)]
    assert [event["p_suffices"] for event in events if event["event"] == "set_verdict"] == [0.1]


@pytest.mark.parametrize(
    ("given", "verdict", "reason"),
    [
        (
            SetVerdict(verdicts=(USEFUL,)),
            "unknown",
            "The judge gave 1 verdicts. Allowed: one for each of the 2 chunks.",
        ),
        (None, "unknown", "The judge gave NoneType in place of a SetVerdict. Allowed: judgetree.SetVerdict."),
        (RuntimeError("boom"), "unknown", "RuntimeError: boom"),
        (BudgetSpent("no call is left"), "cancelled", "no call is left"),
    ],
)
def test_a_set_without_usable_verdicts_leaves_every_chunk_without_one(given: object, verdict: str, reason: str) -> None:
    tree = ask(rag(PairJudge(given)))
    assert [(each.verdict, each.metadata["reason"]) for each in tree.root.chunks] == [(verdict, reason)] * 2
    assert tree.root.set_suffices is None
    assert tree.root.answer == "Vellin"


def test_numbers_and_truths_of_other_kinds_become_python_s_own() -> None:
    odd = replace(USELESS, p_needed=np.float32(0.5), is_calibrated=np.True_)
    unusable = replace(USELESS, p_needed=1.5)
    tree = ask(rag(PairJudge(SetVerdict(verdicts=(odd, unusable), suffices=np.True_)), max_rec_depth=0))  # type: ignore[arg-type]
    first, second = tree.root.chunks
    assert (first.p_needed, type(first.p_needed), first.p_calibrated) == (0.5, float, True)
    assert second.metadata["reason"] == "The judge gave p_needed 1.5. Allowed: None, or 0 to 1."
    assert tree.root.set_suffices is True


def test_a_refused_judge_of_sets_ends_the_question_resumably() -> None:
    judge = PairJudge(ModelSetupError("the key has expired"))
    graph = rag(judge, max_rec_depth=0)
    with pytest.raises(ModelSetupError, match="the key has expired"):
        ask(graph)
    judge.given = SetVerdict(verdicts=(USELESS, USEFUL))
    assert [each.score for each in ask(graph).root.chunks] == [0, 1]


def test_a_failed_call_about_all_chunks_is_the_damage_of_each() -> None:
    tree = ask(rag(PairJudge(SetVerdict(verdicts=(Verdict(status="unknown"), USELESS))), max_rec_depth=0))
    assert damage_of(tree) == {"unusable_verdicts": 1}


def test_a_judge_says_its_calls_through_its_wrapper() -> None:
    async def verdict() -> SetVerdict:
        judge = create_judge(PairJudge(SetVerdict(verdicts=(USEFUL,))), FakeLLM(lambda _: ""), spec="x")
        assert "part" in judge.fingerprint()
        assert expected_calls(judge, 5) == 1
        return await judge.judge_set("q", [chunk("a", "A")], meter=CallMeter(node="judge_set"))  # type: ignore[union-attr]

    assert asyncio.run(verdict()).verdicts == (USEFUL,)
    assert expected_calls(OracleJudge(GOLD), 5) == 0


def test_calls_that_are_no_number_are_refused() -> None:
    class Vague(OracleJudge):
        def expected_calls(self, chunks: int) -> int:
            return -1

    with pytest.raises(SettingsError, match="expects -1 calls for 3 chunks"):
        expected_calls(Vague({}), 3)
