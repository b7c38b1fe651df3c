"""What each kept question says of each system: evidence complete, calls and prompt tokens, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from judgetree.evaluation.replay.play import Episode, run_episode
from judgetree.evaluation.replay.world import RecordedWorld
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.search.stop import create_stop
from judgetree.modules.reader.evidence_choice import USEFUL

from .kept import QUESTION, KeptQuery, KeptQuestion

BUDGET = 60
"""Most calls of a question, as judgetree has by default."""
BUDGETS = (8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, BUDGET)
BREADTH, AGAIN, BEST_FIRST, TEMPLATE = "breadth", "again", "best_first", "template"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A question under one system."""

    id: str
    part: str
    type: str
    system: str
    budget: int
    """Most calls, or passages of a plain search."""
    complete: bool
    """Whether readers saw all needed documents on the way to the answer."""
    calls: int
    sub_runs: int
    tokens: int
    """Of all prompts, estimated: judging, asking and reading."""
    misses: int
    """Questions that were asked there and are not recorded."""


def outcomes(questions: Iterable[KeptQuestion]) -> pd.DataFrame:
    """Play every system on every question; a row for each question, system and budget."""
    return pd.DataFrame([each for question in questions for each in _of(question)])


def played(world: RecordedWorld, policy: str, *, calls: int = BUDGET, sub_runs: int | None = None) -> Episode:
    """Play a question to the depth that was recorded."""
    limits = Limits(max_rec_depth=1, max_llm_calls=calls, max_sub_runs=sub_runs)
    return run_episode(world, create_policy(policy), create_stop("set"), limits, USEFUL)


def _of(question: KeptQuestion) -> Iterator[Outcome]:
    for search in question.naive:
        complete = search.gold == len(question.gold)
        yield _outcome(question, "naive", search.topk, complete=complete, calls=1, tokens=search.tokens)
    for policy in (BREADTH, "again:tries=2", f"{BEST_FIRST}:rank_weight=0"):
        for budget in BUDGETS:
            episode = played(question.world, policy, calls=budget)
            yield _of_episode(question, policy.partition(":")[0], budget, episode, question.queries)
    asked = len(played(question.world, BREADTH).expansions)
    yield _of_episode(
        question, TEMPLATE, BUDGET, played(question.template_world, BEST_FIRST, sub_runs=asked), question.template
    )


def _of_episode(
    question: KeptQuestion, system: str, budget: int, episode: Episode, queries: Sequence[KeptQuery]
) -> Outcome:
    return _outcome(
        question,
        system,
        budget,
        complete=episode.is_complete,
        calls=episode.calls,
        tokens=tokens_of(episode, queries),
        sub_runs=len(episode.expansions),
        misses=episode.misses,
    )


def tokens_of(episode: Episode, queries: Sequence[KeptQuery]) -> int:
    """Add up the prompts of a search: of its judges, of what asks a chunk again, and of its readers."""
    by_query = {each.query: each for each in queries}
    root = by_query[QUESTION]
    visited = [
        root,
        *(by_query[query] for each in episode.expansions if (query := each.candidate.next_query) in by_query),
    ]
    again = sum(
        chunk.again
        for each in episode.expansions
        if each.candidate.attempt > 1
        for chunk in root.chunks
        if chunk.id == each.candidate.chunk_id
    )
    return again + sum(_judging(each) + _reading(each) for each in visited)


def _judging(query: KeptQuery) -> int:
    return sum(each.judging for each in query.chunks)


def _reading(query: KeptQuery) -> int:
    return query.reading + sum(each.tokens for each in query.judged.shown(USEFUL))


def _outcome(
    question: KeptQuestion,
    system: str,
    budget: int,
    *,
    complete: bool,
    calls: int,
    tokens: int,
    sub_runs: int = 0,
    misses: int = 0,
) -> Outcome:
    return Outcome(
        id=question.id,
        part=question.part,
        type=question.type,
        system=system,
        budget=budget,
        complete=complete,
        calls=calls,
        sub_runs=sub_runs,
        tokens=tokens,
        misses=misses,
    )
