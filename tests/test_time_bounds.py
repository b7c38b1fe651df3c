"""No test bounds the time on a clock: a busy or slow machine would break it. Bounds are those of ``cpu_time.py``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {
    *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")),
    *("perf_counter", "monotonic", "process_time", "loop.time"),
}


def bounds_of_a_clock(source: str) -> Iterator[int]:
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


def test_no_test_bounds_the_time_on_a_clock() -> None:
    found = [
        f"{path.relative_to(TESTS).as_posix()}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in bounds_of_a_clock(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("assert time.monotonic() - started < 2", True),
        ("assert 0 < time.perf_counter() - started <= LIMIT_S", True),
        ("assert 2 > time.time() - started", True),
        ("assert time.monotonic() - started > 0.15", False),
        ("assert time.process_time() - started < 2", True),
        ("assert time.process_time() - started > 2", False),
    ],
)
def test_a_bound_is_found(line: str, is_found: bool) -> None:
    assert bool(list(bounds_of_a_clock(line))) == is_found


REQUESTS = {f"httpx.{name}" for name in ("Client", "AsyncClient", "get", "post", "put", "delete", "request", "stream")}


def impatient_clients(source: str) -> Iterator[int]:
    """Lines of HTTP clients and requests that give up after httpx's own five seconds."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in REQUESTS:
            named = {each.arg for each in node.keywords}
            if named.isdisjoint(("timeout", "transport", None)):  # None: **options
                yield node.lineno


def test_every_http_client_of_a_test_waits_for_a_busy_machine() -> None:
    found = [
        f"{path.relative_to(TESTS).as_posix()}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in impatient_clients(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [("httpx.get(url)", True), ("httpx.Client(base_url=url)", True), ("httpx.get(url, timeout=60)", False)],
)
def test_an_impatient_client_is_found(line: str, is_found: bool) -> None:
    assert bool(list(impatient_clients(line))) == is_found
