"""Every loop over an asynchronous iterator closes it, also where it is left early; what it holds else stays open."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from judgetree.modules.background.closing import closing

ROOT = Path(__file__).parents[1]
CLOSERS = frozenset({"closing", "aclosing"})
EXCUSED = {
    ("graphs/conversation/turn/store.py", "self._checkpoints()"): "it is read to its end, and holds nothing",
    ("graphs/rag/thread_runs.py", "saver.alist(None, filter={'depth': 0})"): "it is read to its end",
    ("modules/embedding/hosted.py", "self.batches(texts)"): "it is read to its end",
    ("modules/llm/openai_client.py", "rest"): "its caller closes it",
}
"""File and iterator of each loop that closes nothing, and why."""


def _closed_in(node: ast.AsyncWith) -> Iterator[str]:
    """Yield the names of what a ``with`` closes at its end."""
    for item in node.items:
        if isinstance(call := item.context_expr, ast.Call) and ast.unparse(call.func) in CLOSERS:
            yield ast.unparse(call.args[0])
            if item.optional_vars is not None:
                yield ast.unparse(item.optional_vars)


def _left_open(node: ast.AST, closed: frozenset[str] = frozenset()) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        closed = frozenset()
    if isinstance(node, ast.AsyncWith):
        closed |= frozenset(_closed_in(node))
    if isinstance(node, ast.AsyncFor) and ast.unparse(node.iter) not in closed:
        yield ast.unparse(node.iter)
    for child in ast.iter_child_nodes(node):
        yield from _left_open(child, closed)


def test_no_loop_leaves_its_iterator_open() -> None:
    files = [file for folder in ("modules", "graphs", "eval", "app") for file in (ROOT / folder).rglob("*.py")]
    found = {
        (file.relative_to(ROOT).as_posix(), loop)
        for file in files
        for loop in _left_open(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert sorted(found - set(EXCUSED)) == []
    assert sorted(set(EXCUSED) - found) == [], "excuses that are needed no more"


def test_iterators_that_read_out_of_each_other_are_closed_in_their_order() -> None:
    closed: list[str] = []

    async def inner() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append("inner")

    async def outer() -> AsyncIterator[int]:
        try:
            async with closing(inner()) as items:
                async for item in items:
                    yield item
        finally:
            closed.append("outer")

    async def read() -> None:
        async with closing(outer()) as items:
            async for _ in items:
                raise ValueError("enough")

    with pytest.raises(ValueError, match="enough") as kept:
        asyncio.run(read())
    assert closed == ["inner", "outer"], kept
