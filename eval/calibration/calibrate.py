"""Calibrates a model as ``logprob`` judge: asks it about training passages, fits its thresholds, keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ...modules.background_loop import background_loop
from ...modules.calls.usage import CallMeter, CallRecord
from ...modules.errors import JudgetreeError, ungrouped
from ...modules.judge.logprob import LogprobJudge
from ...modules.judge.thresholds import Calibration, keep_calibration, thresholds_file
from ...modules.llm.cache import CachedLLM, CompletionCache
from ...modules.llm.endpoint import CallGate, ChatLLM
from ...modules.llm.factory import create_llm
from ...modules.progress import StageProgress
from ...modules.settings import Settings, load_settings
from ..datasets.questions import Dataset
from ..datasets.registry import DATASETS, load_dataset
from ..datasets.rows import select_questions
from ..metrics.intervals import MeanInterval
from ..rows.store import RunStore
from .data import Case, cases_of, refuse_held_back, refuse_reported
from .fit import MIN_SINGLE_HOP, TARGET_RECALL, Fit, Probabilities, RatedCase, check_target_recall, fit_thresholds

_STAGE = "asking the judge"
_SPLIT_WITHIN = frozenset({"beir"})
"""Sets that hold several splits; of the others each file is one, and a split merely says which."""


@dataclass(frozen=True, kw_only=True)
class CalibrationPlan:
    """What to calibrate on.

    Raises:
        SettingsError: ``target_recall`` is no share.
    """

    dataset: str
    """``NAME:PATH``."""
    split: str | None = None
    """"train", where the file's name does not say so; see ``data.refuse_held_back``."""
    limit: int | None = None
    """The first so many questions."""
    disjoint_from: tuple[Path, ...] = ()
    """Run directories whose questions must not be among them."""
    target_recall: float = TARGET_RECALL
    """Share of the gold passages that the judge is to keep, in (0, 1]."""

    def __post_init__(self) -> None:
        check_target_recall(self.target_recall)


