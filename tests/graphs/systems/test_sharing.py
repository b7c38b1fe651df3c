"""Sub-questions that repeat in a tree: linked to the run that asked first, or refused where it waits for them."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
import pytest
from langchain_core.documents import Document
from langgraph.types import Command, interrupt

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.sharing import normalised
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.tree.nodes import walk_queries
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelSetupError, SettingsError
from judgetree.modules.judge.contract import Verdict
from tests.graphs.bushy import ROOT, BushyJudge, BushyRetriever, Timing, bushy_context, draw, outline
from tests.graphs.fakes import thread


def sharing_context(policy: str = "breadth", **options: object) -> RagContext:
    """A bushy world of seven questions, which most chunks repeat."""
    given = {"topk": 3, "suffices": 0.0, "topics": 7, "max_rec_depth": 4, "sharing": "equal"}
    return bushy_context(policy, **(given | options))  # type: ignore[arg-type]


def searched(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        assert graph.invoke(ROOT, thread("t"))["status"] == "answered"
        return SearchTree.from_history(graph, "t")


def check_links(tree: SearchTree) -> None:
    """Check that links lead to equal questions of the tree, and that no thread waits for itself."""
    queries = {node.thread_id: node for node in tree.query_nodes()}
    waits = nx.DiGraph()
    for node in tree.query_nodes():
        for chunk in node.chunks:
            waits.add_edges_from((node.thread_id, below.thread_id) for below in chunk.sub_runs)
            if chunk.shared_thread_id:
                shared = queries[chunk.shared_thread_id]
                assert normalised(shared.query) == normalised(chunk.next_query)
                assert chunk.sub_answer == shared.answer != ""
                assert not chunk.sub_runs
                assert not chunk.sub_run_error
                waits.add_edge(node.thread_id, chunk.shared_thread_id)
    assert nx.is_directed_acyclic_graph(waits)


@pytest.mark.parametrize("policy", ["breadth", "best_first", "mcts:tries=2"])
@pytest.mark.parametrize("width", [None, 2])
@pytest.mark.parametrize("seed", range(3))
def test_links_depend_on_verdicts_and_not_on_timing(policy: str, width: int | None, seed: int) -> None:
    trees = [
        searched(sharing_context(policy, seed=seed, timing=timing, width=width, max_llm_calls=70))
        for timing in range(3)
    ]
    assert outline(trees[0]) == outline(trees[1]) == outline(trees[2])
    check_links(trees[0])
    assert {bool(each.shared_thread_id) for each in trees[0].chunk_nodes()} == {True, False}
    if policy != "mcts:tries=2":  # which may write a question twice
        asked = [normalised(node.query) for node in trees[0].query_nodes()]
        assert len(asked) == len(set(asked))
    assert all(node.status == "finished" for node in trees[0].query_nodes())


def test_a_question_whose_answer_waits_for_this_one_is_refused() -> None:
    trees = [searched(sharing_context(seed=seed)) for seed in range(4)]
    assert "cycle" in {each.skipped for tree in trees for each in tree.chunk_nodes()}
    assert not any(tree.budget_spent for tree in trees)


def test_without_sharing_every_question_is_asked() -> None:
    tree = searched(sharing_context(sharing="off", max_rec_depth=2, max_llm_calls=200))
    asked = [normalised(node.query) for node in tree.query_nodes()]
    assert len(asked) > len(set(asked))
    assert not any(each.shared_thread_id or each.skipped for each in tree.chunk_nodes())


async def _cancelled_after(context: RagContext, url: str, calls: int) -> None:
    judge = context.judge
    assert isinstance(judge, BushyJudge)
    with build_judge_rag(checkpointer=url, context=context) as graph:
        run = asyncio.create_task(graph.ainvoke(ROOT, thread("t")))
        while judge.made < calls and not run.done():  # noqa: ASYNC110 - on the loop of the test, not of the run
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait([run])


@pytest.mark.parametrize("policy", ["breadth", "best_first", "mcts:tries=2"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_a_tree_that_is_cut_off_again_and_again_ends_with_the_same_links(
    tmp_path: Path, policy: str, width: int, seed: int
) -> None:
    def context(timing: int) -> RagContext:
        return sharing_context(policy, seed=seed, timing=timing, width=width, max_llm_calls=60, max_sub_runs=9)

    unbroken = searched(context(0))
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    for life, calls in enumerate((2, 5, 8, 8, 8)):
        asyncio.run(_cancelled_after(context(life), url, calls))
    with build_judge_rag(checkpointer=url, context=context(9)) as graph:
        graph.invoke(ROOT, thread("t"))
        resumed = SearchTree.from_history(graph, "t")
    assert outline(resumed) == outline(unbroken)
    assert resumed.sub_runs <= 9
    check_links(resumed)


class Topics(BushyRetriever):
    """Places questions of one topic beside each other."""

    async def aembed(self, question: str) -> list[float]:
        topic = int(re.sub(r"\D", "", question) or 0) if "opic" in question else -1
        angle = topic * math.tau / 9
        return [math.cos(angle), math.sin(angle), 0.1 * draw(question)]


@pytest.mark.parametrize("policy", ["breadth", "mcts:tries=2"])
def test_similar_questions_share_an_answer_too_however_often_the_search_is_cut_off(tmp_path: Path, policy: str) -> None:
    def context(timing: int, sharing: str = "similar:at=0.9") -> RagContext:
        of = sharing_context(policy, timing=timing, width=2, max_llm_calls=60)
        judge, retriever = of.judge, of.retriever
        assert isinstance(judge, BushyJudge)
        assert isinstance(retriever, BushyRetriever)
        judge.wording = True
        limits = of.limits.changed(sharing=sharing)
        return replace(of, retriever=Topics(retriever.topk, retriever.timing), limits=limits)

    def waits(tree: SearchTree) -> list[tuple[str, str]]:
        queries = {node.thread_id: node.query for node in tree.query_nodes()}
        linked = [each for each in tree.chunk_nodes() if each.shared_thread_id]
        return [(each.next_query, queries[each.shared_thread_id]) for each in linked]

    unbroken = searched(context(0))
    assert any(normalised(one) != normalised(other) for one, other in waits(unbroken))
    assert unbroken.sub_runs < searched(context(0, "equal")).sub_runs
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    for life, calls in enumerate((2, 5, 8, 8)):
        asyncio.run(_cancelled_after(context(life), url, calls))
    with build_judge_rag(checkpointer=url, context=context(9)) as graph:
        graph.invoke(ROOT, thread("t"))
        assert outline(SearchTree.from_history(graph, "t")) == outline(unbroken)
    with pytest.raises(SettingsError, match="needs a retriever with the method aembed"):
        sharing_context(sharing="similar")


def test_a_question_whose_embedding_fails_shares_with_equal_ones_alone() -> None:
    @dataclass
    class Failing(BushyRetriever):
        refuses: bool = False

        async def aembed(self, question: str) -> list[float]:
            raise (ModelSetupError if self.refuses else ModelCallError)("no embedding today")

    def context(sharing: str, *, refuses: bool = False) -> RagContext:
        of = sharing_context()
        retriever = Failing(3, of.retriever.timing, refuses=refuses)  # type: ignore[union-attr]
        return replace(of, retriever=retriever, limits=of.limits.changed(sharing=sharing))

    similar, equal = searched(context("similar")), searched(context("equal"))
    linked = [[each.next_query for each in tree.chunk_nodes() if each.shared_thread_id] for tree in (similar, equal)]
    assert linked[0] == linked[1] != []
    with pytest.raises(ModelSetupError, match="no embedding today"):
        searched(context("similar", refuses=True))


def test_sharing_is_part_of_a_thread_and_its_name_is_checked() -> None:
    with build_judge_rag(context=sharing_context()) as graph:
        graph.invoke(ROOT, thread("t"))
        assert SearchTree.from_history(graph, "t").fingerprint["sharing"] == "equal"
    with pytest.raises(SettingsError, match=r"Unknown sharing 'on'. Allowed: off, equal, similar"):
        sharing_context(sharing="on")
    for spec in (None, ["equal"]):
        with pytest.raises(SettingsError, match=r"sharing: Input should be a valid string"):
            sharing_context(sharing=spec)


def test_links_are_shown_and_what_they_saved_is_counted() -> None:
    tree = searched(sharing_context(seed=2))
    links = [each for each in tree.chunk_nodes() if each.shared_thread_id]
    below = {node.thread_id: sum(1 for _ in walk_queries(node)) for node in tree.query_nodes()}
    saved = sum(below[each.shared_thread_id] for each in links)
    assert tree.saved_by_sharing == {"questions": len(links), "sub_runs": saved, "llm_calls": 4 * saved}
    assert tree.to_text().count("↪ asked already: ") == len(links)
    assert f"{len(links)} questions asked already, saving {saved} sub-runs and {4 * saved} calls" in tree.to_text()
    assert tree.to_text().count("! not asked: an equal question waits for this answer: ") == 5
    assert tree.to_dot().count("style=dashed, constraint=false") == len(links)
    kinds = [kind for _, _, kind in tree.to_networkx().edges(data="kind")]
    assert kinds.count("shared") == len(links)
    assert kinds.count("asked") == tree.sub_runs
    assert f'"shared":"{links[0].shared_thread_id}"' in tree.to_html(picture=False)
    assert SearchTree.from_json(tree.to_json()) == tree


class AskingJudge(BushyJudge):
    """Asks a human about the first chunk of every sub-question."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if query != ROOT and chunk.metadata["rank"] == 0:
            assert interrupt(f"May I judge {chunk.metadata['chunk_id']}?") == "yes"
        return await super().judge(query, chunk, meter=meter, expand=expand)


def test_an_interrupt_of_a_shared_run_is_asked_once_and_leaves_the_links_as_they_were() -> None:
    context = sharing_context(seed=2)
    with build_judge_rag(context=replace(context, judge=AskingJudge(2, Timing(0), 0.0, 7))) as graph:
        state = graph.invoke(ROOT, thread("t"))
        while asked := [each.id for each in state.get("__interrupt__", ())]:  # type: ignore[attr-defined]
            assert len(asked) == len(set(asked))
            state = graph.invoke(Command(resume=dict.fromkeys(asked, "yes")), thread("t"))
        assert outline(SearchTree.from_history(graph, "t")) == outline(searched(context))
