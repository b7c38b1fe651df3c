"""Labels by hand in a run directory: ``labels.jsonl``, one line for each time that an annotator scored a passage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from ...graphs.tree.nodes import VerdictLabel
from ...modules.digests import text_digest
from ...modules.errors import LoadingError
from ...modules.judge.contract import Score
from ...modules.reading.plausible_numbers import MOST, RecordReader
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named
from ...modules.storage.formats import FORMAT_KEY, check_format, format_of
from ...modules.storage.texts import check_text
from ..rows.json_lines import append_line, cut_torn_end, sync_file

_ADVICE = "Name another --labels, or delete it."
_POLL_S = 0.01
MAX_NOTE_BYTES = 4_000
"""Most bytes of a note, as UTF-8."""


@dataclass(frozen=True, kw_only=True)
class FoundPassage:
    """A passage that some query of a run found."""

    query: str
    """The query that found it: a question of the data set, or a supplementary question."""
    text: str
    source: str
    chunk_id: str
    question_id: str
    """Id of the data set's question."""
    question: str
    """The data set's question; ``query`` may be a supplementary question of it."""
    system: str
    thread_id: str
    """Root thread of the tree."""
    node: str
    """Thread of the query, a node of the tree."""
    verdict: VerdictLabel
    """The judge's verdict in the run; "pending" for a system without a judge."""
    p_needed: float | None = None
    """The judge's probability that it holds a needed fact; None if it gave none."""

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits by query and text, so that one label serves every run that found the pair."""
        return passage_id(self.query, self.text)


def passage_id(query: str, text: str) -> str:
    """Return the id of a passage for a query; white space does not change it.

    >>> passage_id("Who?", "Ada  wrote it.") == passage_id("Who? ", "Ada wrote it.")
    True
    """
    parts = (" ".join(part.split()) for part in (query, text))
    return text_digest(*parts).hex()[:16]


@dataclass(frozen=True, kw_only=True)
class Label:
    """One annotator's score of one passage; a later label by the same annotator replaces it."""

    annotator: str
    score: Score | None
    """2 = answers the query alone, 1 = holds a needed fact, 0 = does not help; None = the annotator cannot tell."""
    note: str = ""
    created: str
    """Date and time, ISO 8601, UTC."""
    seconds: float | None = None
    """Time that the annotator took; None if unknown."""
    passage: FoundPassage


_LABEL = RecordReader(Label, least=-MOST)
_HEAD = f'{{"{FORMAT_KEY}":"{format_of("labels")}",'.encode()
"""Start of each line of the file."""


class LabelStore:
    """The labels of one run directory. Several processes may append at a time; a kill loses no saved label."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "labels.jsonl"

    def append(self, label: Label) -> None:
        """Append a label; it survives a power cut as soon as this returns.

        Raises:
            SettingsError: Its note is too long, or holds what no file can.
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
        """
        check_text("The note", label.note, max_bytes=MAX_NOTE_BYTES)
        with FileLock(self.file.with_suffix(".lock"), poll_interval=_POLL_S):
            cut_torn_end(self.file)
            append_line(self.file, _HEAD + _LABEL.dump_json(label)[1:])
            sync_file(self.file)

    def read(self) -> list[Label]:
        """Read every label, oldest first, replaced ones included; a last line cut off by a kill is skipped.

        Raises:
            LoadingError: Another line is damaged, or has another format.
        """
        if not self.file.exists():
            return []
        data = read_named(self.file, what="the labels in", advice=_ADVICE, max_bytes=MAX_DATA_BYTES)
        lines = data.split(b"\n")
        return [self._label_in(line, number) for number, line in enumerate(lines[:-1], start=1) if line.strip()]

    def _label_in(self, line: bytes, number: int) -> Label:
        where = f"{self.file}, line {number}"
        try:
            if not line.startswith(_HEAD):
                document = json.loads(line)
                found = document.get(FORMAT_KEY) if isinstance(document, dict) else None
                check_format(found, "labels", where=where, remedy="Move the file away, and label again.")
            return _LABEL.validate_json(line)
        except (ValueError, RecursionError) as error:
            fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise LoadingError(
                f"{where} is damaged: {fault}. Delete it; that label is lost, the others stay."
            ) from error


def newest_labels(labels: Iterable[Label]) -> Mapping[tuple[str, str], Label]:
    """Return the last label of each annotator on each passage, by (passage id, annotator), in order of their first."""
    return {(label.passage.id, label.annotator): label for label in labels}
