"""Forks of a search tree: what is answered again, what is linked, and what it costs."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from judgetree import Limits, RagContext, RagSession, SearchTree, Settings, SetVerdict, Verdict
from judgetree.graphs.rag.result import RagResult
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners
from judgetree.modules.calls.journaled import JournaledLLM
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, SettingsError, ThreadMismatch
from judgetree.modules.llm.contract import ChatLLM
from tests.graphs.bushy import bushy_context, outline
from tests.graphs.fakes import FakeLLM, chunk

TOPK = 3


class Bushy:
    """Finds the chunks ``<query>/0`` to ``<query>/<topk - 1>`` for any query."""

    def __init__(self, topk: int = TOPK) -> None:
        self.topk = topk
        self.queries: list[str] = []

    def fingerprint(self) -> dict[str, str]:
        return {"collection": "bushy", "topk": str(self.topk)}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        self.queries.append(query)
        found = [f"{query}/{rank}" for rank in range(self.topk)]
        return [(chunk(name, f"The text of {name}."), 1.0 - 0.1 * rank) for rank, name in enumerate(found)]


class AsksOn:
    """Gives each chunk the score of a table, else 1, and asks on with its id; one call a chunk."""

    def __init__(self, llm: ChatLLM, scores: Mapping[str, int] = {}) -> None:
        self.llm, self.scores = llm, scores

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "asks on"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        await self.llm.complete([("user", f"judge {chunk.metadata['chunk_id']}")], meter=meter)
        chunk_id = str(chunk.metadata["chunk_id"])
        score = self.scores.get(chunk_id, 1)
        return Verdict(status="judged", score=score, next_query=chunk_id if score == 1 and expand else "")


class Bench:
    """A session over a bushy corpus, whose calls are counted."""

    def __init__(self, home: Path, *, scores: Mapping[str, int] = {}, depth: int = 1, limit: int = 1000) -> None:
        self.llm = FakeLLM(self.says)
        self.fails_on = ""
        self.retriever = Bushy()
        self.context = RagContext(
            reader=self.llm,
            retriever=self.retriever,
            judge=AsksOn(self.llm, scores),
            limits=Limits(max_rec_depth=depth, max_llm_calls=limit),
        )
        settings = Settings(home=home)
        self.session = RagSession(context=self.context, settings=settings)

    def says(self, messages: Sequence[Message]) -> str:
        """Answer with the digest of the evidence, so that whatever changes it changes the answer."""
        prompt = messages[-1][1]
        if self.fails_on and prompt.startswith(self.fails_on):
            raise ModelCallError("HTTP 503")
        return f"answer {zlib.crc32(prompt.encode())}"

    def ask(self) -> RagResult:
        return self.session.ask("q", thread_id="origin")

    def calls_of(self, node: str, **change: object) -> tuple[RagResult, int]:
        before = len(self.llm.calls)
        return self.session.fork("origin", node, **change), len(self.llm.calls) - before  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    with made.session:
        yield made


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A finished question with 40 queries on levels 0 to 3, each with 3 chunks."""
    made = Bench(tmp_path_factory.mktemp("large"), depth=3)
    with made.session:
        made.ask()
        yield made


def node_of(tree: SearchTree, query: str) -> str:
    """The number of a query in a tree."""
    return str(next(number for number, node in enumerate(tree.query_nodes(), start=1) if node.query == query))


@pytest.mark.parametrize("change", [{"drop": True}, {"score": 0}, {"score": 2}])
def test_a_change_that_takes_away_costs_an_answer_for_each_query_on_the_path(
    large: Bench, change: dict[str, object]
) -> None:
    """The changed query is on level 2. The calls of the origin are not paid again."""
    origin = large.ask()
    node = node_of(origin.tree, "q/0/1")
    fork, calls = large.calls_of(f"{node}#3", **change)
    assert calls == 3
    assert fork.usage["llm_calls"] == fork.usage_this_run["llm_calls"] == fork.tree.usage["llm_calls"] == 3
    assert fork.thread_id != "origin" and fork.answer != origin.answer
    assert fork.tree.fork is not None and (fork.tree.fork.thread_id, fork.tree.fork.node) == ("origin", f"{node}#3")
    linked = [query for query in fork.tree.query_nodes() if query.linked_from]
    assert {query.linked_from for query in linked} == {"origin"}
    gone = 3 if change == {"score": 2} else 1
    assert fork.tree.sub_runs == origin.tree.sub_runs - gone
    assert len(linked) == fork.tree.sub_runs + 1 - 3
    paid_before = origin.tree.usage["llm_calls"]
    lost = gone * (TOPK + 1) + 3 + (change == {"drop": True})  # below, the answers on the path, the verdict
    assert fork.tree.saved["llm_calls"] == paid_before - lost


