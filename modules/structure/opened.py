"""Graphs that are read at their first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ..index.index import Index
from .graph_files import GraphFiles
from .passage_graph import PassageGraph

Read = TypeVar("Read")


class OpenedGraph(Generic[Read]):
    """What is made of the graph of a collection, once for each content that the collection has."""

    def __init__(self, index: Index, home: Path, kind: str, make: Callable[[PassageGraph], Read]) -> None:
        """``home`` is the data folder that has the graph; ``make`` takes the graph as it was read."""
        self._index = index
        self._home = home
        self._kind = kind
        self._make = make
        self._opened: tuple[str, Read] | None = None
        self._opening = threading.Lock()

    def known(self) -> Read:
        """Return what is open, else that of the present content.

        Raises:
            CollectionError: As in ``present``.
        """
        opened = self._opened
        return self.present() if opened is None else opened[1]

    def present(self) -> Read:
        """Return that of the present content, read at the first call and after each change of the collection.

        Raises:
            CollectionError: The collection has no such graph, or has changed since it was made.
        """
        content = self._index.content_digest()
        with self._opening:
            if self._opened is None or self._opened[0] != content:
                made = self._make(GraphFiles.of(self._index, self._home).load(self._kind, content))
                self._opened = content, made
            return self._opened[1]
