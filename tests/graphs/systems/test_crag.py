"""CRAG: its three actions, each by a trace of the paper's algorithm, and what limits and failures make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pytest
from langchain_core.documents import Document

from judgetree import SetVerdict, Verdict
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.crag import build_crag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.reader.evidence import render_evidence
from judgetree.modules.reader.multistep_prompts import REWRITE_SYSTEM, rewrite_messages
from judgetree.modules.reader.prompts import READER_SYSTEM
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, thread
from tests.graphs.two_steps import ROOT

BETTER = "oil of pump class Delta"
A, B, C, D = (chunk(name, f"passage {name}") for name in "abcd")
TABLE = {ROOT: [A, B], BETTER: [A, C, D]}
Scores = Mapping[str, Literal[0, 1, 2] | None]


class Scoring:
    """A judge whose scores are known, None of them where it fails."""

    def __init__(self, scores: Scores, trace: list[str]) -> None:
        self.scores, self.trace = scores, trace

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "scoring"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        assert (query, expand) == (ROOT, False), "passages are judged for the question, and ask nothing"
        name = str(chunk.metadata["chunk_id"])
        self.trace.append(f"E({name})")
        score = self.scores[name]
        return Verdict(status="unknown") if score is None else Verdict(status="judged", score=score)


class ScoringSets:
    """A judge of sets whose scores are known."""

    def __init__(self, scores: Scores, trace: list[str]) -> None:
        self.scores, self.trace = scores, trace

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "scoring sets"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        names = [str(chunk.metadata["chunk_id"]) for chunk in chunks]
        self.trace.extend(f"E({name})" for name in names)
        return SetVerdict(verdicts=tuple(Verdict(status="judged", score=self.scores[name]) for name in names))


class Tracing(TableRetriever):
    """Notes its searches."""

    def __init__(self, trace: list[str]) -> None:
        super().__init__(TABLE)
        self.trace = trace

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        self.trace.append(f"search({'x' if query == ROOT else 'W(x)'})")
        return await super().asearch(query, meter=meter)


class Paper:
    """A run of the system, with a trace in the words of the paper's algorithm 1: E scores, W rewrites, G answers."""

    def __init__(
        self,
        scores: Scores,
        *,
        rewritten: str = BETTER,
        depth: int = 3,
        calls: int = 60,
        sets: bool = False,
        **limits: bool,
    ) -> None:
        self.trace: list[str] = []
        self.rewritten = rewritten
        self.llm = FakeLLM(self._reply)
        self.graph = build_crag(
            checkpointer="memory:",
            context=RagContext(
                reader=self.llm,
                retriever=Tracing(self.trace),
                judge=(ScoringSets if sets else Scoring)(scores, self.trace),
                limits=Limits(max_rec_depth=depth, max_llm_calls=calls, **limits),
            ),
        )
        self.final = self.graph.invoke(ROOT, thread("t"))

    def _reply(self, messages: Sequence[Message]) -> str:
        if messages[0][1] == REWRITE_SYSTEM:
            assert messages == rewrite_messages(ROOT)
            self.trace.append("W(x)")
            return self.rewritten
        assert messages[0][1] == READER_SYSTEM
        self.trace.append("G")
        return "Vellin"

    @property
    def shown(self) -> str:
        return self.final["evidence"]


FIRST, SECOND = ["search(x)", "E(a)", "E(b)"], ["W(x)", "search(W(x))", "E(c)", "E(d)"]


@pytest.mark.parametrize("sets", [False, True])
def test_correct_keeps_what_was_found_without_what_does_not_help(sets: bool) -> None:
    run = Paper({"a": 0, "b": 2}, sets=sets)
    assert run.trace == [*FIRST, "G"]
    assert run.shown == render_evidence([B])
    assert [step["text"] for step in run.final["steps"]] == ["correct"]


@pytest.mark.parametrize("sets", [False, True])
def test_incorrect_discards_what_was_found_and_widens_once(sets: bool) -> None:
    run = Paper({"a": 0, "b": 0, "c": 1, "d": 0}, sets=sets)
    assert run.trace == [*FIRST, *SECOND, "G"]
    assert run.shown == render_evidence([C])
    assert [(step["query"], step["text"]) for step in run.final["steps"]] == [(ROOT, "incorrect"), (BETTER, "")]


