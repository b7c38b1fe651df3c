"""The comparison of two search trees, for Python, the terminal and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

from ...modules.calls.usage import UsageTotals
from ..drawing.drawn import Drawn
from ..drawing.side_by_side import draw_diff_html, draw_diff_text
from ..threads.fingerprint import FORK_KEY
from ..tree.alignment import QueryPair
from ..tree.differences import Difference, differences_of
from ..tree.fork_record import Fork
from ..tree.nodes import ChunkNode, walk_chunks


@dataclass(frozen=True, kw_only=True)
class TreeDiff(Drawn):
    """Two search trees, aligned by query and chunk; a notebook shows them side by side.

    ::

        diff = session.tree("first").diff(session.tree("second"))
        print(diff.first)
        diff.to_html()
    """

    drawn_as = "two search trees"

    root: QueryPair
    usage_a: UsageTotals
    """What the first tree paid for."""
    usage_b: UsageTotals
    settings: Mapping[str, tuple[str, str]]
    """Entries of the two fingerprints that differ, by name, ``""`` where one lacks it."""

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """All differences: level by level what was found, judged and asked, then the answers from the deepest up."""
        return differences_of(self.root)

    @property
    def first(self) -> Difference | None:
        """Where the two searches part; None if they are alike."""
        return self.differences[0] if self.differences else None

    @property
    def flips(self) -> tuple[Difference, ...]:
        """The chunks that were judged otherwise for the same query."""
        return tuple(each for each in self.differences if each.kind == "verdict")

    @cached_property
    def gained(self) -> tuple[ChunkNode, ...]:
        """Chunks that only the second tree found, each once, in its order."""
        return _without(self._chunks_b, self._chunks_a)

    @cached_property
    def lost(self) -> tuple[ChunkNode, ...]:
        """Chunks that only the first tree found, each once, in its order."""
        return _without(self._chunks_a, self._chunks_b)

    @cached_property
    def _chunks_a(self) -> dict[str, ChunkNode]:
        return {chunk.chunk_id: chunk for _, chunk in walk_chunks(self.root.a)} if self.root.a else {}

    @cached_property
    def _chunks_b(self) -> dict[str, ChunkNode]:
        return {chunk.chunk_id: chunk for _, chunk in walk_chunks(self.root.b)} if self.root.b else {}

    def to_document(self) -> dict[str, object]:
        """Return the comparison as plain data for ``json.dumps``."""
        return {
            "threads": [node.thread_id if node else None for node in (self.root.a, self.root.b)],
            "first": asdict(self.first) if self.first else None,
            "differences": [asdict(each) for each in self.differences],
            "gained": [chunk.chunk_id for chunk in self.gained],
            "lost": [chunk.chunk_id for chunk in self.lost],
            "settings": {name: list(pair) for name, pair in self.settings.items()},
            "usage": [self.usage_a, self.usage_b],
        }

    def to_text(self, *, width: int = 100) -> str:
        """Draw the comparison for a terminal of ``width`` columns."""
        return draw_diff_text(self, width=width)

    def to_html(self) -> str:
        """Draw both trees side by side as one self-contained HTML page."""
        return draw_diff_html(self)

    def __repr__(self) -> str:
        return f"TreeDiff(differences={len(self.differences)}, first={self.first!r})"


def changed_settings(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the entries of two fingerprints that differ, by name, in the order of the names."""
    names: Iterable[str] = sorted(a.keys() | b.keys())
    return {name: (_setting(a, name), _setting(b, name)) for name in names if a.get(name) != b.get(name)}


def _setting(fingerprint: Mapping[str, str], name: str) -> str:
    return str(Fork.of_fingerprint(fingerprint) or "") if name == FORK_KEY else fingerprint.get(name, "")


def _without(chunks: Mapping[str, ChunkNode], others: Mapping[str, ChunkNode]) -> tuple[ChunkNode, ...]:
    return tuple(chunk for chunk_id, chunk in chunks.items() if chunk_id not in others)