@dataclass(frozen=True, kw_only=True)
class CalibrationOutcome:
    """What came of it."""

    model: str
    plan: CalibrationPlan
    fit: Fit
    paid_calls: int
    cached_calls: int
    file: Path | None
    """Where the thresholds are kept from now on; None if they were not worth it (``Fit.discriminates``)."""

    def to_text(self) -> str:
        """Some lines to read."""
        fit, thresholds = self.fit, self.fit.thresholds
        alone = f"{thresholds.alone:.3f}" if thresholds.alone is not None else f"none: {fit.without_alone}"
        shares = ", ".join(f"{name}: {share:.0%}" for name, share in fit.shares.items() if share)
        return "\n".join(
            [
                f"{self.model} as logprob judge on {self.plan.dataset}: {fit.questions} questions, {fit.passages} "
                f"passages; {self.paid_calls} calls paid, {self.cached_calls} from the cache",
                f"AUC within the question {_shown(fit.auc_within, '.3f')}, over all {fit.auc_over:.3f}",
                f"t1, needed: {thresholds.needed:.3f}, for {fit.target_recall:.0%} of the gold passages",
                f"t2, alone: {alone}",
                f"On questions held out of the fit: keeps {_shown(fit.gold_kept, '.1%')} of the gold passages and "
                f"{_shown(fit.others_kept, '.1%')} of the likeliest others; verdicts {shares}",
                *fit.findings,
                f"Written: {self.file}" if self.file else "Nothing was written.",
            ]
        )

    def to_document(self) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes."""
        return {
            "model": self.model,
            "dataset": self.plan.dataset,
            **asdict(self.fit),
            "findings": list(self.fit.findings),
            "paid_calls": self.paid_calls,
            "cached_calls": self.cached_calls,
            "file": str(self.file) if self.file else None,
        }


def calibrate(
    plan: CalibrationPlan, *, settings: Settings | None = None, on_progress: StageProgress | None = None
) -> CalibrationOutcome:
    """Fit the thresholds of the settings' judge model and keep them where its judge finds them.

    Costs a call of one token for each passage, about four a question, and as many again where there are enough
    single-hop questions for t2. Calls go through the completion cache: after Ctrl-C, or a failure, the same plan goes
    on, and what was paid once is not paid again.

    Args:
        plan: What to calibrate on.
        settings: None reads environment and ``.env``.
        on_progress: Told how many passages are judged, on judgetree's own thread, and of a local model being made
            ready.

    Raises:
        UserError: Something to mend: a data set that is kept for reporting or too small, a model without log
            probabilities, settings, key.
        ModelCallError: The endpoint failed after its last attempt.
    """
    settings, tell = settings or load_settings(), on_progress or _ignore_progress
    dataset = _training_questions(plan)
    cases = cases_of(dataset)
    llm = create_llm(settings.judge_spec, settings, CallGate(settings.max_concurrency), on_progress=on_progress)
    with CompletionCache(settings.home / "completions.sqlite") as cache:
        rating = _Rating(CachedLLM(llm, cache, endpoint=llm.endpoint), cases, tell)
        rated = background_loop().run(rating.run(settings.max_concurrency))
    fit = fit_thresholds(rated, target_recall=plan.target_recall)
    file = thresholds_file(settings) if fit.discriminates else None
    if file is not None:
        keep_calibration(file, llm.model, _calibration(plan, dataset, fit))
    return CalibrationOutcome(
        model=llm.model,
        plan=plan,
        fit=fit,
        paid_calls=sum(not record["cached"] for record in rating.records),
        cached_calls=sum(record["cached"] for record in rating.records),
        file=file,
    )


def _training_questions(plan: CalibrationPlan) -> Dataset:
    name, _, path = plan.dataset.partition(":")
    if name in DATASETS:  # else loading says what is wrong
        refuse_held_back(Path(path).name, plan.split)
    whole = load_dataset(plan.dataset, split=plan.split if name in _SPLIT_WITHIN else None)
    dataset = select_questions(whole, limit=plan.limit)
    for folder in plan.disjoint_from:
        refuse_reported(dataset, whole.digest, RunStore(folder))
    return dataset


def _calibration(plan: CalibrationPlan, dataset: Dataset, fit: Fit) -> Calibration:
    return Calibration(
        thresholds=fit.thresholds,
        dataset=plan.dataset,
        dataset_digest=dataset.digest,
        questions=fit.questions,
        passages=fit.passages,
        target_recall=plan.target_recall,
        auc=fit.auc_within.mean,
        auc_low=fit.auc_within.low,
        auc_high=fit.auc_within.high,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


class _Rating:
    """Asks about every passage, a question's passages after each other, since their prompts share the beginning."""

    def __init__(self, llm: ChatLLM, cases: Sequence[Case], tell: StageProgress) -> None:
        self._judge = LogprobJudge(llm)
        self._cases = cases
        self._passages = [(case.question, passage) for case in cases for passage in (*case.gold, *case.distractors)]
        self._rated: dict[int, Probabilities] = {}
        self._asks_alone = sum(case.is_single_hop for case in cases) >= MIN_SINGLE_HOP
        self._tell = tell
        self.records: list[CallRecord] = []

    async def run(self, at_once: int) -> list[RatedCase]:
        """The cases in their order, as the judge rates them."""
        self._tell(0, len(self._passages), _STAGE)
        left = iter(enumerate(self._passages))
        with ungrouped(JudgetreeError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(self._passages))):
                    group.create_task(self._work_through(left))
        ratings = iter([self._rated[at] for at in range(len(self._passages))])
        return [
            RatedCase(
                gold=tuple(islice(ratings, len(case.gold))),
                others=tuple(islice(ratings, len(case.distractors))),
                is_single_hop=case.is_single_hop,
            )
            for case in self._cases
        ]

    async def _work_through(self, left: Iterator[tuple[int, tuple[str, str]]]) -> None:
        for at, (question, passage) in left:
            meter = CallMeter(node="calibrate")  # one each: the cache takes a meter's last record for its call's
            needed, alone = await self._judge.probabilities(question, passage, meter=meter, alone=self._asks_alone)
            self.records += meter.records
            self._rated[at] = Probabilities(needed=needed, alone=alone)
            self._tell(len(self._rated), len(self._passages), _STAGE)


def _shown(interval: MeanInterval | None, style: str) -> str:
    if interval is None:
        return "an unknown share"
    if interval.low is None or interval.high is None:
        return format(interval.mean, style)
    return f"{interval.mean:{style}} ({interval.low:{style}} to {interval.high:{style}})"


def _ignore_progress(done: int, total: int, stage: str) -> None:
    pass
