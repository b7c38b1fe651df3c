"""No wait without an end keeps Ctrl-C from being noticed: each has a reason, or is one of ``background.waiting``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WAITS = frozenset({"wait", "join", "result", "acquire", "get"})
EXCUSED = {
    ("app/commands/label.py", "server.wait()"): "it is wait_for_signal",
    ("app/labelling/server.py", "self._thread.join()"): "the thread has been told to end",
    ("app/scripted/server.py", "self._thread.join()"): "the thread has been told to end",
    ("modules/background_loop.py", "self.outcome.result()"): "the outcome is there",
    ("modules/background_loop.py", "task.result()"): "the task has ended",
    ("modules/background_loop.py", "work.outcome.result()"): "the last item has come, and so the outcome",
    ("modules/background_loop.py", "work.result()"): "it notices signals",
    ("modules/callbacks.py", "var_child_runnable_config.get()"): "a context variable",
    ("modules/cluster.py", "head.wait()"): "a thread of its own waits",
    ("modules/cluster.py", "watching.join()"): "the process has ended, which the thread waits for",
    ("modules/index/lite_folder.py", "self._server.stop(grace=2).wait()"): "it ends within its grace of 2 s",
    ("modules/index/parser_process.py", "process.wait()"): "the process has been killed",
    ("modules/index/writer_lock.py", "renewing.join()"): "the thread has been told to end",
}
"""File and call of each wait without a limit, and why it ends."""


def _endless_waits(file: Path) -> Iterator[str]:
    """Yield the calls without arguments that may wait for ever, but for those of coroutines and context variables."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = {id(node) for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef) for node in ast.walk(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
            on = node.func.value
            is_variable = node.func.attr == "get" and isinstance(on, ast.Name | ast.Attribute)
            is_variable = is_variable and ast.unparse(on).rpartition(".")[2].isupper()
            if node.func.attr in WAITS and id(node) not in inside and not is_variable:
                yield ast.unparse(node)


def test_no_wait_is_without_an_end() -> None:
    files = [file for folder in ("modules", "graphs", "eval", "app") for file in (ROOT / folder).rglob("*.py")]
    found = {(file.relative_to(ROOT).as_posix(), wait) for file in files for wait in _endless_waits(file)}
    assert sorted(found - set(EXCUSED)) == []
    assert sorted(set(EXCUSED) - found) == [], "excuses that are needed no more"
