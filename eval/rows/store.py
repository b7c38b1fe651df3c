"""A run directory: its manifest, one line a finished question, and the lock of whoever works in it."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import FileLock, ReadWriteLock, Timeout
from pydantic import TypeAdapter, ValidationError

from ...graphs.threads.state import AnswerStatus
from ...modules.calls.prices import ModelUsage
from ...modules.disk import refusing_full_disk, write_whole
from ...modules.errors import LoadingError, SettingsError
from ...modules.formats import FORMAT_KEY, Thing, format_of, refuse_other_format
from ..metrics.damage import Damage
from ..metrics.tree import TreeFigures
from .json_lines import append_line, cut_torn_end, sync_file
from .trees import TreeStore
from .turn_facts import TurnFacts

Completeness = Literal["complete", "degraded", "failed"]
"""complete: nothing went wrong that the answer could show. degraded: answered, with damage. failed: not answered."""


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
    """Of the search; of a turn in a conversation, its request, under whose name its tree is kept too."""
    seconds: float
    """Wall time, queueing at the model included."""
    tree: TreeFigures | None
    """None where the question failed before it had a tree, or was answered without a search."""
    chunks: tuple[FoundChunk, ...]
    """Of all queries of the tree, the question's own first, by rank."""
    paid: tuple[ModelUsage, ...] | None = None
    """What each model was asked for, by the tree's call records, and by what leading the conversation took; by the
    journal of calls where an error left neither; None where none were kept.
    """
    conversation: TurnFacts | None = None
    """None of a question that was not asked in a conversation, or of which not even the turn is known."""
    damage: Damage = field(default_factory=dict)
    """What faults took from the answer, and how often; see ``metrics.damage``."""
    code: str = ""
    """Id of the code version that asked; see ``code_version.code_versions_in``."""
    setup_failed: bool = False
    """Whether it failed by a ``ModelSetupError``: key, model, account or address. The same command asks it again."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Which question of which system this row answers."""
        return (self.system, self.question_id, self.repeat)

    @property
    def completeness(self) -> Completeness:
        """Whether the answer can be taken for what the system says; a refusal can."""
        if self.status == "failed":
            return "failed"
        return "degraded" if self.damage else "complete"

    @property
    def seconds_uncached(self) -> float:
        """About the wall time if no call had come out of the cache: what the cached ones once took is added."""
        own = self.conversation.own.cached_seconds if self.conversation else 0.0
        return round(self.seconds + own + (self.tree.cached_seconds if self.tree else 0.0), 3)

    @property
    def chat_calls(self) -> int:
        """Chat calls that were paid, those of the tree and those that led the conversation."""
        if self.tree is None and self.conversation is None:
            return sum(usage.calls for usage in self.paid or () if usage.kind == "chat")
        own = self.conversation.own.calls if self.conversation else 0
        return own + (self.tree.chat_calls if self.tree else 0)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of these calls."""
        if self.tree is None and self.conversation is None:
            return sum(usage.tokens for usage in self.paid or () if usage.kind == "chat")
        own = self.conversation.own.prompt_tokens + self.conversation.own.completion_tokens if self.conversation else 0
        return own + (self.tree.prompt_tokens + self.tree.completion_tokens if self.tree else 0)


Manifest = Mapping[str, object]
_ROW = TypeAdapter(RunRow)
_ROW_HEAD = f'{{"{FORMAT_KEY}":"{format_of("rows")}",'.encode()
"""How each line of the rows file begins."""


def newest_attempts(rows: Iterable[RunRow]) -> list[RunRow]:
    """The last of the rows for each question, system and repeat, in the order of the first."""
    return list({row.place: row for row in rows}.values())


SYNC_S = 1.0
"""Rows that a power cut may take, though not the end of a process, are those of so many seconds."""


class RunStore:
    """The rows of one run directory. Rows are appended whole: a process that dies loses none that was finished."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows_file = folder / "rows.jsonl"
        self._manifest_file = folder / "manifest.json"
        self._synced_at = time.monotonic()

    @contextmanager
    def held(self, *, shared: bool = False) -> Iterator[None]:
        """Work in the directory: alone, or with others that share the work as well.

        Raises:
            SettingsError: Another process works there alone, or would have to share; the message names it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        holder = self.folder / "run.lock.holder"
        # Not the library's one lock for a path and process: two runs of one process are as much in each other's way.
        lock = ReadWriteLock(self.folder / "run.lock", timeout=0, is_singleton=False)
        try:
            (lock.acquire_read if shared else lock.acquire_write)()
        except Timeout as error:
            named = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
            raise SettingsError(
                f"{self.folder} is being worked in by {named}. Wait for it, or give another --out. Processes share a "
                "run where for each of them JUDGETREE_MILVUS_URI is a server and JUDGETREE_CHECKPOINTS PostgreSQL."
            ) from error
        try:
            with refusing_full_disk(holder):
                holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
            yield
        finally:
            lock.release()
            lock.close()

    @contextmanager
    def setting_up(self, on_wait: Callable[[int, int, str], None] | None = None) -> Iterator[None]:
        """Do what one process must have done before another begins: manifest, index, tables.

        Args:
            on_wait: Told (0, 0, stage) if another process is at it, which is waited for.
        """
        lock = FileLock(self.folder / "setup.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if on_wait is not None:
                on_wait(0, 0, "waiting for another process")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Append while no other process does, and never behind the torn end that a killed one has left."""
        with FileLock(self.folder / "append.lock"):
            self.mend()
            yield

    def read_manifest(self) -> Manifest | None:
        """What the run was made of; None before its first start.

        Raises:
            LoadingError: The file is damaged, or has another format.
        """
        if not self._manifest_file.exists():
            return None
        try:
            content = json.loads(self._manifest_file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise LoadingError(f"{self._manifest_file} is damaged ({error}). Give another --out.") from error
        _refuse_other_format(content, "run", where=f"The run in {self.folder}")
        return dict(content)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it holds what it held before.
        """
        written = {**manifest, FORMAT_KEY: format_of("run")}
        write_whole(self._manifest_file, json.dumps(written, indent=2, ensure_ascii=False, sort_keys=True) + "\n")

    def read_rows(self) -> list[RunRow]:
        """The newest attempt at each question, in the order in which they were first finished.

        Raises:
            LoadingError: See ``read_attempts``.
        """
        return newest_attempts(self.read_attempts())

    def read_attempts(self) -> list[RunRow]:
        """Every row, in the order in which they were finished.

        Raises:
            LoadingError: See ``RowTail.read_new``.
        """
        return RowTail(self).read_new()

    def append(self, row: RunRow) -> None:
        """Add a row; it survives the process as soon as this returns, and a power cut within ``SYNC_S`` seconds.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it holds the rows that it held before.
        """
        append_line(self.rows_file, _ROW_HEAD + _ROW.dump_json(row)[1:])

    def sync(self, *, at_once: bool = True) -> None:
        """Wait until what was appended survives a power cut too; not ``at_once``, if that is ``SYNC_S`` seconds ago.

        Raises:
            WritingError: The disk has refused it after all.
        """
        if at_once or time.monotonic() - self._synced_at > SYNC_S:
            TreeStore(self.folder).sync()
            sync_file(self.rows_file)
            self._synced_at = time.monotonic()

    def mend(self) -> None:
        """Cut off the torn ends that a kill in the middle of a write has left in the files of rows and of trees."""
        cut_torn_end(self.rows_file)
        TreeStore(self.folder).mend()


class RowTail:
    """Reads the rows of a run directory as they are appended, by whichever process."""

    def __init__(self, store: RunStore) -> None:
        self._file = store.rows_file
        self._bytes_read = 0
        self._lines_read = 0

    def read_new(self) -> list[RunRow]:
        """The rows since the last call, at first all, in the order in which they were finished.

        A last line without its line break is left for the next call: it is being written, or was cut off by a kill.

        Raises:
            LoadingError: A line is damaged, or has another format.
        """
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._bytes_read)
            *lines, torn = file.read().split(b"\n")
            self._bytes_read = file.tell() - len(torn)
        rows = []
        for line in lines:
            self._lines_read += 1
            if not line.strip():
                continue
            try:
                if not line.startswith(_ROW_HEAD):
                    _refuse_other_format(json.loads(line), "rows", where=f"{self._file}, line {self._lines_read}")
                rows.append(_ROW.validate_json(line))
            except (ValueError, RecursionError) as error:
                fault = f"{self._file}, line {self._lines_read} is damaged: {_fault(error)}."
                raise LoadingError(f"{fault} Take that line out of the file; its question is asked again.") from error
        return rows


def _refuse_other_format(document: object, thing: Thing, *, where: str) -> None:
    found = document.get(FORMAT_KEY) if isinstance(document, dict) else None
    refuse_other_format(found, thing, where=where, remedy="Give another --out, and run the questions again.")


def _fault(error: Exception) -> str:
    return str(error.errors()[0]["msg"] if isinstance(error, ValidationError) else error)
