"""The search trees of a run directory: ``trees.jsonl``, one line for each finished question with a tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

from ...graphs.rag.search_tree import SearchTree
from ...graphs.threads.recording import RUN_FILE, Recording
from ...modules.errors import LoadingError, reason_of
from ...modules.reading.regular_files import lines_of, open_regular
from .json_lines import append_line, cut_torn_end, sync_file

_REMEDY = "Take that line out of the file; the rows keep all scores."
_MAX_TREE_BYTES = 128_000_000
_HEAD = re.compile(rb'\{"thread_id":("(?:[^"\\]|\\.)*"),"tree":')


class TreeStore:
    """The trees of one run directory, by thread id.

    A line is ``{"thread_id":…,"tree":…}`` with a ``SearchTree.to_json``. It is appended before the row of its question,
    so a kill between the two may leave a tree without a row, or write it twice. The last line of a thread counts.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "trees.jsonl"
        self._transcripts = Recording(file=folder / RUN_FILE).place_for("")
        self._places: dict[str, int] = {}
        self._indexed_bytes = 0

    def append(self, thread_id: str, tree: SearchTree) -> None:
        """Append a tree; it survives a kill as soon as this returns.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
            ValueError: A score or metadata value is not a finite number.
        """
        self.append_json(thread_id, tree.to_json())

    def append_json(self, thread_id: str, tree: str) -> None:
        """Append a tree that is JSON already, as ``SearchTree.to_json`` writes it; see ``append``."""
        line = f'{{"thread_id":{json.dumps(thread_id)},"tree":{tree}}}'
        append_line(self._file, line.encode("utf-8"))

    def read(self, thread_id: str) -> SearchTree | None:
        """Read the tree of a thread; None if the run has none. The first call scans the file, later ones seek.

        Raises:
            LoadingError: The tree, or a line before it, is damaged.
        """
        self._index()
        if thread_id not in self._places:
            return None
        with self._opened() as file:
            file.seek(self._places[thread_id])
            return self._tree_of(file.readline())

    def __contains__(self, thread_id: object) -> bool:
        """Whether the run has the tree of a thread; the first call scans the file.

        Raises:
            LoadingError: A line is damaged.
        """
        self._index()
        return thread_id in self._places

    def read_all(self) -> Iterator[tuple[str, SearchTree]]:
        """Read the trees of all threads, one at a time, in file order; a last line cut off by a kill is skipped.

        Raises:
            LoadingError: A tree is damaged.
        """
        self._index()
        if not self._places:
            return
        with self._opened() as file:
            for thread_id, place in sorted(self._places.items(), key=lambda item: item[1]):
                file.seek(place)
                yield thread_id, self._tree_of(file.readline())

    def sync(self) -> None:
        """Wait until appended trees survive a power cut.

        Raises:
            WritingError: The disk reported an error.
        """
        sync_file(self._file)

    def mend(self) -> None:
        """Cut off the torn last line that a kill left."""
        cut_torn_end(self._file)

    def _opened(self) -> BufferedReader:
        try:
            return open_regular(self._file)
        except (LoadingError, OSError) as error:
            raise LoadingError(
                f"Cannot read the trees in {self._file}: {reason_of(error)}. Name another folder."
            ) from error

    def _lines_of(self, file: BufferedReader) -> Iterator[bytes]:
        try:
            yield from lines_of(file, max_bytes=_MAX_TREE_BYTES)
        except LoadingError as error:
            raise LoadingError(f"Cannot read the trees in {self._file}: {reason_of(error)}. {_REMEDY}") from error

    def _index(self) -> None:
        """Note the offset of each line since the last call, since a run may still be appending."""
        if not self._file.exists():
            return
        with self._opened() as file:
            file.seek(self._indexed_bytes)
            for line in self._lines_of(file):
                if not line.endswith(b"\n"):
                    break
                head = _HEAD.match(line)
                if head is None:
                    raise LoadingError(
                        f"{self._file} is damaged at byte {self._indexed_bytes}: no thread_id. {_REMEDY}"
                    )
                self._places[json.loads(head[1])] = self._indexed_bytes
                self._indexed_bytes += len(line)

    def _tree_of(self, line: bytes) -> SearchTree:
        head = _HEAD.match(line)
        if head is None:
            raise LoadingError(f"{self._file} changed while it was read. Read it again.")
        try:
            tree = SearchTree.from_json(line[head.end() : -2].decode("utf-8"))
        except (LoadingError, UnicodeDecodeError) as error:
            raise LoadingError(f"{self._file}, thread {head[1].decode()}: {error} {_REMEDY}") from error
        return replace(tree, transcripts=self._transcripts)
