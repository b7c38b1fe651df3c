"""What a report says of a judge, in words and in its table."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from judgetree.evaluation.calibration.judge_figures import (
    GoldShare,
    JudgeFigures,
    VerdictName,
    VerdictWithGold,
    judge_figures,
)
from judgetree.evaluation.reports.judge import judge_documents, judge_findings, judge_section
from judgetree.evaluation.tables.markdown import sections_markdown

Chunk = tuple[VerdictName, GoldShare]
GOOD: Sequence[Chunk] = [("1", "some"), ("0", "none"), ("0", "none")]


def figures_of(
    question: Sequence[Chunk],
    *,
    questions: int = 20,
    confidence: float | None = None,
    odd: Sequence[Chunk] | None = None,
) -> JudgeFigures:
    """Of so many questions alike; ``odd`` takes the place of every other one."""
    judged = {
        str(at): [
            VerdictWithGold(verdict=verdict, gold=gold, confidence=confidence)
            for verdict, gold in (odd if odd is not None and at % 2 else question)
        ]
        for at in range(questions)
    }
    figures = judge_figures(judged, resamples=100)
    assert figures is not None
    return figures


@pytest.mark.parametrize(
    ("question", "odd", "finding"),
    [
        (GOOD, None, ""),
        # Nearly all 0 is right where nearly all is useless.
        ([("1", "some"), *[("0", "none")] * 9], None, ""),
        ([("1", "some"), ("1", "none"), ("1", "none")], None, "gives 1 to 100% of the chunks; 33% deserve it"),
        (
            [("2", "some"), ("2", "none"), ("2", "none"), ("0", "none")],
            None,
            "gives 2 to 75% of the chunks; 0% deserve",
        ),
        ([("0", "some"), ("1", "none"), ("0", "none")], None, "inverted: it rates gold chunks below others"),
        # A 2 on gold half of the time makes up in AUC for the zeros, and the zeros are inverted all the same.
        (
            [("0", "some"), ("1", "none")],
            [("2", "some"), ("1", "none")],
            "inverted: it gives 0 to gold chunks 50% more often than to others",
        ),
        ([("1", "some"), ("0", "none")], [("0", "some"), ("1", "none")], "not shown to tell gold chunks from others"),
        ([*GOOD, ("unknown", "none")], None, "It failed on 25% of the chunks."),
    ],
)
def test_judge_is_warned_of_where_its_verdicts_are_doubtful(
    question: Sequence[Chunk], odd: Sequence[Chunk] | None, finding: str
) -> None:
    words = " ".join(judge_findings(figures_of(question, odd=odd)))
    assert finding in words
    assert bool(words) is bool(finding)


def test_judge_that_discriminates_half_of_the_time_is_not_called_dominant() -> None:
    words = " ".join(judge_findings(figures_of([("1", "some"), ("1", "none"), ("1", "none")], odd=GOOD)))
    assert "hardly discriminates" not in words


def test_of_too_few_questions_nothing_else_is_said() -> None:
    (words,) = judge_findings(figures_of([("1", "some"), ("1", "none")], questions=19))
    assert words.startswith("Too little to tell: 19 questions")


def test_section_has_the_counts_the_shares_and_the_findings() -> None:
    text = sections_markdown([judge_section("judge", figures_of([("1", "some"), ("1", "none")], confidence=0.9))])
    assert text.startswith("# Verdicts of judge\n")
    assert "| 1 | 20 | 20 | 0 | 100.0 (83.9 to 100.0) |" in text
    assert "AUC within the question 0.500 (0.500 to 0.500)" in text
    assert "| 0.9 to 1.0 | 40 | 0.90 | 0.50 |" in text
    assert "**It hardly discriminates: it gives 1 to 100% of the chunks; 50% deserve it.**" in text


def test_section_without_probabilities_has_no_reliability() -> None:
    text = sections_markdown([judge_section("judge", figures_of(GOOD))])
    assert "P(needed)" not in text
    assert "calibration error" not in text


def test_document_is_plain_data() -> None:
    document = json.loads(json.dumps(judge_documents({"judge": figures_of(GOOD, confidence=0.9)})))
    assert document["judge"]["confusion"]["0"] == {"none": 40, "some": 0, "all": 0}
    assert document["judge"]["findings"] == []
