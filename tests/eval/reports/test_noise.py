"""The noise floor of a run whose questions were repeated."""

from __future__ import annotations

import pandas as pd
import pytest

from judgetree.evaluation.reports.means import noise_frame, noise_remarks


def frame(em: list[float | None], *, repeats: int = 2) -> pd.DataFrame:
    """Scores of one system on two questions, all of a repeat after those of the one before."""
    return pd.DataFrame(
        {
            "system": "judge",
            "question_id": ["1", "2"] * repeats,
            "repeat": [repeat for repeat in range(repeats) for _ in range(2)],
            "em": em,
            "f1": 1.0,
        }
    )


def test_noise_is_that_of_the_means_of_the_repeats() -> None:
    noise = noise_frame(frame([1.0, 0.0, 1.0, 1.0])).set_index("metric")
    assert noise.loc["em", ["repeats", "flipped_share", "n"]].tolist() == [2, 0.5, 2]
    assert noise.loc["em", "sd_of_means"] == pytest.approx(0.5 / 2**0.5)
    assert noise.loc["f1", "sd_of_means"] == 0.0


def test_question_without_a_score_in_every_repeat_is_left_out() -> None:
    noise = noise_frame(frame([1.0, 0.0, 1.0, None])).set_index("metric")
    assert noise.loc["em", ["flipped_share", "n"]].tolist() == [0.0, 1]


@pytest.mark.parametrize("em", [[1.0, 0.0], [None, None]])
def test_without_repeats_or_scores_there_is_none(em: list[float | None]) -> None:
    assert list(noise_frame(frame(em, repeats=1))["metric"]) == []


def test_noise_is_told_in_points() -> None:
    (em, _) = noise_remarks(noise_frame(frame([1.0, 0.0, 1.0, 1.0])))
    assert em.startswith(
        "Noise of judge, em: the means of 2 repeats have a standard deviation of 35.4 points, and 50.0%"
    )
