"""The table of the judge ``fused`` and its parts, on features made up so that the answer is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.fused_judge import Features, as_table, judged
from judgetree.evaluation.calibration.data import Case
from judgetree.modules.judge.fused import FEATURES


def features(seed: int, questions: int) -> list[Features]:
    """Two parts that each see half of what is gold, and three of noise."""
    rng = random.Random(seed)

    def of(is_gold: bool) -> dict[str, float]:
        seen = {name: rng.gauss(0, 1) for name in FEATURES}
        return {**seen, **{name: seen[name] + 1.2 * is_gold for name in ("p_needed", "similarity")}}

    return [[of(at < 2) for at in range(4)] for _ in range(questions)]


def test_a_judge_is_fitted_on_the_training_questions_and_sees_its_own_features_only() -> None:
    train = [Case(question=f"{number}?", gold=("a", "b"), distractors=("c", "d")) for number in range(200)]
    fused, part, noise = (
        judged(name, parts, train, features(0, 200), features(1, 300))
        for name, parts in (("fused", FEATURES), ("part", ("p_needed",)), ("noise", ("rank",)))
    )
    assert fused.within.mean() > part.within.mean() + 0.05 > noise.within.mean() + 0.1
    assert noise.within.mean() == pytest.approx(0.5, abs=0.06)
    assert fused.error(np.arange(300)) < 0.06
    lines = as_table([fused, part], seed=0).splitlines()
    assert lines[2].startswith(f"| fused | {fused.within.mean():.3f} (")
    assert f"| {(fused.within - part.within).mean():.3f} (" in lines[3]
