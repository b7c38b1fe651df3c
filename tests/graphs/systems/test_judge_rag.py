from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.state import RagState
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelSetupError
from judgetree.modules.judge.contract import Judge, Verdict
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from judgetree.modules.reader.prompts import REFUSAL
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, reader_that_needs

ROOT = "Which oil does the class of KS-1 need?"
SECOND = "Which oil does class Delta need?"
THIRD = "What is the flash point of Vellin?"
FACTS = [
    GoldFact(quote="KS-1 is class Delta", question="What is the class of KS-1?", remaining_question=SECOND),
    GoldFact(quote="Delta needs Vellin", question=SECOND, remaining_question=THIRD),
    GoldFact(quote="Vellin flashes at 212 °C", question=THIRD),
]
TABLE = {
    ROOT: [chunk("a", "KS-1 is class Delta."), chunk("n0", "noise")],
    SECOND: [chunk("b", "Delta needs Vellin."), chunk("n1", "other noise")],
    THIRD: [chunk("c", "Vellin flashes at 212 °C."), chunk("n2", "more noise")],
}
ORACLE = OracleJudge({ROOT: FACTS, SECOND: FACTS[1:], THIRD: FACTS[2:]})


def rag(
    *,
    judge: Judge = ORACLE,
    table: dict[str, list[Document]] | None = None,
    reader: FakeLLM | None = None,
    **limits: Any,
) -> tuple[RagGraph, FakeLLM, TableRetriever]:
    reader = reader or FakeLLM(reader_that_needs(("212 °C", "212 °C")))
    retriever = TableRetriever(table if table is not None else TABLE)
    context = RagContext(reader=reader, retriever=retriever, judge=judge, limits=Limits(**limits))
    return build_judge_rag(context=context), reader, retriever


def run(graph: RagGraph, thread_id: str = "t") -> RagState:
    return graph.invoke(ROOT, {"configurable": {"thread_id": thread_id}})


def test_answer_found_two_levels_down() -> None:
    graph, reader, retriever = rag(max_rec_depth=2)
    final = run(graph)
    assert (final["answer"], final["status"]) == ("212 °C", "answered")
    assert retriever.queries == [ROOT, SECOND, THIRD]
    assert len(reader.calls) == 3
    assert "Supplementary question: Which oil does class Delta need?\nAnswer: 212 °C" in final["evidence"]


def test_what_is_sent_to_a_branch_has_no_channels_that_every_step_visits() -> None:
    graph, _, _ = rag()
    channels = background_loop().run(graph.aopen()).channels
    assert {name for name in channels if not name.startswith(("__", "branch:"))} == RagState.__annotations__.keys()


def test_depth_ends_the_recursion() -> None:
    graph, _, retriever = rag(max_rec_depth=1)
    final = run(graph)
    assert final["status"] == "refused"
    assert retriever.queries == [ROOT, SECOND]
    tree = SearchTree.from_history(graph, "t")
    assert tree.depth == 1
    assert [c.score for c in tree.chunk_nodes() if c.metadata["recursion_depth"] == 1] == [1, 0], "leaves are judged"


def test_leaves_stay_unjudged_on_request() -> None:
    graph, _, _ = rag(max_rec_depth=1, judge_leaves=False)
    run(graph)
    leaves = [c for c in SearchTree.from_history(graph, "t").chunk_nodes() if c.metadata["recursion_depth"] == 1]
    assert [leaf.verdict for leaf in leaves] == ["pending", "pending"]


