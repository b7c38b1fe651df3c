"""Searches under the policies: grants in rounds, skips, budgets, several tries of a chunk, kills."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from langchain_core.documents import Document

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.candidate import Candidate, Expansion, SearchLimits, SearchProgress
from judgetree.graphs.search.policies.mcts import Mcts
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import CacheMiss, ModelSetupError, SettingsError
from judgetree.modules.judge.contract import Verdict
from tests.graphs.bushy import ROOT, RUNNABLE, BushyJudge, BushyWriter, bushy_context, outline
from tests.graphs.fakes import thread


def searched(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        final = graph.invoke(ROOT, thread("t"))
        assert final["status"] == "answered"
        return SearchTree.from_history(graph, "t")


@pytest.mark.parametrize("policy", [name for name in RUNNABLE if name != "value_cost"] + ["value_cost:worth=1000"])
@pytest.mark.parametrize("width", [None, 2])
def test_a_tree_depends_on_verdicts_and_not_on_timing(policy: str, width: int | None) -> None:
    trees = [
        searched(bushy_context(policy, timing=timing, topk=4, max_rec_depth=2, max_llm_calls=41, width=width))
        for timing in range(2)
    ]
    assert outline(trees[0]) == outline(trees[1])
    assert {each.skipped for tree in trees for each in tree.chunk_nodes()} == {None, "calls"}
    assert all(36 <= tree.usage["llm_calls"] <= 41 for tree in trees)
    assert all(node.status == "finished" for tree in trees for node in tree.query_nodes())


def test_a_search_ends_where_no_expansion_is_worth_its_calls() -> None:
    tree = searched(bushy_context("value_cost:worth=8", topk=4, max_rec_depth=2))
    assert {each.skipped for each in tree.chunk_nodes()} == {None, "policy"}
    assert not tree.budget_spent


def test_a_search_may_have_so_many_sub_runs() -> None:
    tree = searched(bushy_context("breadth", topk=4, max_rec_depth=2, max_sub_runs=3))
    assert tree.sub_runs == 3
    assert {each.skipped for each in tree.chunk_nodes()} == {None, "sub_runs"}
    assert tree.budget_spent


def test_a_limit_of_langgraph_does_not_stop_the_rounds() -> None:
    """Branches that wait for a grant would hold its slots, and those that the round waits for never arrive."""
    with build_judge_rag(context=bushy_context("best_first", max_rec_depth=2, width=1)) as graph:
        assert graph.invoke(ROOT, {**thread("t"), "max_concurrency": 1})["status"] == "answered"


def test_a_chunk_that_found_nothing_is_asked_again_and_the_reader_sees_all_answers() -> None:
    context = bushy_context("wider:tries=3", suffices=0.0, max_rec_depth=1)
    tree = searched(context)
    again = [each for each in tree.chunk_nodes() if each.tries]
    assert again
    for each in again:
        assert [one["query"] for one in each.tries] == [
            each.next_query,
            *(f"{each.chunk_id}~{number}" for number in range(1, len(each.tries))),
        ]
        assert [below.query for below in each.sub_runs] == [one["query"] for one in each.tries]
        assert f"Supplementary question: {each.chunk_id}~1\nAnswer: an answer" in tree.root.evidence


def test_again_asks_whatever_came_back_and_wider_only_where_too_little_did() -> None:
    """Whatever a sub-run finds counts as something, as the document of a wrong question does."""
    tries = {}
    for policy in ("wider:tries=3,least=0", "again:tries=3"):
        tree = searched(bushy_context(policy, suffices=0.0, max_rec_depth=1))
        tries[policy] = {len(each.sub_runs) for each in tree.chunk_nodes() if each.sub_runs}
    assert tries["again:tries=3"] == {3}
    assert 1 in tries["wider:tries=3,least=0"]


class RejectingJudge(BushyJudge):
    """Its endpoint rejects the key once a sub-run asks."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if query.count("/") == 1:
            raise ModelSetupError("the key was rejected")
        return await super().judge(query, chunk, meter=meter, expand=expand)


