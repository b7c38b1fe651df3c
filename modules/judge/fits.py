"""Fits of judges, which ``judgetree eval calibrate`` saves in the home folder as JSON: curves and parameters."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from ..digests import json_digest
from ..errors import LoadingError, SettingsError
from ..reading.regular_files import MAX_SMALL_BYTES, read_regular
from ..settings import Settings
from ..storage.atomic import write_atomic
from ..storage.file_locks import private_lock
from ..storage.formats import FORMAT_KEY, check_format, format_of
from ..trust.private import private_folder
from .contract import AnyJudge, Verdict
from .wrapper import wrapped

FITS_NAME = "judge_fits.json"
_OF_A_FIT = ("kind", "model", "prompt", "embedder")
"""Keys of a judge's fingerprint that a fit is made for."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Maps the P(needed) that a judge gives to the share of chunks that are needed there.

    >>> Curve(method="platt", slope=1.0, offset=0.0)(0.8)
    0.8
    >>> Curve(method="isotonic", points=((0.25, 0.0), (0.75, 1.0)))(0.5)
    0.5
    """

    method: Literal["isotonic", "platt"]
    points: tuple[tuple[float, float], ...] = ()
    """isotonic: (given, calibrated), both rising; linear between, level beyond."""
    slope: float = 1.0
    offset: float = 0.0
    """platt: the calibrated log odds are slope * the given ones + offset."""

    def __call__(self, given: float) -> float:
        """Return the calibrated probability, in (0, 1)."""
        if self.method == "platt":
            return sigmoid(self.slope * logit(given) + self.offset)
        at = bisect_right(self.points, (given, math.inf))
        if at in (0, len(self.points)):
            return self.points[min(at, len(self.points) - 1)][1]
        (x, y), (right, top) = self.points[at - 1], self.points[at]
        return y + (top - y) * (given - x) / (right - x)


@dataclass(frozen=True, kw_only=True)
class JudgeFit:
    """What was fitted for one judge, and the data of the fit."""

    made_for: Mapping[str, str]
    """Kind, model, version of the prompts and embedder of the judge, as far as it has them."""
    curve: Curve | None
    """None for a judge that does not discriminate."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Thresholds and coefficients by name."""
    dataset: str
    """Spec of the data set."""
    dataset_digest: str
    """SHA-256 over the questions and their corpus."""
    questions: int
    passages: int
    """Number of judgements."""
    base_rate: float | None
    """Share of needed passages that the curve assumes: that of the best hits of the training questions; None for labels
    by hand, which are weighed."""
    target_recall: float
    auc: float
    """P(a needed passage is rated above one that is not), mean over questions, with the bounds of its 95 % interval."""
    auc_low: float | None
    auc_high: float | None
    created: str
    """Date and time of the fit, ISO 8601, UTC."""

    @property
    def digest(self) -> str:
        """Eight digits that change with the curve and the parameters."""
        content = [asdict(self.curve) if self.curve else None, dict(self.parameters)]
        return json_digest(content).hex()[:8]


_KEPT: TypeAdapter[list[JudgeFit]] = TypeAdapter(list[JudgeFit])


def rating_of(verdict: Verdict) -> float | None:
    """Return what a curve maps: P(needed), else half the score; None for a verdict without a score."""
    if verdict.p_needed is not None or verdict.score is None:
        return verdict.p_needed
    return verdict.score / 2


def logit(p: float) -> float:
    """Return the log odds of a probability, which is kept a millionth away from 0 and 1."""
    p = min(max(p, 1e-6), 1.0 - 1e-6)
    return math.log(p / (1.0 - p))


def sigmoid(odds: float) -> float:
    """Return the probability of log odds."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0.0 else 1.0 - 1.0 / (1.0 + math.exp(odds))


def made_for(judge: AnyJudge) -> dict[str, str]:
    """Return what a fit of this judge is made for."""
    return {key: value for key, value in judge.fingerprint().items() if key in _OF_A_FIT and value}


def fits_file(settings: Settings) -> Path:
    """Return the file of the fits, which may not exist."""
    return settings.home / FITS_NAME


def read_fits(file: Path) -> list[JudgeFit]:
    """Return the saved fits; none without a file.

    Raises:
        SettingsError: The file cannot be read, is damaged, or has another format.
    """
    try:
        document = json.loads(read_regular(file, max_bytes=MAX_SMALL_BYTES))
        written: Mapping[str, object] = document if isinstance(document, dict) else {}
        check_format(written.get(FORMAT_KEY), "judge-fits", where="It", error=SettingsError)
        return _KEPT.validate_python(written.get("fits"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, SettingsError, LoadingError) as error:
        fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise SettingsError(
            f"The fits of judges in {file} cannot be used: {fault} Correct the file, or delete it and run "
            "`judgetree eval calibrate` again."
        ) from error


def keep_fit(file: Path, fit: JudgeFit) -> None:
    """Save a fit in place of an earlier one for the same judge; processes that save at the same time take turns.

    Raises:
        SettingsError: The file cannot be read, is damaged, or has another format.
        WritingError: The file could not be written, and is unchanged.
    """
    private_folder(file.parent)
    with private_lock(file.with_suffix(".lock")):
        others = [each for each in read_fits(file) if dict(each.made_for) != dict(fit.made_for)]
        document = {FORMAT_KEY: format_of("judge-fits"), "fits": _KEPT.dump_python([*others, fit])}
        write_atomic(file, json.dumps(document, indent=2) + "\n", private=True)


def find_fit(wanted: Mapping[str, str], settings: Settings) -> JudgeFit | None:
    """Return the fit that was made for a judge; None without one.

    Raises:
        SettingsError: The file of the fits is damaged.
    """
    fits = read_fits(fits_file(settings))
    return next((fit for fit in fits if dict(fit.made_for) == dict(wanted)), None)


def require_fit(wanted: Mapping[str, str], settings: Settings) -> JudgeFit:
    """Return the fit that was made for a judge.

    Raises:
        SettingsError: There is none, or only for another model or embedder; the message names the differences.
    """
    if (found := find_fit(wanted, settings)) is not None:
        return found
    kind = wanted["kind"]
    others = [fit.made_for for fit in read_fits(fits_file(settings)) if fit.made_for.get("kind") == kind]
    differ = "; ".join(
        f"{key} {other.get(key, 'none')!r} there, {value!r} here"
        for other in others[-1:]
        for key, value in wanted.items()
        if other.get(key) != value
    )
    found_words = f"that in {fits_file(settings)} is of another judge ({differ})" if others else "there is none yet"
    raise SettingsError(
        f"The judge {kind!r} needs a fit, and {found_words}. Make one on training questions: "
        f"`judgetree eval calibrate --judge {kind} --dataset hotpotqa:hotpot_train.json`."
    )


def calibrated(judge: AnyJudge, fit: JudgeFit | None) -> AnyJudge:
    """Return a judge whose P(needed) goes through the curve of its fit; ``judge`` itself without one."""
    if fit is None or fit.curve is None:
        return judge
    curve, digest = fit.curve, fit.digest

    def change(verdict: Verdict) -> Verdict:
        rating = rating_of(verdict) if isinstance(verdict, Verdict) and not verdict.is_calibrated else None
        return verdict if rating is None else replace(verdict, p_needed=curve(rating), is_calibrated=True)

    return wrapped(judge, change=change, fingerprint=lambda: {**judge.fingerprint(), "fit": digest})