def test_metadata_of_chunks_tells_the_whole_story() -> None:
    graph, _, _ = rag(max_rec_depth=2)
    first, second = run(graph)["similar_chunks"]
    thread_id = first.metadata.pop("next_rag_thread_id")
    assert first.metadata == {
        "chunk_id": "a",
        "source": "a.md",
        "retrieval_score": 1.0,
        "rank": 0,
        "verdict": "judged",
        "score": 1,
        "score_confidence": 1.0,
        "p_needed": 1.0,
        "p_calibrated": True,
        "reason": "holds 1 of 3 gold facts",
        "next_query": SECOND,
        "recursion_depth": 0,
        "sub_answer": "212 °C",
        "sub_run_error": "",
        "budget_spent": "",
        "shown_place": 1,
        "round_answer": "",
        "skipped": "",
        "round": 1,
        "priority": 0,
        "shared_thread_id": "",
        "shared_sub_runs": None,
        "shared_llm_calls": None,
        "tries": None,
    }
    assert second.metadata["next_rag_thread_id"] == ""
    saved = graph.get_state({"configurable": {"thread_id": thread_id}})
    assert saved.values["query"] == SECOND
    assert saved.metadata is not None
    assert {key: saved.metadata[key] for key in ("parent_thread_id", "root_thread_id", "depth")} == {  # type: ignore[literal-required]
        "parent_thread_id": "t",
        "root_thread_id": "t",
        "depth": 1,
    }


def test_a_chunk_that_suffices_stops_the_search() -> None:
    both = chunk("ab", "KS-1 is class Delta. Delta needs Vellin. Vellin flashes at 212 °C.")
    graph, _, retriever = rag(table={ROOT: [chunk("a", "KS-1 is class Delta."), both]})
    assert run(graph)["answer"] == "212 °C"
    assert retriever.queries == [ROOT]


def test_no_chunks_at_all_still_gives_an_answer() -> None:
    graph, reader, _ = rag(table={})
    assert run(graph)["status"] == "refused"
    assert len(reader.calls) == 1


USELESS = Verdict(status="judged", score=0)


class FixedJudge:
    """Gives each chunk the verdict of a table; raises what is no verdict."""

    def __init__(self, verdicts: dict[str, Verdict | Exception]) -> None:
        self._verdicts = verdicts

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "fixed"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        verdict = self._verdicts[chunk.metadata["chunk_id"]]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


def test_a_judge_that_breaks_is_unknown_and_its_siblings_stay() -> None:
    judge = FixedJudge({"a": RuntimeError("boom"), "n0": USELESS})
    graph, _, retriever = rag(judge=judge)
    first, second = run(graph)["similar_chunks"]
    assert (first.metadata["verdict"], first.metadata["score"]) == ("unknown", None)
    assert first.metadata["reason"] == "RuntimeError: boom"
    assert second.metadata["score"] == 0
    assert retriever.queries == [ROOT], "an unknown verdict does not expand"


