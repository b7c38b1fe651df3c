"""Which questions are near each other by their vectors, whatever these hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judgetree.graphs.search.vectors import Vectors
from judgetree.modules.errors import SettingsError


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_nearness_is_the_cosine_however_long_the_vectors_are(scale: float) -> None:
    vectors = Vectors(0.95)
    for question, angle in {"a": 0.0, "b": 0.3, "c": 0.6}.items():
        vectors.add(question, [scale * math.cos(angle), scale * math.sin(angle)])
    assert [vectors.near(question) for question in "abc"] == [["b"], ["a", "c"], ["b"]]
    assert list(vectors.near("unknown")) == []


def test_a_vector_of_zeros_is_near_nothing() -> None:
    vectors = Vectors(1e-12)
    for question, vector in {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}.items():
        vectors.add(question, vector)
    assert [vectors.near(question) for question in "abc"] == [[], [], []]


@pytest.mark.parametrize(
    "given", [[math.nan, 1.0], [math.inf, 1.0], [1.0], [1.0, 2.0, 3.0], [], None, "ab", [[1.0, 2]]]
)
def test_what_is_no_vector_of_the_same_length_is_refused(given: list[float]) -> None:
    vectors = Vectors(0.9)
    vectors.add("a", [1.0, 2.0])
    with pytest.raises(SettingsError, match=r"aembed gave .* for the question 'b'"):
        vectors.add("b", given)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_in_which_hundreds_of_questions_come_changes_nothing(order: int) -> None:
    draws = np.random.default_rng(0).normal(size=(300, 3))
    vectors = Vectors(0.9)
    for number in range(300)[::order]:
        vectors.add(str(number), draws[number].tolist())
    units = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    near = units @ units.T >= 0.9
    for one in range(300):
        assert {*vectors.near(str(one))} == {str(other) for other in range(300) if near[one, other] and other != one}