@pytest.mark.parametrize("sets", [False, True])
def test_ambiguous_keeps_and_widens_once(sets: bool) -> None:
    run = Paper({"a": 1, "b": 0, "c": 0, "d": 2}, sets=sets)
    assert run.trace == [*FIRST, *SECOND, "G"]
    assert run.shown == render_evidence([A, D])
    assert [(step["query"], step["text"]) for step in run.final["steps"]] == [(ROOT, "ambiguous"), (BETTER, "")]


def test_what_was_discarded_stays_discarded_if_nothing_else_helps() -> None:
    assert Paper({"a": 0, "b": 0, "c": 0, "d": 0}).shown == render_evidence([C, D])


def test_a_judge_that_fails_leaves_the_search_ambiguous() -> None:
    run = Paper({"a": None, "b": 0, "c": 2, "d": 0})
    assert run.final["steps"][0]["text"] == "ambiguous"
    assert run.shown == render_evidence([A, C])


def test_rounds_and_verdicts_are_in_the_tree() -> None:
    run = Paper({"a": 1, "b": 0, "c": 0, "d": 2})
    tree = SearchTree.from_history(run.graph, "t")
    places = ("found_by", "recursion_depth")
    shown = [(node.chunk_id, node.score, *(node.metadata[key] for key in places)) for node in tree.chunk_nodes()]
    assert shown == [("a", 1, ROOT, 0), ("b", 0, ROOT, 0), ("c", 0, BETTER, 1), ("d", 2, BETTER, 1)]
    assert SearchTree.from_json(tree.to_json()) == tree


@pytest.mark.parametrize(
    ("options", "trace"),
    [
        ({"depth": 0}, [*FIRST, "G"]),
        ({"depth": 0, "judge_leaves": False}, ["search(x)", "G"]),
        ({"depth": 1, "judge_leaves": False}, [*FIRST, "W(x)", "search(W(x))", "G"]),
        ({"calls": 1}, [*FIRST, "G"]),
        ({"rewritten": ROOT.upper()}, [*FIRST, "W(x)", "G"]),
        ({"rewritten": ""}, [*FIRST, "W(x)", "G"]),
    ],
)
def test_limits_and_useless_rewrites_leave_the_widening_out(options: dict[str, object], trace: list[str]) -> None:
    run = Paper({"a": 0, "b": 0, "c": 2, "d": 0}, **options)  # type: ignore[arg-type]
    assert run.trace == trace
    assert run.final["status"] == "answered"
    assert run.shown == (render_evidence([C, D]) if "search(W(x))" in trace else render_evidence([A, B]))


def test_a_question_that_finds_nothing_is_widened() -> None:
    trace: list[str] = []
    llm = FakeLLM(lambda messages: BETTER if messages[0][1] == REWRITE_SYSTEM else "Vellin")
    table = TableRetriever({BETTER: [C]})
    final = build_crag(context=RagContext(reader=llm, retriever=table, judge=Scoring({"c": 2}, trace))).invoke(ROOT)
    assert (table.queries, trace, final["evidence"]) == ([ROOT, BETTER], ["E(c)"], render_evidence([C]))


def test_a_run_whose_rewrite_failed_pays_nothing_twice() -> None:
    trace: list[str] = []
    failures = iter([ModelCallError("endpoint down")])

    def reply(messages: Sequence[Message]) -> str:
        trace.append("call")
        if error := next(failures, None):
            raise error
        return BETTER if messages[0][1] == REWRITE_SYSTEM else "Vellin"

    judge = Scoring({"a": 0, "b": 0, "c": 2, "d": 0}, trace)
    context = RagContext(reader=FakeLLM(reply), retriever=TableRetriever(TABLE), judge=judge)
    with build_crag(checkpointer="memory:", context=context) as graph:
        with pytest.raises(ModelCallError, match="endpoint down"):
            graph.invoke(ROOT, thread("t"))
        assert graph.invoke(None, thread("t"))["answer"] == "Vellin"
    assert trace == ["E(a)", "E(b)", "call", "call", "E(c)", "E(d)", "call"]
