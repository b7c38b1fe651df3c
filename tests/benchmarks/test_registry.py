"""The registered benchmarks: each can be imported, so that the commands of the documents start."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.__main__ import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_registered_benchmark_can_be_started(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").measure)
