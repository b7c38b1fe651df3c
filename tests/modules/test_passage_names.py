"""Names of passages: the title first, the file second, and one name where they say the same."""

from __future__ import annotations

import pytest

from judgetree.graphs.drawing.words import format_origin
from judgetree.graphs.tree.nodes import ChunkNode
from judgetree.modules.passage_names import full_passage_name, passage_name, title_of

NAMES: list[tuple[dict[str, object], str, str]] = [
    ({"source": "corpus.jsonl", "title": "Boilers"}, "Boilers", "Boilers (corpus.jsonl)"),
    ({"source": "corpus.jsonl", "title": "Two\nlines "}, "Two lines", "Two lines (corpus.jsonl)"),
    ({"source": "norms/kv-133.md", "title": "kv-133"}, "norms/kv-133.md", "norms/kv-133.md"),
    ({"source": "parts.csv", "title": "parts", "row": 3}, "parts, row 3", "parts, row 3 (parts.csv)"),
    ({"source": "parts.csv", "title": "Bolts", "row": 3}, "Bolts", "Bolts (parts.csv)"),
    ({"source": "Boilers", "title": "Boilers"}, "Boilers", "Boilers"),
    ({"source": "https://example.org/a", "title": "Boilers"}, "Boilers", "Boilers (https://example.org/a)"),
    ({"title": "Boilers"}, "Boilers", "Boilers"),
    ({"source": None, "title": None, "row": 1}, "c1", "c1"),
]
"""Metadata, the short name and the name with the file; "c1" is the id of the chunk."""


@pytest.mark.parametrize(("metadata", "short", "full"), NAMES)
def test_the_title_comes_first_and_the_file_second(metadata: dict[str, object], short: str, full: str) -> None:
    source = str(metadata.get("source") or "")
    title = title_of(metadata)
    assert (passage_name(source, title, "c1"), full_passage_name(source, title, "c1")) == (short, full)
    chunk = ChunkNode(chunk_id="c1", text="x", metadata={**metadata, "rank": 0}, sub_runs=())
    assert chunk.name == short
    assert format_origin(chunk).endswith(full if full != "c1" else "#1")
