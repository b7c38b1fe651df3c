"""Calibration of a judge: rate training passages, fit thresholds and the curve of P(needed), save them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from ...modules.background_loop import background_loop
from ...modules.errors import SettingsError
from ...modules.judge.fits import JudgeFit, fits_file, keep_fit
from ...modules.judge.thresholds import Calibration, keep_calibration, thresholds_file
from ...modules.llm.cache import CachedLLM, CompletionCache
from ...modules.llm.call_gate import CallGate
from ...modules.llm.factory import create_llm
from ...modules.llm.tuned import bounded
from ...modules.progress import StageProgress
from ...modules.prompts.reading import load_prompts
from ...modules.settings import Settings, load_settings
from ..datasets.questions import Dataset
from ..datasets.registry import DATASETS, OWN_QUESTIONS, load_dataset
from ..datasets.rows import select_questions
from ..metrics.intervals import MeanInterval
from ..rows.store import RunStore
from .curves import CurveFit, curve_fit
from .data import ScoredCase, cases_of, check_not_held_back, check_not_reported, found_share
from .fit import TARGET_RECALL, Fit
from .fitting import Fitted, FittedKind, Fitting, fit_judge
from .labelled import labelled_data

_SPLIT_WITHIN = frozenset({"beir"})
"""Formats with several splits per path; other formats have one file per split, and a split is only a label."""


@dataclass(frozen=True, kw_only=True)
class CalibrationPlan:
    """The data to calibrate on: a data set, or labels by hand.

    Raises:
        SettingsError: ``target_recall`` is not in (0, 1], or there is not either a data set or labels, or the data
            set is a file of questions.
    """

    dataset: str = ""
    """Data set spec, ``NAME:PATH``; ``""`` for labels."""
    labels: tuple[Path, ...] = ()
    """Run directories with labels by hand; empty for a data set."""
    judge: FittedKind = "logprob"
    """Judge to fit."""
    split: str | None = None
    """"train" if the file's name does not say so; see ``data.check_not_held_back``."""
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
        if self.dataset.partition(":")[0] == OWN_QUESTIONS:
            raise SettingsError(
                f"{self.dataset} is a file of questions, which has no documents to judge. Calibrate on a data set that "
                "has them, or on labels by hand: --labels RUN."
            )
        if self.judge not in get_args(FittedKind):
            raise SettingsError(f"The judge {self.judge!r} has no fit. Allowed: {', '.join(get_args(FittedKind))}.")

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
    parameters: Mapping[str, float]
    """Thresholds and weights of the judge by name."""
    curve: CurveFit | None
    """None without judgements of both kinds."""
    paid_calls: int
    cached_calls: int
    file: Path | None
    """File with the thresholds; None if the judge does not discriminate (``Fit.discriminates``)."""

    def to_text(self) -> str:
        """Describe the outcome in some lines of text."""
        fit = self.fit
        return "\n".join(
            [
                f"{self.model} as {self.plan.judge} judge on {self.plan.source}: {fit.questions} questions, "
                f"{fit.passages} passages; {self.paid_calls} calls paid, {self.cached_calls} from the cache",
                f"AUC within the question {_shown(fit.auc_within, '.3f')}, over all {fit.auc_over:.3f}",
                *self._thresholds(),
                *self._reliability(),
                *fit.findings,
                f"Written: {self.file}" if self.file else "Nothing was written.",
            ]
        )

    def _thresholds(self) -> Iterator[str]:
        fit, thresholds = self.fit, self.fit.thresholds
        if self.plan.judge in ("logprob", "embedding"):
            alone = f"{thresholds.alone:.3f}" if thresholds.alone is not None else f"none: {fit.without_alone}"
            yield f"t1, needed: {thresholds.needed:.3f}, for {fit.target_recall:.0%} of the gold passages"
            yield f"t2, alone: {alone}"
        elif self.parameters:
            yield ", ".join(f"{name} {value:.3f}" for name, value in self.parameters.items())
        if self.plan.judge in ("logprob", "embedding", "fused"):
            shares = ", ".join(f"{name}: {share:.0%}" for name, share in fit.shares.items() if share)
            yield (
                f"On questions held out of the fit: keeps {_shown(fit.gold_kept, '.1%')} of the gold passages and "
                f"{_shown(fit.others_kept, '.1%')} of the likeliest others; verdicts {shares}"
            )

    def _reliability(self) -> Iterator[str]:
        if self.curve is None:
            return
        method = "isotonic regression" if self.curve.curve.method == "isotonic" else "Platt's sigmoid"
        yield (
            f"P(needed) by {method}; expected calibration error {self.curve.error_before:.3f} before, "
            f"{self.curve.error_after:.3f} after, on questions held out of the fit"
        )
        for when, bins in (("before", self.curve.before), ("after", self.curve.after)):
            yield f"Reliability {when}: " + "; ".join(
                f"{each.predicted:.2f} said, {each.observed:.2f} gold ({each.chunks})" for each in bins
            )

    def to_document(self) -> dict[str, object]:
        """Return the outcome as plain data for ``json.dumps``."""
        return {
            "model": self.model,
            "judge": self.plan.judge,
            "dataset": self.plan.source,
            **asdict(self.fit),
            "parameters": dict(self.parameters),
            "curve": asdict(self.curve) if self.curve else None,
            "findings": list(self.fit.findings),
            "paid_calls": self.paid_calls,
            "cached_calls": self.cached_calls,
            "file": str(self.file) if self.file else None,
        }