def test_an_error_that_all_would_meet_ends_the_question_although_others_wait_for_a_grant() -> None:
    context = bushy_context("best_first", suffices=0.0, width=1)
    assert isinstance(context.judge, BushyJudge)
    rejecting = replace(context, judge=RejectingJudge(0, context.judge.timing))
    with build_judge_rag(context=rejecting) as graph, pytest.raises(ModelSetupError, match="the key was rejected"):
        graph.invoke(ROOT, thread("t"))


class Ended(BaseException):
    """Ends more than a question."""


@dataclass
class EndingJudge(BushyJudge):
    """Ends the program at a call that sub-runs make."""

    last: int = 0

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if "/" in query and self.made >= self.last:
            raise Ended
        return await super().judge(query, chunk, meter=meter, expand=expand)


@pytest.mark.parametrize("policy", ["best_first", "mcts:tries=2"])
def test_a_search_whose_program_ends_decides_nothing_without_the_sub_run_that_ended_it(
    tmp_path: Path, policy: str
) -> None:
    """Its share of the budget was free for the others, whose grants were saved."""
    limits = {"max_rec_depth": 2, "max_llm_calls": 30, "width": 3}
    unbroken = outline(searched(bushy_context(policy, **limits)))
    for last in range(3, 15):
        url = f"sqlite:///{tmp_path / f'{last}.sqlite'}"
        context = bushy_context(policy, **limits)
        assert isinstance(context.judge, BushyJudge)
        ending = replace(context, judge=EndingJudge(0, context.judge.timing, last=last))
        with build_judge_rag(checkpointer=url, context=ending) as graph, pytest.raises(Ended):
            graph.invoke(ROOT, thread("t"))
        with build_judge_rag(checkpointer=url, context=bushy_context(policy, **limits)) as graph:
            graph.invoke(ROOT, thread("t"))
            assert outline(SearchTree.from_history(graph, "t")) == unbroken


class Wrong:
    """A policy of one's own that chooses what is no candidate."""

    def fingerprint(self) -> dict[str, str]:
        return {}

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        return [replace(candidates[0], chunk_id="another")]

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        return False


def test_a_policy_of_ones_own_that_chooses_wrongly_is_told() -> None:
    with (
        build_judge_rag(context=bushy_context(Wrong(), suffices=0.0)) as graph,
        pytest.raises(SettingsError, match=r"Wrong.* chose .*Choose some of the candidates, each once"),
    ):
        graph.invoke(ROOT, thread("t"))


class Endless(Wrong):
    """A policy of one's own that never stops choosing."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        return itertools.cycle(candidates)  # type: ignore[return-value]


class Nameless(Wrong):
    """A policy of one's own that cannot say what it is."""

    def fingerprint(self) -> dict[str, str]:
        raise LookupError("no version")


@pytest.mark.parametrize(
    ("policy", "said"), [(Endless, r"chose .*each once"), (Nameless, r"failed: LookupError: no version")]
)
def test_a_policy_of_ones_own_that_chooses_without_end_or_has_no_fingerprint_is_told(
    policy: type[Wrong], said: str
) -> None:
    with (
        pytest.raises(SettingsError, match=rf"{policy.__name__}.* {said}"),
        build_judge_rag(context=bushy_context(policy(), suffices=0.0)) as graph,
    ):
        graph.invoke(ROOT, thread("t"))


@pytest.mark.parametrize("c", ["inf", "nan", "-1", "1e999"])
def test_an_exploration_that_is_no_number_from_0_on_is_refused(c: str) -> None:
    with pytest.raises(SettingsError, match=r"mcts.*c"):
        create_policy(f"mcts:c={c}")


