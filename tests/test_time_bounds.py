"""No test bounds the time on the clock: a busy machine would break it. Bounds are in CPU time (``cpu_time.py``)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"time.time", "time.monotonic", "time.perf_counter", "perf_counter", "monotonic", "loop.time"}


def bounds_of_wall_time(source: str) -> Iterator[int]:
    """Lines of the assertions that the time since a moment is below a bound."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            sides = [node.test.left, *node.test.comparators]
            for left, operator, right in zip(sides, node.test.ops, sides[1:], strict=False):
                lower = left if isinstance(operator, ast.Lt | ast.LtE) else right
                if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Sub) and reads_a_clock(lower.left):
                    yield node.lineno


def reads_a_clock(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in CLOCKS


def test_no_test_bounds_the_time_on_the_clock() -> None:
    found = [
        f"{path.relative_to(TESTS).as_posix()}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in bounds_of_wall_time(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("assert time.monotonic() - started < 2", True),
        ("assert 0 < time.perf_counter() - started <= LIMIT_S", True),
        ("assert 2 > time.time() - started", True),
        ("assert time.monotonic() - started > 0.15", False),
        ("assert time.process_time() - started < 2", False),
    ],
)
def test_a_bound_is_found(line: str, is_found: bool) -> None:
    assert bool(list(bounds_of_wall_time(line))) == is_found