def calibrate(
    plan: CalibrationPlan, *, settings: Settings | None = None, on_progress: StageProgress | None = None
) -> CalibrationOutcome:
    """Fit thresholds and curve of a judge with the settings' model and prompts, and save them where it reads them.

    ``logprob`` and ``fused`` make one call of one token for each passage, about four per question of a data set,
    ``logprob`` as many again if enough passages answer alone for t2; ``batched`` makes one call per question,
    ``generated`` one per passage, and ``embedding`` and ``cascade`` none. The completion cache keeps all calls, so
    after Ctrl-C or a failure the same plan continues without paying twice.

    Args:
        plan: The judge, and the data to calibrate on.
        settings: None reads environment and ``.env``.
        on_progress: Called on judgetree's background thread after each question, and while a local model is loaded.

    Raises:
        UserError: The data set is held back for reporting or too small, the model returns no log probabilities, or
            settings or key are wrong.
        ModelCallError: The endpoint failed after its last attempt.
    """
    settings, report = settings or load_settings(), on_progress or (lambda done, total, stage: None)
    prompts = load_prompts(settings.prompts)
    data = _training(plan)
    llm = create_llm(settings.judge_spec, settings, CallGate(settings.max_concurrency), on_progress=on_progress)
    with CompletionCache(settings.home / "completions.sqlite") as cache:
        given = Fitting(
            cases=data.cases,
            llm=bounded(CachedLLM(llm, cache, endpoint=llm.endpoint), settings.llm_max_tokens),
            settings=settings,
            prompts=prompts,
            report=report,
            target_recall=plan.target_recall,
        )
        fitted = background_loop().run(fit_judge(plan.judge, given))
    fit = fitted.fit
    curve = curve_fit(fitted.rated, base_rate=data.base_rate)
    file = None
    if fit.discriminates:
        calibration = _calibration(plan, data.digest, fit)
        if plan.judge == "logprob":
            keep_calibration(thresholds_file(settings), llm.model, calibration, prompts)
        keep_fit(fits_file(settings), _judge_fit(fitted, calibration, curve, data.base_rate))
        file = thresholds_file(settings) if plan.judge == "logprob" else fits_file(settings)
    return CalibrationOutcome(
        model=llm.model,
        plan=plan,
        fit=fit,
        parameters=fitted.parameters,
        curve=curve,
        paid_calls=sum(not record["cached"] for record in fitted.llm_calls),
        cached_calls=sum(record["cached"] for record in fitted.llm_calls),
        file=file,
    )


@dataclass(frozen=True, kw_only=True)
class _Training:
    """Passages to rate."""

    cases: Sequence[ScoredCase]
    digest: str
    """SHA-256 over the data."""
    base_rate: float | None
    """Share of gold that the curve assumes; None for passages that weigh as many as they stand for."""


def _training(plan: CalibrationPlan) -> _Training:
    if plan.labels:
        labelled = labelled_data(plan.labels, split=plan.split)
        for folder in plan.disjoint_from:
            check_not_reported(labelled.questions, labelled.digest, RunStore(folder))
        return _Training(cases=labelled.cases, digest=labelled.digest, base_rate=None)
    dataset = _training_questions(plan)
    cases = [case.scored() for case in cases_of(dataset)]
    return _Training(cases=cases, digest=dataset.digest, base_rate=found_share(dataset))


def _judge_fit(fitted: Fitted, calibration: Calibration, curve: CurveFit | None, base_rate: float | None) -> JudgeFit:
    kept = {name: getattr(calibration, name) for name in ("dataset", "dataset_digest", "questions", "passages")}
    measured = {name: getattr(calibration, name) for name in ("target_recall", "auc", "auc_low", "auc_high", "created")}
    return JudgeFit(
        made_for=fitted.made_for,
        curve=curve.curve if curve else None,
        parameters=fitted.parameters,
        base_rate=base_rate,
        **kept,
        **measured,
    )


def _training_questions(plan: CalibrationPlan) -> Dataset:
    name, _, path = plan.dataset.partition(":")
    if name in DATASETS:  # load_dataset reports an unknown name
        check_not_held_back(Path(path).name, plan.split)
    whole = load_dataset(plan.dataset, split=plan.split if name in _SPLIT_WITHIN else None)
    dataset = select_questions(whole, limit=plan.limit)
    for folder in plan.disjoint_from:
        check_not_reported(dataset, whole.digest, RunStore(folder))
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


def _shown(interval: MeanInterval | None, style: str) -> str:
    if interval is None:
        return "an unknown share"
    if interval.low is None or interval.high is None:
        return format(interval.mean, style)
    return f"{interval.mean:{style}} ({interval.low:{style}} to {interval.high:{style}})"
