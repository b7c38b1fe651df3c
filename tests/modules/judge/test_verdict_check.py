"""Verdicts of judges that anybody may write."""

from __future__ import annotations

import doctest
import json
from typing import Any

import numpy as np
import pytest

from judgetree.modules.judge import contract
from judgetree.modules.judge.contract import Verdict, checked_verdict


@pytest.mark.parametrize("score", [1, 1.0, np.int64(1), np.float32(1.0), np.array(1)], ids=repr)
@pytest.mark.parametrize("confidence", [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5)], ids=repr)
def test_numbers_of_other_kinds_become_pythons_own(score: Any, confidence: Any) -> None:
    verdict = checked_verdict(Verdict(status="judged", score=score, confidence=confidence, next_query="Who?"))
    assert verdict == Verdict(status="judged", score=1, confidence=0.5, next_query="Who?")
    assert (type(verdict.score), type(verdict.confidence)) == (int, float)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (Verdict(status="judged", score=3), "score 3"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=-1), "score -1"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=0.5), "score 0.5"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=True), "score True"),  # type: ignore[arg-type]
        (Verdict(status="judged", score="1"), "score '1'"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=np.True_), "score "),  # type: ignore[arg-type]
        (Verdict(status="judged"), "score None"),
        (Verdict(status="judged", score=float("nan")), "score nan"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=2**64), "score 18446744073709551616"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=1, confidence=float("nan")), "confidence nan"),
        (Verdict(status="judged", score=1, confidence=1e30), "confidence 1e\\+30"),
        (Verdict(status="judged", score=1, confidence="sure"), "confidence 'sure'"),  # type: ignore[arg-type]
        (Verdict(status="sure", score=1), "status 'sure'"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=1, next_query=None), "next_query None"),  # type: ignore[arg-type]
        (None, "NoneType in place of a Verdict"),
        (2, "int in place of a Verdict"),
    ],
)
def test_what_cannot_be_used_is_unknown_and_named(given: object, named: str) -> None:
    verdict = checked_verdict(given)
    assert (verdict.status, verdict.score) == ("unknown", None)
    assert verdict.problem.startswith(f"The judge gave {named}".replace("\\+", "+"))
    assert "Allowed: " in verdict.problem


def test_texts_can_be_stored() -> None:
    verdict = checked_verdict(Verdict(status="judged", score=0, reason="a\x00b\ud800"))
    assert json.dumps(verdict.reason).encode()
    assert verdict.reason == "ab?"


def test_example_of_the_docstring() -> None:
    assert doctest.testmod(contract).failed == 0
