"""The fit of each kind of judge, from the ratings of training passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...modules.calls.prompts import Prompts
from ...modules.calls.usage import CallRecord
from ...modules.judge.contract import AnyJudge
from ...modules.judge.embedding import Similarity
from ...modules.judge.factory import create_judge, judge_embedder
from ...modules.judge.fits import made_for
from ...modules.judge.fused import THRESHOLD
from ...modules.judge.logprob import LogprobJudge
from ...modules.llm.contract import ChatLLM
from ...modules.progress import StageProgress
from ...modules.settings import Settings
from .data import ScoredCase
from .fit import MIN_ALONE, Fit, RatedCase, alone_threshold, fit_thresholds
from .logistic import fit_weights, held_out
from .rating import FeatureRating, Rater, Rating, by_probability, by_similarity, by_verdict

FittedKind = Literal["generated", "batched", "logprob", "embedding", "cascade", "fused"]
"""Judges that are fitted."""


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """The cases and the services of a fit."""

    cases: Sequence[ScoredCase]
    llm: ChatLLM
    settings: Settings
    prompts: Prompts
    report: StageProgress
    target_recall: float

    def judge(self, kind: FittedKind) -> AnyJudge:
        """Return the judge of a kind as it is without a fit."""
        settings, prompts = self.settings, self.prompts
        return create_judge(kind, self.llm, spec=settings.judge_spec, settings=settings, prompts=prompts, fitted=False)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The fit of one judge."""

    fit: Fit
    made_for: Mapping[str, str]
    parameters: Mapping[str, float]
    rated: Sequence[RatedCase]
    """The judge's P(needed) of each passage; for ``fused``, by weights that were fitted without the question."""
    llm_calls: Sequence[CallRecord] = field(default=())


async def fit_judge(kind: FittedKind, given: Fitting) -> Fitted:
    """Rate all passages by the judge, and fit it; for ``cascade`` the ratings are similarities."""
    rater = _rater(kind, given)
    rating = Rating(cases=given.cases, rate=rater, report=given.report)
    rated = await rating.run(given.settings.max_concurrency)
    calls = [record for record in rating.records if record["kind"] == "chat"]
    parameters: dict[str, float] = {}
    if isinstance(rater, FeatureRating):
        features = [rater.features[case.query] for case in given.cases]
        parameters = fit_weights(given.cases, features)
        rated = held_out(given.cases, features)
    fit = fit_thresholds(rated, target_recall=given.target_recall)
    if kind == "fused":
        parameters[THRESHOLD] = fit.thresholds.needed
    elif kind == "embedding":
        alone = fit.thresholds.alone
        parameters = {"needed": fit.thresholds.needed, **({} if alone is None else {"alone": alone})}
    elif kind == "cascade":
        parameters = _clear(fit, rated)
    return Fitted(fit=fit, made_for=made_for(given.judge(kind)), parameters=parameters, rated=rated, llm_calls=calls)


def _rater(kind: FittedKind, given: Fitting) -> Rater:
    if kind in ("generated", "batched"):
        return by_verdict(given.judge(kind))
    judge = LogprobJudge(given.llm, prompts=given.prompts)
    if kind == "logprob":
        answering_alone = sum(passage.score == 2 for case in given.cases for passage in case.gold)
        return by_probability(judge, alone=answering_alone >= MIN_ALONE)
    similarity = Similarity(judge_embedder(given.settings))
    return FeatureRating(judge=judge, similarity=similarity) if kind == "fused" else by_similarity(similarity)


def _clear(fit: Fit, rated: Sequence[RatedCase]) -> dict[str, float]:
    """Return the similarities below which a chunk is a 0, and from which on it is a 1, without a model.

    The lower one keeps the wanted share of the gold passages, and at most one in twenty others reaches the upper one.
    """
    gold = [each.needed for case in rated for each in case.gold if each.needed is not None]
    others = [each.needed for case in rated for each in case.others if each.needed is not None]
    high = alone_threshold(gold, others)
    low = fit.thresholds.needed
    return {"low": low, "high": max(low, 1.0 if high is None else high)}
