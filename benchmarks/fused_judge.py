"""The judge ``fused`` against each of its parts, fitted on training questions and reported on others.

    python -m benchmarks.fused_judge --train hotpotqa_train_100.json --data hotpotqa_500.json --ratings ratings.jsonl

Passages are those of ``judge_auc``: of each question its two gold paragraphs and the two others that BM25 finds most
like it. Every judge is a logistic regression, on all features or on one, fitted on the training questions alone.
Reported are the AUC within the question, its difference from that of ``fused``, and the expected calibration error,
with bootstrap intervals over questions. The model rates each passage once; ``--ratings`` keeps that, so that the same
command goes on after a kill.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judgetree.evaluation.calibration.data import Case
from judgetree.evaluation.calibration.judge_figures import auc
from judgetree.evaluation.calibration.logistic import fit_weights
from judgetree.evaluation.calibration.rating import FeatureRating
from judgetree.evaluation.calibration.reliability import calibration_error, reliability_bins
from judgetree.evaluation.rows.json_lines import append_line
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.judge.embedding import Similarity
from judgetree.modules.judge.fused import FEATURES, weighed
from judgetree.modules.judge.logprob import LogprobJudge
from judgetree.modules.judge.thresholds import thresholds_for
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import load_settings

from .judge_auc import load_cases

RESAMPLES = 2_000
Features = list[dict[str, float]]
"""Of the passages of a question, gold ones first."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one judge says of the reported questions."""

    judge: str
    within: NDArray[np.float64]
    """AUC within each question."""
    probabilities: NDArray[np.float64]
    """Of each question (row) and passage."""
    is_gold: NDArray[np.float64]

    def error(self, at: Sequence[int] | NDArray[np.int64]) -> float:
        """Compute the expected calibration error over these questions."""
        return calibration_error(reliability_bins(self.probabilities[at].ravel(), self.is_gold[at].ravel()))


def _whole(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with distractors; a few questions come with their gold paragraphs alone."""
    return [case for case in cases if case.distractors]


def rated(cases: Sequence[Case], rating: FeatureRating, kept: Path) -> list[Features]:
    """Return the features of each case, those that ``kept`` holds without a call."""
    known = {row["question"]: row["features"] for row in map(json.loads, kept.read_text().splitlines())}
    for case in cases:
        if case.question not in known:
            background_loop().run(rating(case.scored(), CallMeter(node="rate")))
            known[case.question] = rating.features[case.question]
            append_line(kept, json.dumps({"question": case.question, "features": known[case.question]}).encode())
    return [known[case.question] for case in cases]


def judged(
    name: str, parts: Sequence[str], train: Sequence[Case], fitted_on: Sequence[Features], told: Sequence[Features]
) -> Judged:
    """Fit a judge of these features on ``train``, and judge by it the questions whose features are ``told``."""
    weights = fit_weights([case.scored() for case in train], _only(fitted_on, parts))
    rows = [[weighed(each, weights) for each in case] for case in _only(told, parts)]
    gold = len(train[0].gold)
    truth = [[1.0] * gold + [0.0] * (len(row) - gold) for row in rows]
    within = [auc(row[:gold], row[gold:]) for row in rows]
    return Judged(judge=name, within=np.array(within), probabilities=np.array(rows), is_gold=np.array(truth))


def _only(features: Sequence[Features], parts: Sequence[str]) -> list[Features]:
    """Return features without those of other parts, which then weigh nothing."""
    return [[{each: of[each] if each in parts else 0.0 for each in FEATURES} for of in case] for case in features]


def as_table(judges: Sequence[Judged], *, seed: int) -> str:
    """Format AUC, difference from the first judge, and calibration error, each with its 95 % interval."""
    questions = len(judges[0].within)
    drawn = np.random.default_rng(seed).integers(questions, size=(RESAMPLES, questions))
    lines = ["| judge | AUC within the question | less than fused | calibration error |", "|---|---|---|---|"]
    for each in judges:
        less = judges[0].within - each.within
        errors = [each.error(at) for at in drawn]
        lines.append(
            f"| {each.judge} | {_shown(each.within.mean(), each.within[drawn].mean(axis=1))} "
            f"| {_shown(less.mean(), less[drawn].mean(axis=1)) if each is not judges[0] else ''} "
            f"| {_shown(each.error(np.arange(questions)), errors)} |"
        )
    return "\n".join(lines)


def _shown(value: float, resampled: Sequence[float] | NDArray[np.float64]) -> str:
    low, high = np.quantile(resampled, (0.025, 0.975))
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Rate, fit, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="a HotpotQA file of training questions")
    parser.add_argument("--data", type=Path, required=True, help="a HotpotQA file whose last questions are reported")
    parser.add_argument("--ratings", type=Path, required=True, help="keeps what was rated")
    parser.add_argument("--n-train", type=int, default=100, help="training questions, from the first (100)")
    parser.add_argument("--n", type=int, default=150, help="reported questions, the last of the file (150)")
    parser.add_argument("--llm", default="local:", help="model as in JUDGETREE_LLM (local:)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (0)")
    options = parser.parse_args(arguments)
    options.ratings.touch()
    train, told = (
        _whole(load_cases(options.train, options.n_train)),
        _whole(load_cases(options.data, 10**9))[-options.n :],
    )
    settings = load_settings()
    llm = create_llm(options.llm, settings, CallGate(1))
    rating = FeatureRating(
        judge=LogprobJudge(llm, thresholds=thresholds_for(llm.model)),
        similarity=Similarity(create_embeddings("local:minilm", settings)),
    )
    fitted_on, reported = rated(train, rating, options.ratings), rated(told, rating, options.ratings)
    kinds: Mapping[str, Sequence[str]] = {"fused": FEATURES, **{f"{name} alone": (name,) for name in FEATURES}}
    judges = [judged(name, parts, train, fitted_on, reported) for name, parts in kinds.items()]
    print(f"{len(train)} training questions, {len(told)} reported\n\n{as_table(judges, seed=options.seed)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
