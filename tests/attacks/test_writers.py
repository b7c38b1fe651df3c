"""Every place that writes a file goes through the atomic writer, or says here why it need not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("modules", "graphs", "eval", "app", "src")
WRITERS = frozenset({"write_text", "write_bytes", "savefig", "to_csv", "to_parquet", "to_excel", "to_json"})
ATOMIC = "modules/storage/atomic.py"

EXCUSED = {
    "app/server/collections/uploads.py": "a temporary folder of one upload, which goes with it",
    "eval/datasets/fetch.py": "the parts of a download, in a hidden folder until all is there and was read",
    "eval/papers/files.py": "into the stream of an atomic write",
    "eval/reports/inline_svg.py": "into memory",
    "eval/rows/json_lines.py": "rows are appended, and a half line is seen when they are read",
    "modules/cluster.py": "what a process says, in a temporary folder",
    "modules/index/lite_folder.py": "a file of each process, then renamed; the folder's lock is held",
    "modules/llm/model_files.py": "a gigabyte whose half goes at the next start, so of one name; a lock is held",
    "modules/memory/schema.py": "writes nothing: a collection is opened",
    "modules/storage/file_locks.py": "names who holds a lock; only shown to people",
    "modules/trust/consent.py": "a file of each process, then renamed; the folder imports nothing of the others",
    "modules/prebuilt/lines.py": "a file of each process that grows by blocks, flushed, then renamed",
}
"""File to the reason why it writes by itself."""


def _writes(path: Path) -> Iterator[int]:
    """Lines that open a file for writing, or hand a path to something that writes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("open", "open_private"):
            modes = [
                each.value
                for each in (*node.args, *(keyword.value for keyword in node.keywords))
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            if any(set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes if mode):
                yield node.lineno
        elif name in WRITERS and (
            node.args or any(keyword.arg in {"path", "path_or_buf"} for keyword in node.keywords)
        ):
            yield node.lineno


def _writing_files() -> dict[str, list[int]]:
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    found = {file.relative_to(ROOT).as_posix(): sorted(_writes(file)) for file in sorted(files)}
    return {name: lines for name, lines in found.items() if lines and name != ATOMIC}


def test_every_writer_of_a_file_is_atomic_or_excused() -> None:
    unexcused = {name: lines for name, lines in _writing_files().items() if name not in EXCUSED}
    assert not unexcused, f"write through storage.atomic, or give a reason here: {unexcused}"


def test_no_excuse_outlives_its_writer() -> None:
    assert not EXCUSED.keys() - _writing_files().keys()