class CuttingJudge:
    """Cuts its chunk short before it reads it, and notes in its metadata that it did."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "cutting"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        chunk.page_content = chunk.page_content[:4]
        chunk.metadata.update(source="cut", kept={})
        return Verdict(status="judged", score=2)


def test_a_judge_that_writes_into_its_chunk_changes_no_evidence() -> None:
    graph, _, _ = rag(judge=CuttingJudge())
    final = run(graph)
    assert "KS-1 is class Delta." in final["evidence"]
    assert all(found.metadata["source"] != "cut" for found in final["similar_chunks"])
    texts = [node.text for node in SearchTree.from_history(graph, "t").chunk_nodes()]
    assert texts == ["KS-1 is class Delta.", "noise"]


def test_a_judging_graph_without_a_judge_is_refused() -> None:
    reader = FakeLLM(lambda messages: "212 °C")
    graph = build_judge_rag(context=RagContext(reader=reader, retriever=TableRetriever(TABLE)))
    with pytest.raises(TypeError, match="give RagContext a judge"):
        run(graph)
    assert reader.calls == []


class KeyedJudge:
    """The oracle behind a key that expires at some chunk: it is refused at once, while the others take their time."""

    def __init__(self, expires_at: str) -> None:
        self.expires_at = expires_at
        self.judged: list[str] = []

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "keyed"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if chunk.metadata["chunk_id"] == self.expires_at:
            raise ModelSetupError("the key has expired")
        self.judged.append(chunk.metadata["chunk_id"])
        for _ in range(100):
            await asyncio.sleep(0)
        return await ORACLE.judge(query, chunk, meter=meter, expand=expand)


@pytest.mark.parametrize("expires_at", ["a", "b", "c"])
def test_a_refused_judge_ends_the_question_resumably(expires_at: str) -> None:
    judge = KeyedJudge(expires_at)
    graph, reader, _ = rag(judge=judge, max_rec_depth=2)
    with pytest.raises(ModelSetupError, match="the key has expired"):
        run(graph)
    assert SearchTree.from_history(graph, "t").root.status == "failed"
    assert reader.calls == []
    judge.expires_at = ""
    assert run(graph)["answer"] == "212 °C"
    assert sorted(judge.judged) == ["a", "b", "c", "n0", "n1", "n2"], "each once"


def test_sub_runs_finish_before_a_refused_one_ends_the_question() -> None:
    asks = {name: Verdict(status="judged", score=1, next_query=f"Sub {name}?") for name in ("a", "b")}
    table = {ROOT: [chunk("a", "A"), chunk("b", "B")], "Sub a?": [chunk("c", "C")], "Sub b?": [chunk("d", "D")]}
    verdicts: dict[str, Verdict | Exception] = {**asks, "c": ModelSetupError("no key")}
    verdicts["d"] = Verdict(status="judged", score=2)
    graph, reader, _ = rag(judge=FixedJudge(verdicts), table=table, reader=FakeLLM(lambda messages: "Yes."))
    with pytest.raises(ModelSetupError, match="no key"):
        run(graph)
    assert len(reader.calls) == 1
    verdicts["c"] = Verdict(status="judged", score=2)
    final = run(graph)
    assert [found.metadata["sub_answer"] for found in final["similar_chunks"]] == ["Yes.", "Yes."]
    assert len(reader.calls) == 3


def test_a_judge_with_numbers_of_its_own_leaves_a_thread_that_can_be_read() -> None:
    verdicts: dict[str, Verdict | Exception] = {
        "a": Verdict(status="judged", score=np.int64(0), confidence=np.float32(0.5)),  # type: ignore[arg-type]
        "n0": Verdict(status="judged", score=3),  # type: ignore[arg-type]
    }
    graph, _, _ = rag(judge=FixedJudge(verdicts))
    run(graph)
    good, bad = SearchTree.from_history(graph, "t").chunk_nodes()
    assert (type(good.score), good.score, good.metadata["score_confidence"]) == (int, 0, 0.5)
    assert (bad.verdict, bad.metadata["reason"]) == ("unknown", "The judge gave score 3. Allowed: 0, 1, 2.")


@pytest.mark.parametrize(("verdict", "shows_useless"), [(Verdict(status="unknown"), False), (USELESS, True)])
def test_useless_chunks_reach_the_reader_only_when_none_helps(verdict: Verdict, shows_useless: bool) -> None:
    graph, _, _ = rag(judge=FixedJudge({"a": verdict, "n0": USELESS}))
    context = run(graph)["evidence"]
    assert "KS-1 is class Delta." in context
    assert ("noise" in context) == shows_useless


def test_a_refused_sub_answer_is_recorded_and_not_handed_on() -> None:
    graph, _, _ = rag(reader=FakeLLM(lambda messages: REFUSAL))
    final = run(graph)
    assert final["similar_chunks"][0].metadata["sub_answer"] == REFUSAL
    assert REFUSAL not in final["evidence"]


@pytest.mark.parametrize("ended", ["content_filter", "length"])
def test_a_sub_answer_that_was_cut_is_recorded_and_not_handed_on(ended: str) -> None:
    cut = "999 °C is"
    reader = FakeLLM(lambda messages: "an oil" if ROOT in messages[1][1] else cut, lambda reply: ended * (reply == cut))
    graph, _, _ = rag(reader=reader)
    final = run(graph)
    assert cut not in final["evidence"]
    assert "Supplementary question" not in final["evidence"]
    tree = SearchTree.from_history(graph, "t")
    asked = [node for node in tree.query_nodes() if node.parent_thread_id]
    assert [(node.answer, node.handed_on) for node in asked] == [(cut, "")] * len(asked) != []
    assert tree.caveats == {"reply_cut": len(asked)}, "the fake notes no filter"


def test_a_score_of_one_without_a_question_is_marked_and_not_expanded() -> None:
    stuck = Verdict(status="judged", score=1, problem="next_query repeats the query")
    graph, _, retriever = rag(judge=FixedJudge({"a": stuck, "n0": USELESS}))
    first = run(graph)["similar_chunks"][0]
    assert first.metadata["score"] == 1
    assert first.metadata["sub_run_error"] == "no sub-question: next_query repeats the query"
    assert retriever.queries == [ROOT]


def failing_below(root: str) -> FakeLLM:
    def reply(messages: Sequence[Message]) -> str:
        if root not in messages[1][1]:
            raise ModelCallError("endpoint down")
        return "from the root"

    return FakeLLM(reply)


def test_a_failed_sub_run_is_recorded_in_its_chunk_and_the_root_answers() -> None:
    graph, _, _ = rag(reader=failing_below(ROOT), max_rec_depth=1)
    final = run(graph)
    assert final["answer"] == "from the root"
    assert final["similar_chunks"][0].metadata["sub_run_error"] == "endpoint down"
    tree = SearchTree.from_history(graph, "t")
    assert [node.status for node in tree.query_nodes()] == ["finished", "failed"]


class MeteredJudge(FixedJudge):
    """A fixed judge that pays one call a verdict."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        meter.reserve()
        meter.record(kind="chat", model="judge", started=0.0)
        return await super().judge(query, chunk, meter=meter, expand=expand)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 12])
