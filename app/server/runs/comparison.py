"""``GET /v1/runs/compare``: systems of one run or of two, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

from .folder import RunsBy, RunsFolder
from .plain import plain

router = APIRouter(prefix="/v1/runs", tags=["runs"])

_EXAMPLE: JsonDict = {
    "verdict": "judge is better than naive by 8.0 points of em (95 % interval 2.1 to 13.9; …).",
    "a": "judge",
    "b": "naive",
    "metric": "em",
    "mean_a": 0.52,
    "mean_b": 0.44,
    "difference": 0.08,
    "low": 0.021,
    "high": 0.139,
    "test": "mcnemar",
    "p_value": 0.006,
    "adjusted_p_value": 0.012,
    "family": "primary",
    "comparisons": 2,
    "n": 100,
    "left_out": 0,
    "is_shown": True,
    "usable_difference": None,
    "usable_n": 100,
}


class RunComparison(BaseModel):
    """Two systems by one metric, on the questions that both answered."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    verdict: str
    """The outcome in a sentence or two."""
    a: str
    """A system; ``RUN:SYSTEM`` where two runs are compared."""
    b: str
    metric: str
    mean_a: float
    mean_b: float
    difference: float
    """Mean of ``a`` less that of ``b``."""
    low: float | None
    """Lower end of the 95 % interval of the difference; None without one."""
    high: float | None
    test: str
    """``mcnemar`` or ``permutation``."""
    p_value: float
    adjusted_p_value: float | None
    """After Holm's correction for all ``comparisons``."""
    family: Literal["", "primary", "secondary"]
    """``primary``: by the primary outcome; ``secondary``: by any other. Each family is corrected by itself."""
    comparisons: int
    n: int
    """Questions."""
    left_out: int
    """Questions of which only one of the two has a row that counts."""
    is_shown: bool
    """Whether test and interval show a difference."""
    usable_difference: float | None
    """The same on the ``usable_n`` questions with answers whose replies could all be used; None where all are such, or
    too few."""
    usable_n: int


class RunComparisons(BaseModel):
    """All comparisons made together."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_EXAMPLE]}})

    data: list[RunComparison]


RowChoiceName = Literal["complete", "usable", "answered", "all"]


@router.get("/compare")
async def compare(
    runs: RunsBy,
    a: Annotated[str, Query(min_length=1, max_length=255, description="A run.")],
    b: Annotated[
        str, Query(max_length=255, description="Another one; without, the systems of the first are compared.")
    ] = "",
    baseline: Annotated[
        str, Query(max_length=200, description="System that the others are compared with, or all for every pair.")
    ] = "",
    rows: Annotated[RowChoiceName, Query(description="Answers that count, as for `eval compare`.")] = "complete",
    force: Annotated[bool, Query(description="Compare runs that differ in data, retriever or reader.")] = False,
    primary: Annotated[
        str, Query(max_length=200, description="Primary outcome, such as em or evidence; without, the run's.")
    ] = "",
) -> RunComparisons:
    """Compare systems by paired tests with intervals, as `judgetree eval compare` does."""
    one, two = runs.find(a).path, runs.find(b).path if b else None
    compared = await runs.work(
        _compare, one, two, baseline=baseline or None, rows=rows, force=force, primary=primary or None
    )
    return RunComparisons.model_validate(plain({"data": [_named(runs, each) for each in compared]}))


def _compare(
    a: Path, b: Path | None, *, baseline: str | None, rows: RowChoiceName, force: bool, primary: str | None
) -> list[dict[str, object]]:
    from ....evaluation.reports.compare import compare_runs
    from ....evaluation.reports.frames import records_of
    from ....evaluation.reports.verdicts import comparison_frame

    found = compare_runs(a, b, baseline=baseline, rows=rows, force=force, primary=primary)
    records = records_of(comparison_frame(found))
    return [{**record, "verdict": each.verdict} for record, each in zip(records, found, strict=True)]


def _named(runs: RunsFolder, record: dict[str, object]) -> dict[str, object]:
    """Name runs by their names instead of their paths."""
    return {name: runs.words(value) if isinstance(value, str) else value for name, value in record.items()}
