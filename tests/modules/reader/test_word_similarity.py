"""Cosines of passages by their words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reader.word_similarity import similarity_by_words


def test_cosines_worked_out_by_hand() -> None:
    """Of three passages: "red" is in two, "ox" in one; a word that occurs twice weighs 1 + log 2."""
    red, ox, twice = math.log1p(3 / 2), math.log1p(3), 1 + math.log(2)
    shared = red * (twice * red) / (math.hypot(red, ox) * twice * red)
    expected = [[1, shared, 0], [shared, 1, 0], [0, 0, 1]]
    assert similarity_by_words(["Red ox!", "red RED", ""]) == pytest.approx(np.array(expected))


def test_chinese_is_compared_by_pairs_of_characters() -> None:
    first, second, other = "北京是中国的首都", "中国的首都是北京", "山水"
    cosines = similarity_by_words([first, second, other])
    assert cosines[0, 1] > 0.5
    assert cosines[0, 2] == cosines[1, 2] == 0


def test_many_words_are_compared_in_blocks() -> None:
    """Each passage shares 3,000 words with the next one; words weigh the same, and no passage holds one twice."""
    texts = [" ".join(f"w{number}" for number in range(3000 * part, 3000 * (part + 2))) for part in range(4)]
    cosines = similarity_by_words([*texts, " ".join(f"w{number}" for number in [*range(3000), *range(12000, 15000)])])
    ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    assert cosines == pytest.approx(np.eye(5) + ring / 2)


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_texts_have_cosines_from_0_to_1(texts: list[str]) -> None:
    cosines = similarity_by_words([*texts, *texts])
    assert ((cosines >= 0) & (cosines <= 1)).all()
    assert (cosines == cosines.T).all()
    assert (np.diagonal(cosines) == 1).all()
    again = np.diagonal(cosines, offset=len(texts))[: len(texts)]
    worded = [any(char.isascii() and char.isalnum() for char in text) for text in texts]
    assert again[worded] == pytest.approx(1.0)
