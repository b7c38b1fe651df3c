"""Thresholds of the ``logprob`` judge: packaged, calibrated by the user, or set.

``judgetree eval calibrate`` saves fitted thresholds in the home folder, by model and version of the prompts.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from pydantic import TypeAdapter, ValidationError

from ..calls.messages import version_of_prompts
from ..calls.prompts import DEFAULT_PROMPTS, PromptGroup, Prompts
from ..errors import LoadingError, SettingsError
from ..reading.regular_files import MAX_SMALL_BYTES, read_regular
from ..settings import Settings
from ..storage.atomic import write_atomic
from ..storage.file_locks import private_lock
from ..storage.formats import FORMAT_KEY, check_format, format_of
from ..trust.private import private_folder
from .prompts import ALONE, NEEDED, alone_messages, needed_messages

logger = logging.getLogger(__name__)

THRESHOLDS_NAME = "judge_thresholds.json"

YES_NO_VERSION = version_of_prompts(needed_messages("q", "p"), alone_messages("q", "p"))
"""Version of the two yes-or-no prompts of the thresholds: another wording shifts the probabilities."""
_YES_NO = PromptGroup(prompts=(NEEDED, ALONE), version=YES_NO_VERSION)


@dataclass(frozen=True, kw_only=True)
class LogprobThresholds:
    """Least probabilities of yes, in [0, 1], for a score of 1 and of 2.

    >>> LogprobThresholds(needed=0.4, alone=0.9).alone
    0.9

    Raises:
        SettingsError: A threshold lies outside of [0, 1].
    """

    needed: float
    """t1: least P(yes) of "is the passage needed?" for a score of 1."""
    alone: float | None = None
    """t2: least P(yes) of "does it suffice alone?" for a score of 2; None skips the question and gives no 2."""

    def __post_init__(self) -> None:
        for name, value in (("needed", self.needed), ("alone", self.alone)):
            if value is not None and not 0.0 <= value <= 1.0:
                raise SettingsError(f"Judge threshold {name}={value!r} is not a probability. Allowed: 0 to 1.")


UNCALIBRATED = LogprobThresholds(needed=0.5)
"""Thresholds of models without a calibration."""

CALIBRATED: Mapping[str, LogprobThresholds] = {
    # Of 43 training questions 93 % of the gold paragraphs are at or above it: docs/decisions/0001-judges.md.
    "qwen2.5-coder-1.5b-instruct-q4_k_m": LogprobThresholds(needed=0.45),
}
"""Packaged thresholds by ``model_key``."""

CALIBRATED_PROMPT = "69a647b3"
"""The ``YES_NO_VERSION`` of ``CALIBRATED``; a test compares them."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Fitted thresholds of a model and the data of the fit."""

    thresholds: LogprobThresholds
    dataset: str
    """Spec of the data set."""
    dataset_digest: str
    """SHA-256 over the questions and their corpus."""
    questions: int
    passages: int
    """Number of judged passages."""
    target_recall: float
    """Share of the needed passages that t1 keeps."""
    auc: float
    """P(a needed passage is rated above one that is not), mean over questions."""
    auc_low: float | None
    """Lower bound of its 95 % interval."""
    auc_high: float | None
    created: str
    """Date and time of the fit, ISO 8601, UTC."""


_Kept = dict[str, dict[str, Calibration]]
_KEPT: TypeAdapter[_Kept] = TypeAdapter(_Kept)


def model_key(model: str) -> str:
    """Return the key of a model in the thresholds: its name or file in lower case, without folder and ``.gguf``.

    >>> model_key("/models/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf")
    'qwen2.5-coder-1.5b-instruct-q4_k_m'
    """
    return PurePath(model).name.casefold().removesuffix(".gguf")


def thresholds_for(model: str, prompts: Prompts = DEFAULT_PROMPTS) -> LogprobThresholds:
    """Return the packaged thresholds of a model by its name or file, else ``UNCALIBRATED``.

    They are those of judgetree's own yes-or-no prompts; others are uncalibrated.

    >>> thresholds_for("/models/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf").needed
    0.45
    >>> thresholds_for("gpt-4o-mini") == UNCALIBRATED
    True
    """
    is_own = prompts.version(_YES_NO) != YES_NO_VERSION
    return UNCALIBRATED if is_own else CALIBRATED.get(model_key(model), UNCALIBRATED)


def find_thresholds(model: str, settings: Settings, prompts: Prompts = DEFAULT_PROMPTS) -> LogprobThresholds:
    """Return a model's thresholds from the settings, else from its calibration, else ``thresholds_for``.

    A calibration counts only for the yes-or-no prompts that it was made with.

    Each of the two settings overrides its own threshold only.

    Raises:
        SettingsError: The calibration file is damaged.
    """
    calibration = _current_calibration(model, thresholds_file(settings), prompts.version(_YES_NO))
    found = calibration.thresholds if calibration is not None else thresholds_for(model, prompts)
    if settings.judge_needed_threshold is not None:
        found = replace(found, needed=settings.judge_needed_threshold)
    if settings.judge_alone_threshold is not None:
        found = replace(found, alone=settings.judge_alone_threshold)
    return found


def thresholds_file(settings: Settings) -> Path:
    """Return the file of the calibrations, which may not exist."""
    return settings.home / THRESHOLDS_NAME


def read_calibrations(file: Path) -> Mapping[str, Mapping[str, Calibration]]:
    """Return the calibrations by ``model_key`` and version of the yes-or-no prompts; empty without a file.

    Raises:
        SettingsError: The file cannot be read, is damaged, or has another format.
    """
    try:
        document = json.loads(read_regular(file, max_bytes=MAX_SMALL_BYTES))
        written: Mapping[str, object] = document if isinstance(document, dict) else {}
        check_format(written.get(FORMAT_KEY), "judge-thresholds", where="It", error=SettingsError)
        return _KEPT.validate_python(written.get("models"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, SettingsError, LoadingError) as error:
        fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise SettingsError(
            f"The judge's thresholds in {file} cannot be used: {fault} Correct the file, or delete it and run "
            "`judgetree eval calibrate` again."
        ) from error


def keep_calibration(file: Path, model: str, calibration: Calibration, prompts: Prompts = DEFAULT_PROMPTS) -> None:
    """Save a calibration for ``prompts``, in place of the model's earlier one for the same.

    A lock serialises processes that save at the same time.

    Raises:
        SettingsError: The file cannot be read, is damaged, or has another format.
        WritingError: The file could not be written, and is unchanged.
    """
    private_folder(file.parent)
    with private_lock(file.with_suffix(".lock")):
        kept = {name: dict(versions) for name, versions in read_calibrations(file).items()}
        kept.setdefault(model_key(model), {})[prompts.version(_YES_NO)] = calibration
        document = {FORMAT_KEY: format_of("judge-thresholds"), "models": _KEPT.dump_python(kept)}
        write_atomic(file, json.dumps(document, indent=2) + "\n", private=True)


def _current_calibration(model: str, file: Path, version: str) -> Calibration | None:
    versions = read_calibrations(file).get(model_key(model), {})
    if versions and version not in versions:
        logger.warning(
            "The thresholds of model %r in %s are of other prompts (%s, now %s) and are not used; "
            "run `judgetree eval calibrate` again",
            model,
            file,
            ", ".join(versions),
            version,
        )
    return versions.get(version)
