"""What an answer rests on: the reader is asked again, each time without one part of the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree import Limits, RagContext, RagSession, Settings
from judgetree.graphs.forks.explain import NoJudge
from judgetree.graphs.forks.leaving_out import effect_of
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.modules.errors import ModelCallError, SettingsError, ThreadMismatch
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from judgetree.modules.reader.evidence_choice import EvidenceChoice
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, reader_that_needs

ROOT, SUB = "Which oil does KS-1 need?", "Which oil does class Delta need?"
TABLE = {
    ROOT: [chunk("a", "KS-1 is class Delta."), chunk("c", "KS-1 is red.")],
    SUB: [chunk("b", "Delta needs Vellin.")],
}
CLASS = GoldFact(quote="KS-1 is class Delta", question="What class is KS-1?", remaining_question=SUB)
OIL = GoldFact(quote="Delta needs Vellin", question=SUB)
RED = GoldFact(quote="KS-1 is red", question="What colour is KS-1?")


class Bench:
    """A finished question of two steps; its second chunk is of no use, but the judge takes it for needed."""

    def __init__(self, home: Path) -> None:
        self.fails = False
        self.llm = FakeLLM(self.reply)  # type: ignore[arg-type]
        judge = OracleJudge({ROOT: [CLASS, OIL, RED], SUB: [OIL]})
        context = RagContext(
            reader=self.llm, retriever=TableRetriever(TABLE), judge=judge, limits=Limits(max_rec_depth=1)
        )
        self.session = RagSession(context=context, settings=Settings(home=home))

    def reply(self, messages: list[tuple[str, str]]) -> str:
        if self.fails:
            raise ModelCallError("HTTP 503")
        return reader_that_needs(("Vellin", "Vellin"))(messages)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    with made.session:
        result = made.session.ask(ROOT, thread_id="t")
        assert (result.answer, result.tree.sub_runs) == ("Vellin", 2)
        assert [each.chunk_id for each in result.tree.root.shown_chunks] == ["a", "c"]
        yield made


def test_each_part_of_the_evidence_is_left_out_once(bench: Bench) -> None:
    """The chunk and its sub-question carry the answer, and so does the chunk below; the other does nothing."""
    before = len(bench.llm.calls)
    cost = bench.session.explain_cost("t")
    explanation = bench.session.explain("t")
    assert [(each.node, each.part, each.effect) for each in explanation.left_out] == [
        ("1#1", "chunk", "decisive"),
        ("1#1", "branch", "decisive"),
        ("1#2", "chunk", "useless"),
        ("2#1", "chunk", "decisive"),
    ]
    calls = len(bench.llm.calls) - before
    assert (calls, cost.left_out, cost.usage["llm_calls"]) == (5, 4, 5)
    assert explanation.usage["llm_calls"] == 5


def test_the_root_alone_costs_less(bench: Bench) -> None:
    assert bench.session.explain_cost("t", max_depth=0).usage["llm_calls"] == 3
    assert len(bench.session.explain("t", max_depth=0).left_out) == 3


def test_what_only_a_search_takes_may_differ(bench: Bench, tmp_path: Path) -> None:
    """Nothing is searched or judged, but the readers have to be those that answered."""

    def session(**reading: int) -> RagSession:
        services = RagContext(
            reader=bench.llm,
            retriever=TableRetriever({}),
            judge=NoJudge(),
            policy=create_policy("mcts"),
            evidence=EvidenceChoice(evidence="all"),
            **reading,  # type: ignore[arg-type]
        )
        return RagSession(context=services, settings=Settings(home=tmp_path))

    with session() as other, session(context_tokens=900) as cutting:
        assert other.explain("t").left_out == bench.session.explain("t").left_out
        with pytest.raises(ThreadMismatch, match=r"\(reader.context_tokens: none then, 900 now\)"):
            cutting.explain("t")


def test_effects_are_in_text_picture_page_and_document(bench: Bench) -> None:
    explanation = bench.session.explain("t")
    assert "decisive: without it: I cannot answer" in explanation.to_text()
    assert "4 parts left out, one at a time: 3 decisive, 1 useless, 0 harmful" in explanation.to_text()
    assert "decisive" in explanation.to_graphviz().source == explanation.to_dot()
    assert "decisive" in explanation.to_svg() and "holds a needed fact · decisive" in explanation.to_html()
    assert "iframe" in explanation._repr_html_()
    document = json.loads(json.dumps(explanation.to_document()))
    assert document["left_out"][2]["effect"] == "useless"


def test_gold_answers_say_what_is_harmful(bench: Bench) -> None:
    explanation = bench.session.explain("t", max_depth=0, gold=["I cannot answer this question"])
    assert [each.effect for each in explanation.left_out] == ["harmful", "harmful", "useless"]


def test_a_failed_explanation_continues(bench: Bench) -> None:
    bench.fails = True
    with pytest.raises(ModelCallError):
        bench.session.explain("t")
    bench.fails = False
    assert len(bench.session.explain("t").left_out) == 4


def test_a_fork_can_be_explained_and_a_sub_run_cannot(bench: Bench) -> None:
    fork = bench.session.fork("t", "1#2", drop=True)
    assert {each.effect for each in bench.session.explain(fork.thread_id).left_out} == {"decisive"}
    child = fork.tree.root.chunks[0].child
    assert child is not None
    with pytest.raises(SettingsError, match="no root thread"):
        bench.session.explain(child.thread_id)


@pytest.mark.parametrize(
    ("before", "after", "gold", "effect"),
    [
        ("The oil is VG 68.", "vg 68", [], "useless"),
        ("VG 68", "VG 680", [], "decisive"),
        ("压力为 3.5 兆帕", "3.5 兆帕", [], "useless"),
        ("VG 68", "I cannot answer this question.", [], "decisive"),
        ("I cannot answer this question.", "VG 68", [], "harmful"),
        ("I cannot answer this question.", "The passages do not say.", [], "useless"),
        ("VG 68", "VG 46", ["VG 22"], "useless"),
        ("VG 68", "VG 46", ["VG 46", "46"], "harmful"),
        ("", "", [], "useless"),
    ],
)
def test_effects_by_answers(before: str, after: str, gold: list[str], effect: str) -> None:
    assert effect_of(before, after, gold) == effect
