"""Searches under limits of tokens, money and time: reserved before, corrected after, always answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.drawing.words import format_spent
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.policies.registry import POLICIES
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.budget import StopSignal
from judgetree.modules.calls.prices import Cost, usage_by_model
from judgetree.modules.errors import ModelCallError, SettingsError
from tests.graphs.bushy import ROOT, outline
from tests.graphs.fakes import thread
from tests.graphs.priced import PRICES, llm_of, priced_context


def searched(context: RagContext, url: str = "memory:") -> SearchTree:
    """Ask, and ask on after each failure of the model, until there is an answer."""
    with build_judge_rag(checkpointer=url, context=context) as graph:
        for life in range(40):
            try:
                final = graph.invoke(ROOT if life == 0 else None, thread("t"))
            except ModelCallError:
                continue
            assert final["status"] in ("answered", "refused")
            return SearchTree.from_history(graph, "t")
    raise AssertionError("never answered")


def tokens_of(tree: SearchTree) -> int:
    return tree.usage["prompt_tokens"] + tree.usage["completion_tokens"]


def cost_of(tree: SearchTree) -> Cost:
    return PRICES.cost_of(usage_by_model(record for node in tree.query_nodes() for record in node.usage))


LIMITS = st.fixed_dictionaries(
    {
        "max_rec_depth": st.integers(0, 3),
        "max_llm_calls": st.integers(1, 60),
        "width": st.none() | st.integers(1, 3),
        "max_sub_runs": st.none() | st.integers(0, 6),
        "max_tree_tokens": st.none() | st.integers(600, 20_000),
        "max_tree_cost_usd": st.none() | st.floats(0.001, 0.03),
    }
)
WORLDS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(sorted(POLICIES)),
        "seed": st.integers(0, 1000),
        "timing": st.integers(0, 1000),
        "topk": st.integers(1, 4),
        "faults": st.sampled_from((0.0, 0.2)),
    }
)


@settings(max_examples=25)
@given(world=WORLDS, limits=LIMITS)
def test_no_limit_is_exceeded_and_there_is_always_an_answer(world: dict[str, object], limits: dict[str, float]) -> None:
    tree = searched(priced_context(**world, **limits))  # type: ignore[arg-type]
    assert tree.usage["llm_calls"] <= limits["max_llm_calls"]
    if limits["max_sub_runs"] is not None:
        assert tree.sub_runs <= limits["max_sub_runs"]
    if limits["max_tree_tokens"] is not None:
        assert tokens_of(tree) <= limits["max_tree_tokens"]
    if limits["max_tree_cost_usd"] is not None:
        assert cost_of(tree).known_usd <= limits["max_tree_cost_usd"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("limits", "reason"), [({"max_tree_tokens": 2200}, "tokens"), ({"max_tree_cost_usd": 0.0033}, "cost")]
)
def test_a_tree_says_which_limit_ended_it(limits: dict[str, float], reason: str) -> None:
    tree = searched(priced_context(seed=2, topk=4, max_rec_depth=2, **limits))
    assert {each.skipped for each in tree.chunk_nodes()} == {None, reason}
    assert tree.spent_limits == {reason}
    used = tokens_of(tree) if reason == "tokens" else cost_of(tree).known_usd
    assert 0.5 * sum(limits.values()) <= used <= sum(limits.values())


def test_tokens_beyond_the_estimates_are_over_by_the_error_of_the_calls_in_flight_alone() -> None:
    context = priced_context(seed=2, topk=4, max_rec_depth=2, max_tree_tokens=2200, excess=0.3)
    tree = searched(context)
    prompts = [record["prompt_tokens"] for node in tree.query_nodes() for record in node.usage]
    assert tokens_of(tree) <= 2200 + 0.3 * sum(sorted(prompts)[-llm_of(context).most_running :])


@pytest.mark.parametrize("policy", ["breadth", "best_first", "wider"])
def test_a_tree_that_tokens_limit_depends_on_verdicts_and_not_on_timing(policy: str) -> None:
    trees = [
        searched(priced_context(policy, seed=2, timing=timing, topk=4, max_rec_depth=2, width=2, max_tree_tokens=2200))
        for timing in range(3)
    ]
    assert len({str(outline(tree)) for tree in trees}) == 1
    assert "tokens" in trees[0].spent_limits


def test_the_evidence_of_an_answer_is_cut_to_the_tokens_that_are_left() -> None:
    tree = searched(priced_context(topk=12, max_rec_depth=0, max_tree_tokens=700, suffices=1.0))
    assert tokens_of(tree) <= 700
    assert tree.budget_spent
    assert tree.spent_limits == {"tokens"}


async def _cancelled_after(context: RagContext, url: str, calls: int) -> None:
    with build_judge_rag(checkpointer=url, context=context) as graph:
        is_new = (await graph.aget_state(thread("t"))).created_at is None
        run = asyncio.create_task(graph.ainvoke(ROOT if is_new else None, thread("t")))
        while llm_of(context).made < calls and not run.done():  # noqa: ASYNC110 - on the loop of the test
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait([run])


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_cut_off_again_and_again_spends_its_tokens_on_the_same_tree(tmp_path: Path, width: int) -> None:
    limits = {"seed": 2, "topk": 4, "max_rec_depth": 2, "max_tree_tokens": 2200, "width": width}
    unbroken = searched(priced_context("best_first", **limits))  # type: ignore[arg-type]
    assert "tokens" in unbroken.spent_limits
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    for life, calls in enumerate((2, 5, 8, 8, 8)):
        asyncio.run(_cancelled_after(priced_context("best_first", timing=life, **limits), url, calls))
    with build_judge_rag(checkpointer=url, context=priced_context("best_first", timing=9, **limits)) as graph:
        graph.invoke(None, thread("t"))
        assert outline(SearchTree.from_history(graph, "t")) == outline(unbroken)


def test_calls_are_cancelled_once_the_time_is_over_and_the_root_answers_from_what_is_there() -> None:
    context = priced_context(suffices=0.0, max_rec_depth=2, max_tree_seconds=0.5)
    llm = llm_of(context)
    answering = llm._call

    async def hanging(messages, meter, options, listeners):  # type: ignore[no-untyped-def]
        if messages[-1][1].count("/") >= 2:  # a judge of a sub-run
            await meter.about_to_send()
            await asyncio.Event().wait()
        return await answering(messages, meter, options, listeners)

    llm._call = hanging  # type: ignore[method-assign]
    tree = searched(context)  # ends: the judges that hang were cancelled
    assert tree.root.answer == "an answer"
    assert tree.spent_limits == {"seconds"}
    below = [each for each in tree.chunk_nodes() if each.verdict_label == "cancelled"]
    assert below and all(each.spent_limit == "seconds" for each in below)


def test_a_stop_from_outside_ends_a_search_as_the_end_of_its_time_does() -> None:
    halt = StopSignal()
    context = replace(priced_context(suffices=0.0, max_rec_depth=2), halt=halt)
    llm = llm_of(context)
    answering = llm._call

    async def stopping(messages, meter, options, listeners):  # type: ignore[no-untyped-def]
        if messages[-1][1].count("/") >= 2:  # a judge of a sub-run
            await meter.about_to_send()
            halt.set()
            await asyncio.Event().wait()
        return await answering(messages, meter, options, listeners)

    llm._call = stopping  # type: ignore[method-assign]
    tree = searched(context)
    assert tree.root.answer == "an answer"
    assert (tree.budget_spent, tree.spent_limits) == (True, {"stopped"})
    below = [each for each in tree.chunk_nodes() if each.verdict_label == "cancelled"]
    assert below and all(each.spent_limit == "stopped" for each in below)
    assert SearchTree.from_json(tree.to_json()).spent_limits == {"stopped"}
    assert format_spent(tree.spent_limits) == "The search was stopped"


@pytest.mark.parametrize("limits", [{}, {"max_tree_seconds": 1000.0, "max_tree_tokens": 9000}])
def test_a_search_that_was_stopped_before_it_began_pays_for_its_answer_alone(limits: dict[str, float]) -> None:
    halt = StopSignal()
    halt.set()
    context = replace(priced_context(**limits), halt=halt)  # type: ignore[arg-type]
    tree = searched(context)
    assert (tree.root.answer, tree.root.chunks, tree.usage["llm_calls"]) == ("an answer", (), 1)
    assert tree.spent_limits == {"stopped"}


def test_a_search_that_may_be_stopped_and_is_not_takes_the_same_course() -> None:
    limits = {"seed": 2, "topk": 4, "max_rec_depth": 2, "width": 2}
    plain, stoppable = (searched(replace(priced_context(**limits), halt=halt)) for halt in (None, StopSignal()))  # type: ignore[arg-type]
    assert outline(plain) == outline(stoppable)


def test_a_search_whose_first_search_takes_all_the_time_is_answered_without_evidence() -> None:
    context = priced_context(max_tree_seconds=0.2)

    async def hanging(query: str, *, meter: object) -> list[object]:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    context.retriever.asearch = hanging  # type: ignore[union-attr, method-assign, assignment]
    tree = searched(context)
    assert (tree.root.answer, tree.root.chunks) == ("an answer", ())
    assert (tree.budget_spent, tree.spent_limits) == (True, {"seconds"})
    assert SearchTree.from_json(tree.to_json()).spent_limits == {"seconds"}


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"max_tree_tokens": 0}, "max_tree_tokens: .*greater than or equal to 1"),
        ({"max_tree_cost_usd": 0}, "max_tree_cost_usd: .*greater than 0"),
        ({"max_tree_seconds": float("nan")}, "max_tree_seconds: .*it is nan"),
        ({"max_tree_seconds": True}, "max_tree_seconds: .*it is True"),
    ],
)
def test_impossible_limits_are_refused_by_name(limits: dict[str, float], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Limits(**limits)  # type: ignore[arg-type]


def test_limits_that_pay_for_no_answer_are_refused_before_any_call() -> None:
    context = priced_context(max_tree_tokens=100)
    with build_judge_rag(context=context) as graph, pytest.raises(SettingsError, match="does not pay for an answer"):
        graph.invoke(ROOT, thread("t"))
    assert llm_of(context).made == 0


def test_a_limit_of_money_needs_the_price_of_the_model() -> None:
    context = priced_context(max_tree_cost_usd=1.0)
    llm_of(context).__class__.model = "priced"
    llm_of(context).model = "unknown"  # type: ignore[misc]
    with build_judge_rag(context=context) as graph, pytest.raises(SettingsError, match="price of the chat model"):
        graph.invoke(ROOT, thread("t"))


# --- eager ---


@pytest.mark.parametrize("eager", [True, False])
def test_a_chunk_that_suffices_cancels_the_judge_calls_that_have_not_begun(eager: bool) -> None:
    context = priced_context(topk=4, suffices=1.0, stop=f"set:eager={eager}", max_llm_calls=5)
    llm = llm_of(context)
    gate, answering = asyncio.Semaphore(1), llm._call

    async def one_at_a_time(messages, meter, options, listeners):  # type: ignore[no-untyped-def]
        async with gate:
            return await answering(messages, meter, options, listeners)

    llm._call = one_at_a_time  # type: ignore[method-assign]
    tree = searched(context)
    verdicts = [(each.verdict_label, each.skipped) for each in tree.root.chunks]
    if not eager:
        assert verdicts == [("2", None)] * 4
        return
    assert verdicts.count(("2", None)) + verdicts.count(("cancelled", "stop")) == 4
    assert verdicts.count(("cancelled", "stop")) >= 1
    assert tree.usage["llm_calls"] == verdicts.count(("2", None)) + 1 == llm.made
    assert not tree.budget_spent
