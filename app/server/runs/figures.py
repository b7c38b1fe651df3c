"""Headline figures of a run: how far it is, and the means of its systems with intervals."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

from ....evaluation.rows.store import RunStore
from ....modules.settings import Settings
from .folder import FoundRun
from .plain import plain

HEADLINE = ("em", "f1", "llm_calls", "cost_usd", "seconds")
"""Metrics of the list; those that a run lacks are left out."""

SUMMARY_EXAMPLE: JsonDict = {
    "name": "hotpotqa",
    "dataset": "hotpotqa:dev.json",
    "systems": ["naive", "judge"],
    "questions": 100,
    "answered": 199,
    "failed": 1,
    "missing": 0,
    "metrics": [{"system": "judge", "metric": "em", "mean": 0.52, "low": 0.42, "high": 0.62, "n": 100}],
    "started": "2026-11-02T09:15:00+00:00",
    "finished": "2026-11-02T11:40:12+00:00",
    "problem": "",
}


class Mean(BaseModel):
    """The mean of a metric over a system's questions, with its 95 % interval."""

    system: str
    metric: str
    """Such as ``em`` and ``f1`` in [0, 1]; ``llm_calls``, ``cost_usd`` and ``seconds`` a question, cached or not."""
    mean: float | None
    """None if it is unknown, as is a cost without a price."""
    low: float | None
    """Lower end of the interval; None if there is none."""
    high: float | None
    n: int
    """Questions."""


class ListedRun(BaseModel):
    """A run and its headline figures."""

    model_config = ConfigDict(json_schema_extra={"example": SUMMARY_EXAMPLE})

    name: str
    """Name of the run's directory."""
    dataset: str = ""
    systems: list[str] = []
    questions: int = 0
    """Different questions with an answer or a failure."""
    answered: int = 0
    """Answers of all systems and repeats."""
    failed: int = 0
    """Questions that failed, by system and repeat."""
    missing: int = 0
    """Answers that the run still lacks."""
    metrics: list[Mean] = []
    started: str = ""
    finished: str | None = None
    """Time of the last answer; None while answers are missing."""
    problem: str = ""
    """Why the run cannot be read; empty if it can. Its figures are empty then."""


def summarize(run: FoundRun, settings: Settings) -> ListedRun:
    """Score a run and return its headline figures.

    Raises:
        UserError: The run or its data set cannot be read.
    """
    from ....evaluation.reports.frames import records_of, system_frame
    from ....evaluation.reports.loaded_run import load_run, missing_answers, score_rows

    loaded = load_run(run.path, settings)
    frame = score_rows(loaded)
    metrics = [name for name in HEADLINE if name in frame]
    means = system_frame(frame, metrics, seed=loaded.experiment.seed)
    failed, missing = sum(row.status == "failed" for row in loaded.rows), missing_answers(loaded)
    document = {
        "name": run.name,
        "dataset": loaded.experiment.dataset,
        "systems": [*dict.fromkeys(row.system for row in loaded.rows)],
        "questions": len({row.question_id for row in loaded.rows}),
        "answered": len(loaded.rows) - failed,
        "failed": failed,
        "missing": missing,
        "metrics": records_of(means),
        "started": run.started,
        "finished": None if missing else _last_answer(run),
    }
    return ListedRun.model_validate(plain(document))


def _last_answer(run: FoundRun) -> str:
    seconds = RunStore(run.path).rows_file.stat().st_mtime
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
