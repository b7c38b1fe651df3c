"""Tokens, money and time of a search tree: what a run may use, what its sub-runs and answers are expected to use."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...modules.calls.budget import StopSignal, TreeBudget
from ...modules.calls.journal import ThreadCalls
from ...modules.calls.kept import CallResult
from ...modules.calls.ledger import LIKELY_COMPLETION_TOKENS, ExpectedSpend, SpendLimits
from ...modules.calls.prices import Prices, dollars, load_prices
from ...modules.calls.record import INTERRUPTED, NOTHING, UNRESERVED, BudgetSource, CallRecord, Spend
from ...modules.calls.tokens import message_tokens, text_tokens
from ...modules.errors import SettingsError
from ...modules.reader.answer_forms import form_tokens
from ...modules.reader.evidence import render_evidence
from ...modules.reader.prompts import reader_messages
from ..config.limits import Limits
from .context import RagContext, RunContext
from .state import RagState

_SUB_ANSWER_TOKENS = 64
"""Expected tokens of a sub-question and its answer in the evidence."""
_JUDGING = ("judge", "judge_set")
_ANSWERING = "generate"
_PAYING_FOR_ANSWERS = (_ANSWERING, "search_web")
"""Nodes whose calls take what is kept for an answer."""


async def budget_of(services: RagContext) -> TreeBudget:
    """Return the budget of a run that begins now."""
    return await budget_within(services.limits, prices=services.prices, halt=services.halt, before=services.before)


async def budget_within(
    limits: Limits, *, prices: Prices | None = None, halt: StopSignal | None = None, before: Spend = NOTHING
) -> TreeBudget:
    """Return the budget of a question that begins now on the running loop; ``before`` is used already."""
    if prices is None and limits.max_tree_cost_usd is not None:
        prices = await asyncio.to_thread(load_prices)
    seconds = limits.max_tree_seconds
    ledger = SpendLimits(
        max_tree_tokens=limits.max_tree_tokens,
        max_tree_cost_usd=limits.max_tree_cost_usd,
        deadline=None if seconds is None else asyncio.get_running_loop().time() + seconds - before.seconds,
        prices=prices,
    )
    ledger.add(before)
    return TreeBudget(limit=limits.max_llm_calls, used=before.calls, ledger=ledger, halt=halt or StopSignal())


def keep_root_answer(query: str, context: RunContext) -> None:
    """Keep the shortest answer of the root back.

    Raises:
        SettingsError: The limits do not pay for it.
    """
    ledger = context.budget.ledger
    if not ledger.limits_amounts:
        return
    least = answer_amount(query, 0, context.services, ledger)
    for name, needed, said in (
        ("max_tree_tokens", least.tokens, f"{least.tokens} tokens"),
        ("max_tree_cost_usd", least.usd, dollars(least.usd)),
    ):
        limit = getattr(ledger, name)
        if limit is not None and needed > limit:
            raise SettingsError(
                f"{name}={limit:g} does not pay for an answer without any evidence, which takes about {said}. "
                "Give more, or leave it out."
            )
    ledger.plan(context.thread_id, ExpectedSpend(least, least))


class SavedCall(NamedTuple):
    """A call in the state of a thread."""

    record: CallRecord
    thread_id: str
    is_of_open_sub_run: bool
    """Whether the thread is a sub-run that runs again."""


def count_earlier(
    journaled: Iterable[CallResult],
    saved: Iterable[SavedCall],
    budget: TreeBudget,
    *,
    failed: Iterable[CallRecord] = (),
) -> None:
    """Count the calls of earlier runs of the tree, each once; ``saved`` are those in the states of its threads.

    ``failed`` are attempts in the journal that may be billed: they count, whether their call is made again or not.

    Cached calls count, since each used a place in the budget. An interrupted call counts when it is made again. A call
    that was reserved and that only the journal has, and the saved answer of a sub-run that runs again, count once their
    thread comes to them: until then the thread reserves them, and to count both would let a round grant less than
    in a run without a break.
    """
    made = {each.record["call_id"]: each for each in saved if _is_counted(each.record)}
    of_open = [each for each in made.values() if each.is_of_open_sub_run]
    budget.replayed_judge_calls = Counter(each.thread_id for each in of_open if each.record["node"] in _JUDGING)
    kept_calls = {kept.record["call_id"]: kept for kept in journaled}
    answers: dict[str, str] = {}
    for each in of_open:
        kept = kept_calls.get(each.record["call_id"])
        if _is_answer(each.record) and (kept is None or kept.taken.held_by):
            answers[each.thread_id] = each.record["call_id"]  # of several the last one, where none is journaled
    budget.replayable = {call_id: BudgetSource(held_by=thread_id) for thread_id, call_id in answers.items()}
    for call_id, kept in kept_calls.items():
        if call_id not in made:
            made[call_id] = SavedCall(kept.record, thread_id="", is_of_open_sub_run=False)
            if kept.taken != UNRESERVED:
                budget.replayable[call_id] = kept.taken
    failed = list(failed)
    for record in failed:
        made.setdefault(record["call_id"], SavedCall(record, thread_id="", is_of_open_sub_run=False))
    budget.used += len(made) - len(budget.replayable)
    budget.ledger.has_failed_answers = _holds_answer(failed)
    _count_amounts(made, budget.replayable, budget.ledger)


def _count_amounts(made: Mapping[str, SavedCall], awaited: Mapping[str, BudgetSource], ledger: SpendLimits) -> None:
    ledger.replayable = {call_id: made[call_id].record for call_id in awaited}
    for call_id, each in made.items():
        if call_id not in awaited:
            ledger.book(each.thread_id, each.record)


def count_paid(calls: ThreadCalls | None, budget: TreeBudget) -> None:
    """Count all calls that the journal has of a tree, each at once: none of its threads reserves anything again."""
    if calls is None:
        return
    records = [*(kept.record for kept in calls.known_replies), *calls.known_failures]
    budget.used += len(records)
    budget.ledger.has_failed_answers = _holds_answer(calls.known_failures)
    budget.ledger.book("", *records)


def _holds_answer(failed: Iterable[CallRecord]) -> bool:
    return any(record["node"] in _PAYING_FOR_ANSWERS for record in failed)


def _is_counted(record: CallRecord) -> bool:
    return record["kind"] == "chat" and record["error"] != INTERRUPTED


def _is_answer(record: CallRecord) -> bool:
    """Return whether a call answered the query of its own thread; that of a sub-run that failed names its chunk."""
    return record["node"] == _ANSWERING and not record["chunk_id"] and not record["error"]


def keep_for_answer(state: RagState, context: RunContext, *, to_ask: int = 0) -> None:
    """Keep what the answer of a thread is expected to use, once its chunks are known; ``to_ask`` sub-runs follow."""
    ledger = context.budget.ledger
    if ledger.limits_amounts:
        ledger.keep(context.thread_id, _expected_answer(state, context, ledger, to_ask))


def expected_share(state: RagState, context: RunContext, *, calls: int) -> ExpectedSpend | None:
    """Return what a sub-run below a thread is expected to use in so many calls; None where nothing limits it.

    That is its parent's answer, and for each other call the mean of its parent's judge calls.
    """
    ledger = context.budget.ledger
    if not ledger.limits_amounts:
        return None
    answer = _expected_answer(state, context, ledger, 0)
    made = (each for each in state.get("usage", []) if each["node"] in _JUDGING and each["error"] != INTERRUPTED)
    judged = [ledger.of_record(each) for each in made]
    judging = sum(judged, NOTHING).times((calls - 1) / len(judged)) if judged else NOTHING
    return ExpectedSpend(answer + judging, answer)


def evidence_room(query: str, context: RunContext) -> int | None:
    """Return the most tokens of evidence that the limits leave for the answer of a thread; None for no limit."""
    return room_for_evidence(query, context.thread_id, context.budget, context.services)


def room_for_evidence(query: str, thread_id: str, budget: TreeBudget, services: RagContext) -> int | None:
    """Return the most tokens of evidence for an answer that is kept under a name; None for no limit."""
    ledger = budget.ledger
    if not ledger.limits_amounts:
        return None
    room, bare = ledger.room(thread_id), answer_amount(query, 0, services, ledger)
    most = []
    if ledger.max_tree_tokens is not None:
        most.append(room.tokens - bare.tokens)
    a_token = ledger.of_call(services.reader.model, 1, 0).usd
    if ledger.max_tree_cost_usd is not None and a_token:
        most.append(int((room.usd - bare.usd) / a_token))
    return max(min(most), 0) if most else None


def _expected_answer(state: RagState, context: RunContext, ledger: SpendLimits, to_ask: int) -> Spend:
    shown = context.services.evidence.of_chunks(state.get("similar_chunks", []))
    evidence = text_tokens(render_evidence(shown))
    query = state.get("reader_query") or state["query"]
    return answer_amount(query, evidence + to_ask * _SUB_ANSWER_TOKENS, context.services, ledger)


def answer_amount(query: str, evidence_tokens: int, services: RagContext, ledger: SpendLimits) -> Spend:
    """Return what an answer from so many tokens of evidence is expected to use."""
    prompt = message_tokens(reader_messages(query, "", services.prompts)) + evidence_tokens
    prompt += form_tokens(services.answer_form)
    return ledger.of_call(services.reader.model, prompt, LIKELY_COMPLETION_TOKENS)