def test_the_origin_stays_and_the_same_fork_costs_nothing(bench: Bench) -> None:
    before = bench.ask().tree.to_json()
    first, _ = bench.calls_of("1#1", drop=True)
    second, calls = bench.calls_of("1#1", drop=True)
    assert (second.thread_id, second.answer, calls) == (first.thread_id, first.answer, 0)
    assert second.usage_this_run["llm_calls"] == 0
    assert bench.session.tree("origin").to_json() == before
    assert SearchTree.from_json(second.tree.to_json()) == second.tree


def test_another_sub_question_is_asked_with_all_that_hangs_below_it(large: Bench) -> None:
    """On level 2 of 3: the new query, its three chunks and its answer, then three answers above it."""
    origin = large.ask()
    node = node_of(origin.tree, "q/0/1")
    fork, calls = large.calls_of(f"{node}#3", next_query="another")
    assert calls == (TOPK + 1) + 3
    new = next(query for query in fork.tree.query_nodes() if query.query == "another")
    assert not new.linked_from and new.depth == 3
    assert fork.tree.sub_runs == origin.tree.sub_runs


def test_a_score_that_took_the_way_lets_the_others_ask_on(tmp_path: Path) -> None:
    """The chunk with the 2 kept the others from asking; judged 0, they do."""
    bench = Bench(tmp_path, scores={"q/0": 2}, depth=1)
    with bench.session:
        origin = bench.ask()
        assert origin.tree.sub_runs == 0
        fork, calls = bench.calls_of("1#1", score=0)
        assert calls == 2 * (TOPK + 1) + 1
        assert [query.query for query in fork.tree.query_nodes()] == ["q", "q/1", "q/2"]
        [reason] = [each.reason for each in fork.tree.root.chunks if each.chunk_id == "q/0"]
        assert reason.startswith("set by hand")
        assert "changed: score=0" in fork.tree.to_text() and "changed: score=0" in fork.tree.to_html(picture=False)


def test_a_fork_can_be_forked_and_diffed(bench: Bench) -> None:
    origin = bench.ask()
    first, _ = bench.calls_of("1#1", drop=True)
    second = bench.session.fork(first.thread_id, "1#2", score=0)
    assert second.usage_this_run["llm_calls"] == 1
    assert second.tree.fork is not None and second.tree.fork.thread_id == first.thread_id
    assert [each.chunk_id for each in first.tree.root.chunks] == ["q/1", "q/2"]
    diff = origin.tree.diff(second.tree)
    assert diff.first is not None and (diff.first.kind, diff.first.chunk_id) == ("chunk", "q/0")
    assert [each.chunk_id for each in diff.flips] == ["q/1"]
    assert diff.settings == {"fork": ("", f"fork of {first.thread_id} at 1#2: score=0")}


