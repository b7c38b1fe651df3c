"""Facts about a turn of a conversation, as columns of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import get_args

from ..datasets.questions import EvalQuestion
from ..metrics.conversation import AnsweredTurn, QueryForm, needed_scores, rewrite_scores
from ..metrics.retrieval import all_supporting, supporting_recall
from ..rows.store import RunRow
from ..rows.turn_facts import TurnFacts

FORMS: tuple[QueryForm, ...] = get_args(QueryForm)
REWRITE_METRICS = ("rewrite_rouge1_recall", "rewrite_exact")
NEEDED_METRICS = ("needed_precision", "needed_recall", "needed_f1")
REUSE_METRICS = ("reuses", "reuses_wrongly")
TURN_METRICS = ("turn_calls", "turn_tokens")

_NO_FACTS = TurnFacts(dialogue_id="", number=0, conversation="", path_length=0)


def form_metrics(ks: Sequence[int]) -> tuple[str, ...]:
    """Return the retrieval columns of each form of a question: ``raw_recall@3``, ``raw_all@3``, …"""
    return tuple(f"{form}_{name}@{k}" for form in FORMS for k in ks for name in ("recall", "all"))


def turn_columns(row: RunRow, question: EvalQuestion, *, em: float | None, ks: Sequence[int]) -> dict[str, object]:
    """Build the columns of a row's turn; empty for a question outside a dialogue.

    Rates and scores are in [0, 1]. Unknown values are None: everything about the answer if the turn failed, ``reuses``
    and ``needed_…`` of a first turn, ``reuses_wrongly`` of a turn without reuse.

    ``em`` is the exact match of the answer, None if unknown; ``ks`` are the cut-offs of ``form_metrics``.
    """
    turn, facts = question.turn, row.conversation or _NO_FACTS
    if turn is None:
        return {}
    length = facts.path_length or len(turn.history) + 1
    return {
        "dialogue_id": turn.dialogue_id,
        "turn": turn.number,
        "path_length": length,
        "follow_up": length > 1,
        "topic_switch": turn.topic_switch,
        "human_rewrite": turn.rewrite,
        "conversation": facts.conversation,
        "rag_thread_id": facts.rag_thread_id,
        "standalone_query": facts.standalone_query,
        "answered_from": facts.answered_from,
        "reused_chunks": len(facts.reused),
        "own_calls": facts.own.calls,
        "own_cached_calls": facts.own.cached_calls,
        "own_tokens": facts.own.tokens,
        **dict.fromkeys((*REWRITE_METRICS, *NEEDED_METRICS, *REUSE_METRICS, *TURN_METRICS, *form_metrics(ks))),
        **(_answered_columns(row, question, facts, em=em, ks=ks) if facts.answered_from else {}),
    }


def _answered_columns(
    row: RunRow, question: EvalQuestion, facts: TurnFacts, *, em: float | None, ks: Sequence[int]
) -> dict[str, object]:
    from_history = facts.answered_from == "history"
    turn = AnsweredTurn(
        number=facts.path_length,
        from_history=from_history,
        kept_chunks=0 if from_history else len(facts.reused),
        is_right=None if em is None else em == 1.0,
        topic_switch=question.turn.topic_switch if question.turn else None,
    )
    harm = turn.reuses_wrongly if turn.reuses else None
    return {
        **_rewrite(facts, question),
        **_needed(facts, question),
        "reuses": float(turn.reuses) if turn.is_follow_up else None,
        "reuses_wrongly": None if harm is None else float(harm),
        "turn_calls": sum(usage.calls for usage in row.uncached_chat_usage),
        "turn_tokens": sum(usage.tokens for usage in row.uncached_chat_usage),
        **_retrieved(facts, question, ks),
    }


def _needed(facts: TurnFacts, question: EvalQuestion) -> dict[str, float | None]:
    """Score the needed turns of a follow-up, if both system and data set name them."""
    gold = question.turn.relevant_turns if question.turn else None
    if gold is None or facts.needed_turns is None or facts.path_length < 2:
        return {}
    return {f"needed_{name}": score for name, score in asdict(needed_scores(facts.needed_turns, gold)).items()}


def _rewrite(facts: TurnFacts, question: EvalQuestion) -> dict[str, float]:
    """Score the rewrite of a turn, if the data set has one with words."""
    human = question.turn.rewrite if question.turn else ""
    if not any(letter.isalnum() for letter in human):
        return {}
    scores = rewrite_scores(facts.standalone_query, human, lang=question.lang)
    return {f"rewrite_{name}": score for name, score in asdict(scores).items()}


def _retrieved(facts: TurnFacts, question: EvalQuestion, ks: Sequence[int]) -> dict[str, float]:
    if not question.supporting:
        return {}
    of_name = {"recall": supporting_recall, "all": all_supporting}
    return {
        f"{form}_{name}@{k}": score(keys, question.supporting, k=k)
        for form, keys in facts.retrieved.items()
        for k in ks
        for name, score in of_name.items()
    }
