"""Texts in batches of like length have the vectors that each has by itself."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.embedding.batches import by_length
from judgetree.modules.embedding.cores import usable_cores
from judgetree.modules.embedding.local import find_minilm, load_minilm

LENGTHS = st.lists(st.integers(1, 300), max_size=60)


@given(LENGTHS, st.integers(1, 600), st.none() | st.integers(1, 9))
def test_each_position_is_in_one_batch_within_the_limits(lengths: list[int], budget: int, most: int | None) -> None:
    batches = by_length(lengths, budget=budget, most=most)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = max(lengths[position] for position in batch) * len(batch)
        assert (padded <= budget or len(batch) == 1) and (most is None or len(batch) <= most)
    longest = [max(lengths[position] for position in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)


@pytest.mark.parametrize(
    ("quota", "given"), [("150000 100000", 2), ("1 100000", 1), ("max 100000", None), ("x", None), ("1 0", None)]
)
def test_a_container_may_have_fewer_cores_than_its_machine(tmp_path: Path, quota: str, given: int | None) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    of_the_machine = usable_cores(tmp_path / "missing")
    assert usable_cores(tmp_path / "cpu.max") == min(of_the_machine, given or of_the_machine)


def test_a_batch_gives_the_vectors_of_its_texts_alone_in_their_order() -> None:
    rng, encode = random.Random(3), load_minilm(find_minilm())
    words = ["valve", "gasket", "the", "Ghana", "pressure", "of", "naïve", "法兰"]
    texts = ["", *(" ".join(rng.choices(words, k=rng.randint(1, 320))) for _ in range(40))]
    together = encode(texts)
    assert np.allclose(together, np.concatenate([encode([text]) for text in texts]), atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("minilm")]