class FailsLater(Wrong):
    """A policy of one's own that fails when a chunk has been asked on."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        return candidates

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        return not tries or bool(tries[0].missing)  # type: ignore[attr-defined]


def test_a_policy_of_ones_own_that_fails_while_a_sub_run_plans_ends_the_question() -> None:
    with (
        build_judge_rag(context=bushy_context(FailsLater(), suffices=0.0)) as graph,
        pytest.raises(SettingsError, match=r"FailsLater.* failed: AttributeError"),
    ):
        graph.invoke(ROOT, thread("t"))


@dataclass
class BrokenWriter(BushyWriter):
    """Fails in one way at its first questions."""

    error: Exception
    times: int = 2

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return await super().write(query, chunk, tried, meter=meter)


async def _searched_in_time(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        await asyncio.wait_for(graph.ainvoke(ROOT, thread("t")), 30)
        return await SearchTree.afrom_history(graph, "t")


def test_a_writer_of_ones_own_that_fails_leaves_a_try_unasked() -> None:
    context = replace(bushy_context("mcts:tries=2", width=2), writer=BrokenWriter(RuntimeError("no ink")))
    tree = asyncio.run(_searched_in_time(context))
    tries = [one for each in tree.chunk_nodes() for one in each.tries]
    failed = [one for one in tries if one["error"]]
    assert [one["error"] for one in failed] == ["no sub-question: RuntimeError: no ink"] * 2
    assert len(tries) > len(failed) + 2


@pytest.mark.parametrize("error", [CacheMiss("not in the cache"), ModelSetupError("the key was rejected")], ids=repr)
def test_an_error_of_the_writer_that_all_would_meet_ends_the_question(error: Exception) -> None:
    context = replace(bushy_context("mcts:tries=2", width=2), writer=BrokenWriter(error))
    with pytest.raises(type(error), match=str(error)):
        asyncio.run(_searched_in_time(context))


async def _cancelled_after(context: RagContext, url: str, calls: int) -> None:
    """Run until so many judge calls are made, and cancel the run."""
    judge = context.judge
    assert isinstance(judge, BushyJudge)
    with build_judge_rag(checkpointer=url, context=context) as graph:
        run = asyncio.create_task(graph.ainvoke(ROOT if judge.made == 0 else None, thread("t")))
        while judge.made < calls and not run.done():  # noqa: ASYNC110 - on the loop of the test, not of the run
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait([run])


class Overheard(Mcts):
    """Keeps what it was shown."""

    name: ClassVar[str] = "overheard"
    shown: ClassVar[dict[object, list[object]]] = {}
    """Paths of the candidates, by what was expanded before."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        self.shown.setdefault(spent.expansions, []).append([each.path for each in candidates])
        return super().choose(candidates, spent, limits)


def test_a_cancelled_search_decides_nothing_without_the_branches_that_have_heard_of_it(tmp_path: Path) -> None:
    """They hear of it one after another, and the grants of a round without the first of them would be saved."""
    for calls in range(10, 20):
        context = bushy_context(Overheard(tries=2), timing=calls, max_rec_depth=2, max_llm_calls=40, width=3)
        asyncio.run(_cancelled_after(context, f"sqlite:///{tmp_path / f'{calls}.sqlite'}", calls))
    assert len(Overheard.shown) >= 2
    for shown in Overheard.shown.values():
        assert shown == [shown[0]] * len(shown)


@pytest.mark.parametrize("policy", ["breadth", "best_first", "wider", "mcts:tries=2"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.slow
def test_a_search_that_is_cut_off_again_and_again_ends_with_the_same_grants(
    tmp_path: Path, policy: str, width: int
) -> None:
    limits = {"max_rec_depth": 2, "max_llm_calls": 40, "width": width}
    unbroken = outline(searched(bushy_context(policy, **limits)))
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    for life, calls in enumerate((2, 5, 8, 8, 8)):
        context = bushy_context(policy, timing=life, **limits)
        asyncio.run(_cancelled_after(context, url, calls))
    with build_judge_rag(checkpointer=url, context=bushy_context(policy, timing=9, **limits)) as graph:
        graph.invoke(ROOT, thread("t"))
        assert outline(SearchTree.from_history(graph, "t")) == unbroken
