"""The corpus of a prebuilt index, of which only the lines that were found are read."""

from __future__ import annotations

import codecs
import json
import threading
import weakref
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import CollectionError, LoadingError, faults_of
from ..progress import StageProgress
from ..storage.file_locks import private_lock
from ..storage.texts import storable
from ..trust.private import private_folder
from .digests import FileDigests, FileState, digest_reading
from .lines import Starts, found_starts, open_starts, starts_file

_MOST_BYTES = 1 << 26
"""Most bytes of one line."""


@dataclass(frozen=True, kw_only=True)
class CorpusLine:
    """One line of a corpus."""

    id: str
    title: str
    """``""`` if the line has none."""
    text: str
    """The text without the title."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | int
    title: str | None = None
    text: str | None = None
    contents: str | None = None


class Corpus:
    """A file of JSON Lines that is read line by line; safe for many threads."""

    def __init__(self, state: FileState, starts: Starts, digest: str) -> None:
        """Open the file ``state.path``, whose lines begin at ``starts`` and whose SHA-256 is ``digest``."""
        self.state = state
        self.digest = digest
        self._starts = starts
        self._file = state.path.open("rb")
        self._reading = threading.Lock()
        self.close = weakref.finalize(self, self._file.close)
        """Close the file."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    def passage(self, row: int) -> CorpusLine:
        """Return the passage of a line, counted from 0 without the blank ones.

        Raises:
            CollectionError: The line is no passage, or cannot be read.
        """
        start, end = int(self._starts[row]), int(self._starts[row + 1])
        try:
            with self._reading:
                self._file.seek(start)
                content = self._file.read(min(end - start, _MOST_BYTES))
            return _passage(_read_line(content if start else content.removeprefix(codecs.BOM_UTF8)))
        except (OSError, ValidationError) as error:
            what = faults_of(error)[0] if isinstance(error, ValidationError) else error.strerror
            if end - start > _MOST_BYTES:
                what = f"it has {end - start:,} bytes, at most {_MOST_BYTES:,} are read"
            raise CollectionError(
                f"Line {row + 1} of {self.state.path} is no passage: {what}. Allowed: a JSON object with id and "
                "contents (title, line break, text), or with id, title and text."
            ) from error


def open_corpus_file(path: Path, folder: Path, digests: FileDigests, on_progress: StageProgress | None) -> Corpus:
    """Open a corpus; its lines are found at the first time, and kept in ``folder``.

    Raises:
        LoadingError: The file cannot be read, or has no line.
        CollectionError: Its first line is no passage.
        WritingError: The lines could not be written.
    """
    state = FileState.of(path)
    private_folder(folder)
    with private_lock(folder / "lock"):  # the next process finds what this one has made
        digest = digests.known(state)
        starts = None if digest is None else open_starts(starts_file(folder, digest), state.size)
        if digest is None or starts is None:
            starts, digest = found_starts(folder, state.size, partial(digest_reading, state, on_progress))
            digests.keep(state, digest)
    if len(starts) < 2:
        raise LoadingError(f"The corpus {path} is empty. Give JSON Lines, a passage a line.")
    corpus = Corpus(state, starts, digest)
    corpus.passage(0)
    return corpus


def _read_line(content: bytes) -> _Line:
    """Read a line; half of a surrogate pair, which Python writes as ``\\ud800`` and pydantic refuses, becomes ``?``."""
    try:
        return _Line.model_validate_json(content)
    except ValidationError:
        try:
            fields = json.loads(content.decode())
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise
        texts = {name: storable(value) if isinstance(value, str) else value for name, value in fields.items()}
        return _Line.model_validate(texts)


def _passage(line: _Line) -> CorpusLine:
    title, text = line.title or "", line.text or ""
    if line.contents is not None and not text:
        first, line_break, rest = line.contents.partition("\n")
        title, text = (title or first, rest) if line_break else (title, line.contents)
    return CorpusLine(id=storable(str(line.id)), title=storable(_unquoted(title.strip())), text=storable(text))


def _unquoted(title: str) -> str:
    """Take off the quotation marks that FlashRAG's corpus has around each title."""
    return title[1:-1] if len(title) > 2 and title[0] == title[-1] == '"' else title