@pytest.mark.parametrize(
    ("node", "change", "message"),
    [
        ("1#1", {}, "Nothing is changed"),
        ("1", {"score": 2}, "Name a chunk"),
        ("1#1", {"topk": 5}, "Name the query: 1"),
        ("99", {"drop": True}, "There is no query 99"),
        ("1#9", {"drop": True}, "There is no chunk 1#9. The chunks of query 1: 1#1, 1#2, 1#3"),
        ("x", {"drop": True}, "names no node"),
        ("1#1", {"score": 3}, "Give 0, 1 or 2"),
        ("1#1", {"score": 1}, "already"),
        ("1#1", {"drop": True, "score": 1}, "set drop alone"),
        ("1#1", {"score": 0, "next_query": "why?"}, "set score=1"),
        ("1#1", {"next_query": " "}, "next_query is empty"),
        ("4#1", {"next_query": "why?"}, "deepest level"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(
    tmp_path: Path, node: str, change: dict[str, object], message: str
) -> None:
    bench = Bench(tmp_path, depth=1)
    with bench.session:
        bench.ask()
        with pytest.raises(SettingsError, match=message):
            bench.calls_of(node, **change)


def test_a_session_with_other_settings_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, depth=1)
    with bench.session:
        bench.ask()
    other = Bench(tmp_path, depth=2)
    with other.session, pytest.raises(ThreadMismatch, match="max_rec_depth"):
        other.calls_of("1#1", drop=True)


def test_a_fork_has_the_limit_of_calls_for_itself_and_keeps_back_the_answers_on_the_path(tmp_path: Path) -> None:
    """The limit was spent by the origin. Of the 5 calls of a new sub-question and the root, one is not there."""
    bench = Bench(tmp_path, limit=4 + 3 * 4)
    with bench.session:
        bench.ask()
        fork, calls = bench.calls_of("1#1", next_query="another")
        assert calls == 5
    bench = Bench(tmp_path / "spent", limit=4)
    with bench.session:
        bench.ask()
        fork, calls = bench.calls_of("1#1", score=2)
        assert (calls, fork.status) == (1, "answered")


def test_a_reader_that_failed_is_asked_again_and_finished_threads_are_kept(bench: Bench) -> None:
    """The answer of the changed query on level 1 is there; that of the root failed."""
    bench.ask()
    bench.fails_on = "Question: q\n"
    with pytest.raises(ModelCallError):
        bench.calls_of("2#1", drop=True)
    bench.fails_on = ""
    fork, calls = bench.calls_of("2#1", drop=True)
    assert (calls, fork.status, fork.usage["llm_calls"]) == (1, "answered", 2)


class Journaled(JournaledLLM):
    """The model of a bench, whose replies are journaled."""

    model = endpoint = "journaled"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        await meter.about_to_send()
        text = self._bench.says(messages)
        meter.record(kind="chat", model=self.model, started=time.perf_counter())
        return Completion(text=text, finish_reason="stop")


def test_a_fork_that_takes_its_whole_limit_goes_on_after_a_failure(tmp_path: Path) -> None:
    """Its paid answers counted, and a call was kept back for each besides: the fork was refused for good."""
    bench = Bench(tmp_path, depth=2, limit=4)
    bench.retriever.topk = 1
    bench.context = replace(bench.context, reader=Journaled(bench), judge=AsksOn(Journaled(bench)))
    with RagSession(context=bench.context, settings=Settings(home=tmp_path)) as session:
        session.ask("q", thread_id="origin")
        bench.fails_on = "Question: q\n"
        with pytest.raises(ModelCallError):
            session.fork("origin", "2#1", next_query="another")
        bench.fails_on = ""
        fork = session.fork("origin", "2#1", next_query="another")
    assert (fork.status, fork.usage["llm_calls"], fork.usage_this_run["llm_calls"]) == ("answered", 4, 1)


class Enough:
    """Judges all chunks at once, in one call: three of them suffice."""

    def __init__(self, llm: FakeLLM) -> None:
        self.llm = llm

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "enough"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        await self.llm.complete([("user", f"judge {query}")], meter=meter)
        ids = [str(each.metadata["chunk_id"]) for each in chunks]
        verdicts = tuple(Verdict(status="judged", score=1, next_query=each if expand else "") for each in ids)
        return SetVerdict(verdicts=verdicts, suffices=len(chunks) > 2)


def test_a_judge_of_sets_is_asked_about_the_set_without_a_dropped_chunk(tmp_path: Path) -> None:
    """Three chunks closed the query; the two that are left ask on: a call for the set, two sub-runs, the answer."""
    llm = FakeLLM(lambda messages: "an answer")
    limits = Limits(max_rec_depth=1)
    context = RagContext(reader=llm, retriever=Bushy(), judge=Enough(llm), limits=limits)
    with RagSession(context=context, settings=Settings(home=tmp_path)) as session:
        assert session.ask("q", thread_id="origin").tree.sub_runs == 0
        fork = session.fork("origin", "1#1", drop=True)
        assert (fork.tree.sub_runs, fork.usage["llm_calls"]) == (2, 1 + 2 * 2 + 1)
        assert fork.tree.root.set_suffices is False
        again = session.fork(fork.thread_id, "2#1", drop=True)
        assert again.usage["llm_calls"] == 2 + 1, "the sub-question's query was closed too; its two chunks ask nothing"


@pytest.mark.parametrize("policy", ["breadth", "wider:tries=3", "again:tries=2", "mcts", "best_first"])
def test_forks_of_any_tree_keep_all_that_the_change_does_not_touch(tmp_path: Path, policy: str) -> None:
    """Five random changes of chunks under each policy, chunks with several tries among them."""
    rng = random.Random(policy)
    context = bushy_context(policy, suffices=0.0, max_rec_depth=2, max_llm_calls=200)
    with RagSession(context=context, settings=Settings(home=tmp_path)) as session:
        origin = session.ask("q", thread_id="origin").tree
        text, chunks = origin.to_json(), outline(origin)
        for _ in range(5):
            number, query = rng.choice([*enumerate(origin.query_nodes(), start=1)])
            chunk = rng.choice(query.chunks)
            change: dict[str, Any] = rng.choice([{"drop": True}, {"score": 2}, {"score": 0 if chunk.score else 2}])
            fork = session.fork("origin", f"{number}#{chunk.position}", **change)
            assert fork.usage["llm_calls"] == query.depth + 1, "an answer for each query on the path"
            kept = outline(fork.tree)
            changed = f"{query.query} > {chunk.chunk_id}"
            closed = {f"{query.query} > {each.chunk_id}" for each in query.chunks} if change == {"score": 2} else set()
            assert {name: kept[name] for name in kept.keys() - closed - {changed}}.items() <= chunks.items()
            gone = {below.thread_id for below in chunk.sub_runs}
            if closed:
                gone = {below.thread_id for each in query.chunks for below in each.sub_runs}
            ids = [each.thread_id for each in fork.tree.query_nodes()]
            assert len(ids) == len(set(ids)) and not gone & set(ids)
            assert all(each.status == "finished" for each in fork.tree.query_nodes())
            assert sum(not each.linked_from for each in fork.tree.query_nodes()) == query.depth + 1
        assert session.tree("origin").to_json() == text
        explanation = session.explain("origin")
        assert {each.effect for each in explanation.left_out} == {"useless"}, "the reader always says the same"