def test_the_tree_answers_within_its_budget(limit: int) -> None:
    verdicts: dict[str, Verdict | Exception] = {
        name: Verdict(status="judged", score=1, next_query=question)
        for name, question in (("a", SECOND), ("b", THIRD), ("c", "Anything else?"))
    }
    verdicts |= dict.fromkeys(("n0", "n1", "n2"), USELESS)
    graph, _, _ = rag(judge=MeteredJudge(verdicts), max_llm_calls=limit)
    final = run(graph)
    tree = SearchTree.from_history(graph, "t")
    assert tree.usage["llm_calls"] <= limit
    assert final["answer"]
    assert tree.budget_spent == (limit < 9 + 1), "9 calls: three runs of two verdicts and an answer, one empty run"


def test_events_of_sub_runs_are_streamed_with_their_place_in_the_tree() -> None:
    graph, _, _ = rag(max_rec_depth=1)
    config = {"configurable": {"thread_id": "t"}}
    events = list(graph.stream(ROOT, config, stream_mode="custom"))  # type: ignore[arg-type]
    sub_runs = {event["thread_id"] for event in events if event["depth"] == 1}
    assert len(sub_runs) == 1
    assert all(event["parent_thread_id"] == "t" for event in events if event["depth"] == 1)
    assert [event["node"] for event in events if event["event"] == "answer"] == ["generate", "generate"]
    assert {event["root_thread_id"] for event in events} == {"t"}
    growing = [event["text"] for event in events if event["event"] == "answer_growing"]
    assert "".join(growing) == REFUSAL


def test_a_chunk_is_shown_where_its_passage_is_not_where_its_text_recurs() -> None:
    quoted = chunk("n0", "KS-1 is class Delta")
    judge = FixedJudge({"a": Verdict(status="judged", score=2), "n0": USELESS})
    graph, _, _ = rag(judge=judge, table={ROOT: [quoted, chunk("a", "As said, KS-1 is class Delta.")]})
    run(graph)
    assert [shown.chunk_id for shown in SearchTree.from_history(graph, "t").root.shown_chunks] == ["a"]
