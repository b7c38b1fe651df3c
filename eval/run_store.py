"""A run directory: its manifest, one line a finished question, and the lock of whoever works in it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from ..graphs.state import AnswerStatus
from ..modules.errors import LoadingError, SettingsError
from .tree_metrics import TreeFigures


@dataclass(frozen=True, kw_only=True)
class FoundChunk:
    """A chunk as one query of the tree found it."""

    key: str
    """Key of its document, as in ``EvalQuestion.supporting``."""
    chunk_id: str
    depth: int
    """0 for the chunks of the question itself."""
    rank: int
    verdict: str
    """"0", "1", "2", or why there is no score; "pending" where nothing is judged."""
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """What came of one question: plain facts, without scores, which are computed when they are looked at."""

    system: str
    question_id: str
    repeat: int
    attempt: int
    question: str
    prediction: str
    """``""`` if the question failed."""
    status: AnswerStatus
    error: str
    thread_id: str
    seconds: float
    """Wall time, queueing at the model included."""
    tree: TreeFigures | None
    """None where the question failed before it had a tree."""
    chunks: tuple[FoundChunk, ...]
    """Of all queries of the tree, the question's own first, by rank."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Which question of which system this row answers."""
        return (self.system, self.question_id, self.repeat)


Manifest = Mapping[str, object]
_ROW = TypeAdapter(RunRow)


def newest_attempts(rows: Iterable[RunRow]) -> list[RunRow]:
    """The last of the rows for each question, system and repeat, in the order of the first."""
    return list({row.place: row for row in rows}.values())


class RunStore:
    """The rows of one run directory. Rows are appended whole: a process that dies loses none that was finished."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows_file = folder / "rows.jsonl"
        self._manifest_file = folder / "manifest.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Work in the directory alone.

        Raises:
            SettingsError: Another process does; the message names it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        holder = self.folder / "run.lock.holder"
        lock = FileLock(self.folder / "run.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            named = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
            raise SettingsError(
                f"{self.folder} is being worked in by {named}. Wait for it, or give another --out."
            ) from error
        try:
            holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
            yield
        finally:
            lock.release()

    def read_manifest(self) -> Manifest | None:
        """What the run was made of; None before its first start.

        Raises:
            LoadingError: The file is damaged.
        """
        if not self._manifest_file.exists():
            return None
        try:
            content = json.loads(self._manifest_file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise LoadingError(f"{self._manifest_file} is damaged ({error}). Give another --out.") from error
        return dict(content)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest."""
        half = self._manifest_file.with_suffix(".half")
        half.write_text(json.dumps(manifest, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        half.replace(self._manifest_file)

    def read_rows(self) -> list[RunRow]:
        """The newest attempt at each question, in the order in which they were first finished.

        Raises:
            LoadingError: See ``read_attempts``.
        """
        return newest_attempts(self.read_attempts())

    def read_attempts(self) -> list[RunRow]:
        """Every row, in the order in which they were finished.

        A last line that was cut off by a kill is left out.

        Raises:
            LoadingError: Another line is damaged.
        """
        rows: list[RunRow] = []
        for number, line, is_last in self._lines():
            try:
                rows.append(_ROW.validate_json(line))
            except ValidationError as error:
                if is_last:
                    break
                raise LoadingError(
                    f"{self._rows_file}, line {number} is damaged: {error.errors()[0]['msg']}."
                ) from error
        return rows

    def append(self, row: RunRow) -> None:
        """Add a row, in one write; it survives the process as soon as this returns."""
        line = _ROW.dump_json(row) + b"\n"
        with self._rows_file.open("ab", buffering=0) as file:
            file.write(line)

    def mend(self) -> None:
        """Cut off the torn end that a kill in the middle of a write has left, so that the next row has its own line."""
        if not self._rows_file.exists():
            return
        with self._rows_file.open("rb+") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                file.truncate(whole)

    def _lines(self) -> Iterator[tuple[int, str, bool]]:
        if not self._rows_file.exists():
            return
        lines = self._rows_file.read_text(encoding="utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            if line:
                yield number, line, number == len(lines)
