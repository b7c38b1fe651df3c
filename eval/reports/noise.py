"""How much a system's scores change when the same questions are asked again: what a difference has to exceed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import pandas as pd

from ..metrics.statistics import NoiseFloor, noise_floor

NOISE_METRICS = ("em", "f1")
_COLUMNS = ["system", "metric", "repeats", "sd_of_means", "flipped_share", "n"]


def noise_frame(questions: pd.DataFrame) -> pd.DataFrame:
    """A row for each system and metric that has several repeats; see ``metrics.statistics.NoiseFloor``.

    Args:
        questions: As from ``frames.question_frame``. Only questions that every repeat has a score on count.
    """
    records = []
    for system, part in questions.groupby("system", sort=False):
        for metric in NOISE_METRICS:
            if floor := _floor_of(part, metric):
                known = asdict(floor)
                known["repeats"] = len(known.pop("means"))
                records.append({"system": system, "metric": metric, **known})
    return pd.DataFrame.from_records(records, columns=_COLUMNS)


def noise_lines(noise: pd.DataFrame) -> Iterator[str]:
    """A sentence for each row of ``noise_frame``, in points, which are hundredths of the score."""
    for row in noise.itertuples():
        yield (
            f"Noise of {row.system}, {row.metric}: the means of {row.repeats} repeats have a standard deviation of "
            f"{100 * row.sd_of_means:.1f} points, and {row.flipped_share:.1%} of {row.n} questions did not score the "
            "same each time. A difference of that size comes by chance."
        )


def _floor_of(part: pd.DataFrame, metric: str) -> NoiseFloor | None:
    runs = part.pivot(index="question_id", columns="repeat", values=metric).dropna()
    if len(runs) == 0 or runs.shape[1] < 2:
        return None
    return noise_floor([[float(score) for score in runs[repeat]] for repeat in runs])
