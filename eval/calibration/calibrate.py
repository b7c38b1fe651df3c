"""Calibration of a model as ``logprob`` judge: rate training passages, fit thresholds, save them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ...modules.background_loop import background_loop
from ...modules.calls.usage import CallMeter, CallRecord
from ...modules.errors import JudgetreeError, SettingsError, ungrouped
from ...modules.judge.logprob import LogprobJudge
from ...modules.judge.thresholds import Calibration, keep_calibration, thresholds_file
from ...modules.llm.cache import CachedLLM, CompletionCache
from ...modules.llm.endpoint import CallGate
from ...modules.llm.factory import create_llm
from ...modules.progress import StageProgress
from ...modules.prompts.reading import load_prompts
from ...modules.settings import Settings, load_settings
from ..datasets.questions import Dataset
from ..datasets.registry import DATASETS, load_dataset
from ..datasets.rows import select_questions
from ..metrics.intervals import MeanInterval
from ..rows.store import RunStore
from .data import ScoredCase, ScoredPassage, cases_of, refuse_held_back, refuse_reported
from .fit import MIN_ALONE, TARGET_RECALL, Fit, RatedCase, RatedPassage, fit_thresholds
from .labelled import labelled_data

_STAGE = "asking the judge"
_SPLIT_WITHIN = frozenset({"beir"})
"""Formats with several splits per path; other formats have one file per split, and a split is only a label."""


@dataclass(frozen=True, kw_only=True)
class CalibrationPlan:
    """The data to calibrate on: a data set, or labels by hand.

    Raises:
        SettingsError: ``target_recall`` is not in (0, 1], or there is not either a data set or labels.
    """

    dataset: str = ""
    """Data set spec, ``NAME:PATH``; ``""`` for labels."""
    labels: tuple[Path, ...] = ()
    """Run directories with labels by hand; empty for a data set."""
    split: str | None = None
    """"train" if the file's name does not say so; see ``data.refuse_held_back``."""
    limit: int | None = None
    """Number of questions of the data set, from the first; None for all."""
    disjoint_from: tuple[Path, ...] = ()
    """Run directories that must not share a question with the data."""
    target_recall: float = TARGET_RECALL
    """Share of the gold passages that the judge should keep, in (0, 1]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.target_recall <= 1.0:
            raise SettingsError(
                f"target_recall={self.target_recall!r} is not a share of passages. Allowed: above 0, up to 1."
            )
        if bool(self.dataset) == bool(self.labels):
            raise SettingsError("Calibrate on one of them: a data set (--dataset), or labels by hand (--labels RUN).")

    @property
    def source(self) -> str:
        """Name of the data."""
        return self.dataset or f"labels:{','.join(map(str, self.labels))}"


@dataclass(frozen=True, kw_only=True)
class CalibrationOutcome:
    """The result of a calibration."""

    model: str
    plan: CalibrationPlan
    fit: Fit
    paid_calls: int
    cached_calls: int
    file: Path | None
    """File with the thresholds; None if the judge does not discriminate (``Fit.discriminates``)."""

    def to_text(self) -> str:
        """Describe the outcome in some lines of text."""
        fit, thresholds = self.fit, self.fit.thresholds
        alone = f"{thresholds.alone:.3f}" if thresholds.alone is not None else f"none: {fit.without_alone}"
        shares = ", ".join(f"{name}: {share:.0%}" for name, share in fit.shares.items() if share)
        return "\n".join(
            [
                f"{self.model} as logprob judge on {self.plan.source}: {fit.questions} questions, {fit.passages} "
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
        """Return the outcome as plain data for ``json.dumps``."""
        return {
            "model": self.model,
            "dataset": self.plan.source,
            **asdict(self.fit),
            "findings": list(self.fit.findings),
            "paid_calls": self.paid_calls,
            "cached_calls": self.cached_calls,
            "file": str(self.file) if self.file else None,
        }


def calibrate(
    plan: CalibrationPlan, *, settings: Settings | None = None, on_progress: StageProgress | None = None
) -> CalibrationOutcome:
    """Fit the thresholds of the settings' judge model and prompts, and save them where the judge reads them.

    Makes one call of one token for each passage, about four per question of a data set, and as many again if enough
    passages answer alone for t2. The completion cache keeps all calls, so after Ctrl-C or a failure the same plan
    continues without paying twice.

    Args:
        plan: The data to calibrate on.
        settings: None reads environment and ``.env``.
        on_progress: Called on judgetree's background thread after each passage, and while a local model is loaded.

    Raises:
        UserError: The data set is held back for reporting or too small, the model returns no log probabilities, or
            settings or key are wrong.
        ModelCallError: The endpoint failed after its last attempt.
    """
    settings, report = settings or load_settings(), on_progress or (lambda done, total, stage: None)
    prompts = load_prompts(settings.prompts)
    cases, digest = _training_cases(plan)
    llm = create_llm(settings.judge_spec, settings, CallGate(settings.max_concurrency), on_progress=on_progress)
    with CompletionCache(settings.home / "completions.sqlite") as cache:
        judge = LogprobJudge(CachedLLM(llm, cache, endpoint=llm.endpoint), prompts=prompts)
        rating = _Rating(judge, cases, report)
        rated = background_loop().run(rating.run(settings.max_concurrency))
    fit = fit_thresholds(rated, target_recall=plan.target_recall)
    file = thresholds_file(settings) if fit.discriminates else None
    if file is not None:
        keep_calibration(file, llm.model, _calibration(plan, digest, fit), prompts)
    return CalibrationOutcome(
        model=llm.model,
        plan=plan,
        fit=fit,
        paid_calls=sum(not record["cached"] for record in rating.records),
        cached_calls=sum(record["cached"] for record in rating.records),
        file=file,
    )


def _training_cases(plan: CalibrationPlan) -> tuple[Sequence[ScoredCase], str]:
    """Return the passages to rate, and a digest of the data."""
    if plan.labels:
        labelled = labelled_data(plan.labels, split=plan.split)
        for folder in plan.disjoint_from:
            refuse_reported(labelled.questions, labelled.digest, RunStore(folder))
        return labelled.cases, labelled.digest
    dataset = _training_questions(plan)
    return [case.scored() for case in cases_of(dataset)], dataset.digest


def _training_questions(plan: CalibrationPlan) -> Dataset:
    name, _, path = plan.dataset.partition(":")
    if name in DATASETS:  # load_dataset reports an unknown name
        refuse_held_back(Path(path).name, plan.split)
    whole = load_dataset(plan.dataset, split=plan.split if name in _SPLIT_WITHIN else None)
    dataset = select_questions(whole, limit=plan.limit)
    for folder in plan.disjoint_from:
        refuse_reported(dataset, whole.digest, RunStore(folder))
    return dataset


def _calibration(plan: CalibrationPlan, digest: str, fit: Fit) -> Calibration:
    within = fit.auc_within
    return Calibration(
        thresholds=fit.thresholds,
        dataset=plan.source,
        dataset_digest=digest,
        questions=fit.questions,
        passages=fit.passages,
        target_recall=plan.target_recall,
        auc=fit.auc_over if within is None else within.mean,
        auc_low=None if within is None else within.low,
        auc_high=None if within is None else within.high,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


class _Rating:
    """Rates every passage; those of a question run in sequence, since their prompts share a prefix."""

    def __init__(self, judge: LogprobJudge, cases: Sequence[ScoredCase], report: StageProgress) -> None:
        self._judge = judge
        self._cases = cases
        self._passages = [(case.query, passage) for case in cases for passage in (*case.gold, *case.others)]
        self._rated: dict[int, RatedPassage] = {}
        self._asks_alone = sum(passage.score == 2 for _, passage in self._passages) >= MIN_ALONE
        self._report = report
        self.records: list[CallRecord] = []

    async def run(self, at_once: int) -> list[RatedCase]:
        """Rate all passages with ``at_once`` workers; the result is in the order of the cases."""
        self._report(0, len(self._passages), _STAGE)
        left = iter(enumerate(self._passages))
        with ungrouped(JudgetreeError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(self._passages))):
                    group.create_task(self._work_through(left))
        ratings = iter([self._rated[at] for at in range(len(self._passages))])
        return [
            RatedCase(gold=tuple(islice(ratings, len(case.gold))), others=tuple(islice(ratings, len(case.others))))
            for case in self._cases
        ]

    async def _work_through(self, left: Iterator[tuple[int, tuple[str, ScoredPassage]]]) -> None:
        for at, (question, passage) in left:
            meter = CallMeter(node="calibrate")  # one per call: the cache reads the meter's last record
            needed, alone = await self._judge.probabilities(question, passage.text, meter=meter, alone=self._asks_alone)
            self.records += meter.records
            self._rated[at] = RatedPassage(
                needed=needed, alone=alone, answers_alone=passage.score == 2, weight=passage.weight
            )
            self._report(len(self._rated), len(self._passages), _STAGE)


def _shown(interval: MeanInterval | None, style: str) -> str:
    if interval is None:
        return "an unknown share"
    if interval.low is None or interval.high is None:
        return format(interval.mean, style)
    return f"{interval.mean:{style}} ({interval.low:{style}} to {interval.high:{style}})"
