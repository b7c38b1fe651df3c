"""Asks judges about the passages of training questions, whose gold is known."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.documents import Document

from ...modules.calls.usage import CallMeter, CallRecord
from ...modules.digests import text_digest
from ...modules.errors import JudgetreeError, ungrouped
from ...modules.judge.contract import AnyJudge, checked_set_verdict, judge_each, judges_sets
from ...modules.judge.embedding import Similarity
from ...modules.judge.fits import rating_of
from ...modules.judge.fused import features_of
from ...modules.judge.logprob import LogprobJudge
from ...modules.progress import StageProgress
from .data import ScoredCase
from .fit import RatedCase, RatedPassage

_STAGE = "asking the judge"

Rater = Callable[[ScoredCase, CallMeter], Awaitable[list[RatedPassage]]]
"""Rates the passages of a case, gold ones first."""


@dataclass(kw_only=True)
class Rating:
    """The ratings of all cases, some cases at once."""

    cases: Sequence[ScoredCase]
    rate: Rater
    report: StageProgress
    records: list[CallRecord] = field(default_factory=list)

    async def run(self, at_once: int) -> list[RatedCase]:
        """Rate all passages with ``at_once`` workers; the result is in the order of the cases."""
        total = sum(len(texts_of(case)) for case in self.cases)
        self.report(0, total, _STAGE)
        rated: dict[int, list[RatedPassage]] = {}
        left = iter(enumerate(self.cases))

        async def work() -> None:
            for at, case in left:
                meter = CallMeter(node="calibrate")
                try:
                    rated[at] = await self.rate(case, meter)
                finally:
                    self.records += meter.records
                self.report(sum(map(len, rated.values())), total, _STAGE)

        with ungrouped(JudgetreeError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(self.cases))):
                    group.create_task(work())
        return [rated_case(case, rated[at]) for at, case in enumerate(self.cases)]


def by_probability(judge: LogprobJudge, *, alone: bool) -> Rater:
    """Rate by P(needed) and, if ``alone``, P(alone); a case's passages in turn, since their prompts share a prefix."""

    async def rate(case: ScoredCase, meter: CallMeter) -> list[RatedPassage]:
        rated = []
        for passage in texts_of(case):
            own = replace(meter, records=[])  # the cache reads the meter's last record
            try:
                needed, sufficient = await judge.probabilities(case.query, passage, meter=own, alone=alone)
            finally:
                meter.records.extend(own.records)
            rated.append(RatedPassage(needed=needed, alone=sufficient))
        return rated

    return rate


def by_similarity(similarity: Similarity) -> Rater:
    """Rate by similarity, for both thresholds."""

    async def rate(case: ScoredCase, meter: CallMeter) -> list[RatedPassage]:
        ratings = await similarity.rate(case.query, texts_of(case), meter=meter)
        return [RatedPassage(needed=rating, alone=rating) for rating in ratings]

    return rate


def by_verdict(judge: AnyJudge) -> Rater:
    """Rate by the P(needed) of any judge, which sees the passages of a question in an order drawn from its words."""

    async def rate(case: ScoredCase, meter: CallMeter) -> list[RatedPassage]:
        passages = texts_of(case)
        order = list(range(len(passages)))
        random.Random(text_digest(case.query)).shuffle(order)
        chunks = [Document(page_content=passages[at], metadata={"chunk_id": str(at)}) for at in order]
        if judges_sets(judge):
            given = await judge.judge_set(case.query, chunks, meter=meter, expand=False)
            verdicts = list(checked_set_verdict(given, len(chunks)).verdicts)
        else:
            verdicts = await judge_each(judge, case.query, chunks, meter=meter, expand=False)
        needed = {at: rating_of(verdict) for at, verdict in zip(order, verdicts, strict=True)}
        return [RatedPassage(needed=needed[at]) for at in range(len(passages))]

    return rate


@dataclass(kw_only=True)
class FeatureRating:
    """Rates by the model alone, and keeps the features of each case for ``fused``."""

    judge: LogprobJudge
    similarity: Similarity
    features: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """By question, in the order of its passages."""

    async def __call__(self, case: ScoredCase, meter: CallMeter) -> list[RatedPassage]:
        """Rate the passages of a case."""
        rated = await by_probability(self.judge, alone=False)(case, meter)
        passages = texts_of(case)
        similarity = await self.similarity.rate(case.query, passages, meter=meter)
        needed = [each.needed for each in rated]
        self.features[case.query] = features_of(case.query, passages, needed, similarity)
        return rated


def texts_of(case: ScoredCase) -> list[str]:
    """Return the passages of a case, gold ones first."""
    return [passage.text for passage in (*case.gold, *case.others)]


def rated_case(case: ScoredCase, rated: Sequence[RatedPassage]) -> RatedCase:
    """Return the ratings of a case's passages, gold ones first, with what is known of these."""
    pairs = zip(rated, (*case.gold, *case.others), strict=True)
    known = [replace(each, answers_alone=passage.score == 2, weight=passage.weight) for each, passage in pairs]
    return RatedCase(gold=tuple(known[: len(case.gold)]), others=tuple(known[len(case.gold) :]))
