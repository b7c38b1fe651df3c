"""A run directory: its manifest, one row for each finished question, and its locks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from pydantic import ValidationError

from ...graphs.threads.recording import RUN_FILE
from ...graphs.threads.state import AnswerStatus
from ...modules.calls.prices import SIMULATED, ModelUsage
from ...modules.caveats.kinds import Caveats
from ...modules.errors import LoadingError
from ...modules.reading.plausible_numbers import RecordReader
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named
from ...modules.storage.file_locks import lock_folder
from ...modules.storage.formats import FORMAT_KEY, Thing, check_format, format_of
from ..metrics.context import ContextFigures
from ..metrics.damage import OWN_FAILURES, Damage
from ..metrics.tree import TreeFigures
from .json_lines import append_line, cut_torn_end, sync_file
from .trees import TreeStore
from .turn_facts import TurnFacts
from .two_copies import copy_of, mend_from_copy, read_either, write_twice

Completeness = Literal["complete", "degraded", "failed"]
"""complete: answered without damage from outside. degraded: answered with such damage. failed: not answered, or without
any verdict or rerank of the model whose every call failed."""
INCOMPLETE: tuple[Completeness, ...] = ("failed", "degraded")
"""The others than complete, the gravest first."""
Place = tuple[str, str, int]
"""System, id of a question or dialogue, and repeat."""


@dataclass(frozen=True, kw_only=True)
class RowChunk:
    """A chunk as found by one query of the tree."""

    key: str
    """Key of its document, as in ``EvalQuestion.supporting``."""
    chunk_id: str
    depth: int
    """Depth of the query in the tree; 0 for the question itself."""
    rank: int
    verdict: str
    """"0", "1", "2", or why there is no score; "pending" for a system without a judge."""
    confidence: float | None = None
    p_needed: float | None = None
    """Probability that it holds a needed fact; None if the judge gave none."""
    p_calibrated: bool = False
    """Whether that was fitted on judgements with known answers."""
    also: tuple[str, ...] = ()
    """Keys of further documents that hold its text, which the retriever left out for it; in the order of the search."""

    is_linked: bool = False
    """Whether a link led to it, so that it stands behind what the query found and has no rank in its search. False in
    rows of older versions."""

    @property
    def keys(self) -> tuple[str, ...]:
        """``key`` and ``also``."""
        return (self.key, *self.also)


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """The outcome of one question: facts without scores, which reports compute."""

    system: str
    question_id: str
    repeat: int
    attempt: int
    question: str
    prediction: str
    """``""`` if the question failed."""
    status: AnswerStatus
    error: str
    """Why it failed, though it may have an answer (see ``Completeness``); ``""`` if it did not."""
    thread_id: str
    """Thread of the search; for a turn of a conversation, its request id, which also names its tree."""
    seconds: float
    """Wall time, waiting for the model included."""
    tree: TreeFigures | None
    """None if the question failed before it had a tree, or was answered without a search."""
    chunks: tuple[RowChunk, ...]
    """Chunks of all queries of the tree, the question's own first, by rank."""
    paid: tuple[ModelUsage, ...] | None = None
    """Usage of each model by the tree and the conversation, or by the call journal if an error left neither; None if
    nothing was recorded.
    """
    conversation: TurnFacts | None = None
    """None for a question outside a conversation, or for a turn that left no facts."""
    damage: Damage = field(default_factory=dict)
    """What faults took from the answer, with counts; see ``metrics.damage``."""
    caveats: Caveats = field(default_factory=dict)
    """What makes replies to its model calls worse than they look, with counts of calls; see ``caveats.kinds``. No part
    of ``completeness``; replies that ``damage`` counts are left out. Empty in rows of older versions."""
    code: str = ""
    """Id of the code version that made the row; see ``code_version.code_versions_in``."""
    context: ContextFigures | None = None
    """None if no reader saw evidence, or in rows of older versions."""
    setup_failed: bool = False
    """Whether a ``ModelSetupError`` (key, model, account, address) failed it. The same command asks it again."""

    @property
    def place(self) -> Place:
        """System, question and repeat of the row."""
        return (self.system, self.question_id, self.repeat)

    @property
    def keys_by_chunk(self) -> Mapping[str, frozenset[str]]:
        """The keys of each chunk's documents by chunk id, as all queries of the tree found them."""
        found: dict[str, frozenset[str]] = {}
        for chunk in self.chunks:
            found[chunk.chunk_id] = found.get(chunk.chunk_id, frozenset()).union(chunk.keys)
        return found

    @property
    def completeness(self) -> Completeness:
        """How far the answer represents the system; a refusal can be complete."""
        if self.status == "failed" or self.error:
            return "failed"
        return "complete" if OWN_FAILURES.issuperset(self.damage) else "degraded"

    @property
    def seconds_uncached(self) -> float:
        """Wall time plus the recorded seconds of calls that the cache answered."""
        own = self.conversation.own.cached_seconds if self.conversation else 0.0
        return round(self.seconds + own + (self.tree.cached_seconds if self.tree else 0.0), 3)

    @property
    def chat_usage(self) -> tuple[ModelUsage, ...]:
        """The part of ``paid`` by chat models; empty if nothing was recorded."""
        return tuple(usage for usage in self.paid or () if usage.kind == "chat")

    @property
    def uncached_chat_usage(self) -> tuple[ModelUsage, ...]:
        """``chat_usage`` as if no call had come from the cache."""
        return tuple(usage.as_if_uncached() for usage in self.chat_usage)

    @property
    def cached_llm_calls(self) -> int:
        """Chat calls that the cache answered."""
        return sum(usage.cached_calls for usage in self.chat_usage if usage.model != SIMULATED)

    @property
    def paid_llm_calls(self) -> int:
        """Paid chat calls of the tree and of the conversation."""
        return sum(usage.calls for usage in self.chat_usage)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of ``paid_llm_calls``."""
        return sum(usage.tokens for usage in self.chat_usage)


Manifest = Mapping[str, object]
_ROW = RecordReader(RunRow)
_ROW_HEAD = f'{{"{FORMAT_KEY}":"{format_of("rows")}",'.encode()
"""Start of each line of the rows file."""


def part_of(
    manifest: Manifest, name: Literal["experiment", "identity", "settings", "index", "judge", "questions_read", "gold"]
) -> Mapping[str, object]:
    """Return a part of a manifest; empty if it is missing."""
    part = manifest.get(name)
    return part if isinstance(part, Mapping) else {}


def newest_attempts(rows: Iterable[RunRow]) -> list[RunRow]:
    """Keep the last row of each question, system and repeat, in the order of their first rows."""
    return list({row.place: row for row in rows}.values())


_ROWS_ADVICE = "Name another folder."
_IN_USE = "Wait for it, or name another folder. Several processes at once ask by `judgetree eval run --workers N`."
SYNC_S = 1.0
"""Seconds of rows that a power cut may take; a kill takes none."""


class RunStore:
    """The rows of one run directory, appended as whole lines: a kill loses no finished row.

    ::

        for row in RunStore(Path("runs/a")).read_rows():
            print(row.system, row.question, row.prediction)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows_file = folder / "rows.jsonl"
        self.transcripts_file = folder / RUN_FILE
        self._manifest_file = folder / "manifest.json"
        self._synced_at = time.monotonic()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory for this process.

        Raises:
            SettingsError: Another process holds the lock; the message names it.
        """
        with lock_folder(self.folder, remedy=_IN_USE):
            yield

    def read_manifest(self) -> Manifest | None:
        """Read what the run was made of; None before its first start.

        Raises:
            LoadingError: The file is damaged, or has another format.
        """
        content = read_either(self._manifest_file, what="the manifest", advice=self._repair())
        if content is None:
            return None
        _check_declared_format(content, "run", where=f"The run in {self.folder}")
        return dict(cast(Manifest, content))

    def _repair(self) -> str:
        if not self.rows_file.exists():
            return "Delete it, and repeat the command."
        return (
            f"The rows in {self.rows_file.name} are whole. Move the manifest away and repeat the command that made the "
            "run, with the same options: it keeps them, and asks only the questions that have none. Or name another "
            "folder."
        )

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, and a copy, over the old ones.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
        """
        written = {**manifest, FORMAT_KEY: format_of("run")}
        write_twice(self._manifest_file, json.dumps(written, indent=2, ensure_ascii=False, sort_keys=True) + "\n")

    def start_over(self) -> None:
        """Delete manifest, rows, trees and transcripts, for a run that never had an answer."""
        # The manifest last: a kill in between leaves no rows without it, which the next run would take for its own.
        data = (self.rows_file, self.folder / "trees.jsonl", self.transcripts_file)
        for file in (*data, copy_of(self._manifest_file), self._manifest_file):
            file.unlink(missing_ok=True)

    def read_rows(self) -> list[RunRow]:
        """Read the newest attempt at each question, in the order in which the questions first finished.

        Raises:
            LoadingError: A line is damaged, or has another format.
        """
        return newest_attempts(self.read_attempts())

    def read_attempts(self) -> list[RunRow]:
        """Read every row, in the order in which they finished.

        Raises:
            LoadingError: A line is damaged, or has another format.
        """
        if not self.rows_file.exists():
            return []
        data = read_named(self.rows_file, what="the rows in", advice=_ROWS_ADVICE, max_bytes=MAX_DATA_BYTES)
        *lines, _ = data.split(b"\n")  # behind the last line break a kill has torn a line
        return [self._row(line, number) for number, line in enumerate(lines, start=1) if line.strip()]

    def _row(self, line: bytes, number: int) -> RunRow:
        where = f"{self.rows_file}, line {number}"
        try:
            if not line.startswith(_ROW_HEAD):
                _check_declared_format(json.loads(line), "rows", where=where)
            return _ROW.validate_json(line)
        except (ValueError, RecursionError) as error:
            fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise LoadingError(
                f"{where} is damaged: {fault}. Take that line out of the file; its question is asked again."
            ) from error

    def append(self, row: RunRow) -> None:
        """Append a row; it survives a kill as soon as this returns, and a power cut within ``SYNC_S`` seconds.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
        """
        append_line(self.rows_file, _ROW_HEAD + _ROW.dump_json(row)[1:])

    def sync(self, *, at_once: bool = True) -> None:
        """Wait until appended rows survive a power cut; without ``at_once``, only every ``SYNC_S`` seconds.

        Raises:
            WritingError: The disk reported an error.
        """
        if at_once or time.monotonic() - self._synced_at > SYNC_S:
            TreeStore(self.folder).sync()
            sync_file(self.rows_file)
            self._synced_at = time.monotonic()

    def mend(self) -> None:
        """Cut off the torn last lines that a kill left in the files of rows and trees; repair a damaged manifest."""
        mend_from_copy(self._manifest_file)
        cut_torn_end(self.rows_file)
        TreeStore(self.folder).mend()


def _check_declared_format(document: object, thing: Thing, *, where: str) -> None:
    found = document.get(FORMAT_KEY) if isinstance(document, dict) else None
    check_format(found, thing, where=where, remedy="Name another folder, and run the questions again.")
