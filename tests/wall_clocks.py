"""Where the package reads a wall clock or a file's time, found in its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("modules", "graphs", "eval", "app", "src")
_METHODS = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime", "clock_gettime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "dt": {"now", "utcnow", "today"},
    "uuid": {"uuid1", "uuid6", "uuid7"},
}
_NAMES = {"uuid1", "uuid6", "uuid7", "getmtime", "getctime", "getatime", "time_ns", "utcnow", "utcfromtimestamp"}
_OURS = {"utc_now", "now_utc", "recorded_now"}
"""Functions of the package that return the present time."""
_FIELDS = {"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_birthtime"}
_SQL = ("current_timestamp", "current_date", "now()", "strftime(", "datetime('now'", "unixepoch(", "clock_timestamp(")


def uses(root: Path) -> list[str]:
    """Return each use as ``file function: what is read``, in the order of files and lines."""
    files = (file for room in ROOMS for file in sorted((root / room).rglob("*.py")) if "build" not in file.parts)
    return [f"{file.relative_to(root)} {each}" for file in files for each in uses_in(file.read_text())]


def uses_in(source: str) -> list[str]:
    """Return the uses in a file, each as ``function: what is read``."""
    return list(dict.fromkeys(f"{name}: {what}" for name, what in _walk(ast.parse(source), "")))


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _walk(child, f"{function}.{child.name}".lstrip("."))
            continue
        if (what := _read_by(child)) is not None:
            yield function or "(file)", what
        yield from _walk(child, function)


def _read_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value).rpartition(".")[2]
        if node.attr in _METHODS.get(owner, ()) or node.attr in _FIELDS | _NAMES:
            return ast.unparse(node)
    if isinstance(node, ast.Name) and node.id in _NAMES | _OURS:
        return node.id
    if isinstance(node, ast.Import):  # under another name its uses would not be seen
        renamed = [each.name for each in node.names if each.name in ("time", "uuid") and each.asname]
        return f"import {', '.join(renamed)} under another name" if renamed else None
    if isinstance(node, ast.ImportFrom) and node.module in _METHODS:
        taken = [each.name for each in node.names if each.name in _METHODS[node.module] | _NAMES]
        return f"from {node.module} import {', '.join(taken)}" if taken else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return next((each for each in _SQL if each in node.value.lower()), None)
    return None
