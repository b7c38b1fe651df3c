"""EM and F1 of the predecessor's recorded predictions, beside the official figures.

    python -m benchmarks.predecessor_metrics --data predecessor_baseline.json

The file holds, for each run, its predictions with their gold answers and the official figures over them. Exits 1 where
one of ours is off by more than 0.1 points.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.answers import score_answer

TOLERANCE_POINTS = 0.1


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Means over the questions of a run, in [0, 1]."""

    em: float
    f1: float
    precision: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run of the predecessor with the figures of the official script."""

    run: str
    n: int
    official: Figures


@dataclass(frozen=True, kw_only=True)
class RecordedPrediction:
    """The predecessor's answer to a question."""

    question: str
    ground_truth: str
    prediction: str


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The used parts of the file; others are ignored."""

    rag_with_judge_repo: tuple[RecordedRun, ...]
    per_question: Mapping[str, tuple[RecordedPrediction, ...]]


@dataclass(frozen=True, kw_only=True)
class Recomputed:
    """A run with our figures."""

    recorded: RecordedRun
    n: int
    figures: Figures

    @property
    def off_points(self) -> float:
        """Largest difference between our figures and the official ones, in points."""
        pairs = zip(astuple(self.figures), astuple(self.recorded.official), strict=True)
        off: list[float] = [100 * abs(ours - theirs) for ours, theirs in pairs]
        return max(off)

    @property
    def holds(self) -> bool:
        """Whether count and figures are the same."""
        return self.n == self.recorded.n and self.off_points <= TOLERANCE_POINTS


def load_baseline(path: Path) -> Baseline:
    """Load the recorded runs of a file."""
    return TypeAdapter(Baseline).validate_json(path.read_bytes())


def recompute(recorded: RecordedRun, predictions: tuple[RecordedPrediction, ...]) -> Recomputed:
    """Score the predictions; nothing counts as a refusal, as in the official script."""
    scores = [
        score_answer(
            EvalQuestion(id=str(place), question=row.question, answers=(row.ground_truth,)),
            row.prediction,
            refused=False,
        )
        for place, row in enumerate(predictions)
    ]
    return Recomputed(
        recorded=recorded,
        n=len(scores),
        figures=Figures(
            em=fmean(score.em for score in scores),
            f1=fmean(score.f1 for score in scores),
            precision=fmean(score.precision for score in scores),
            recall=fmean(score.recall for score in scores),
        ),
    )


def as_table(runs: list[Recomputed]) -> str:
    """Format the runs as a Markdown table, in percent."""
    lines = ["| run | n | EM | official | F1 | official | off at most | holds |", "|---|---|---|---|---|---|---|---|"]
    for run in runs:
        ours, theirs = run.figures, run.recorded.official
        lines.append(
            f"| {run.recorded.run} | {run.n} | {ours.em:.1%} | {theirs.em:.1%} | {ours.f1:.1%} | {theirs.f1:.1%} "
            f"| {run.off_points:.3f} | {'yes' if run.holds else 'NO'} |".replace("%", "")
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the predecessor's predictions (JSON)")
    baseline = load_baseline(parser.parse_args().data)
    runs = [recompute(run, baseline.per_question[run.run]) for run in baseline.rag_with_judge_repo]
    print(as_table(runs))
    if not all(run.holds for run in runs):
        sys.exit(1)


if __name__ == "__main__":
    main()
