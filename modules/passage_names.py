"""Names of passages for people: the title of the document first, its file second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath


def title_of(metadata: Mapping[str, object]) -> str:
    """Return the title of a passage's document, or the place of its row in a table; ``""`` if its file says as much.

    >>> title_of({"source": "corpus.jsonl", "title": "Boilers"}), title_of({"source": "parts.csv", "row": 3})
    ('Boilers', 'parts, row 3')
    >>> title_of({"source": "norms/kv-133.md", "title": "kv-133"})
    ''
    """
    source, title = str(metadata.get("source") or ""), " ".join(str(metadata.get("title") or "").split())
    stem = PurePosixPath(source).stem
    if title not in ("", stem, source):
        return title
    row = metadata.get("row")
    return f"{stem}, row {row}" if stem and isinstance(row, int) else ""


def passage_name(source: str, title: str, chunk_id: str = "") -> str:
    """Return the short name of a passage: its title, else its file, else its id."""
    return title or source or chunk_id


def full_passage_name(source: str, title: str, chunk_id: str = "") -> str:
    """Return the name of a passage with its file.

    >>> full_passage_name("corpus.jsonl", "Boilers"), full_passage_name("kv-133.md", "")
    ('Boilers (corpus.jsonl)', 'kv-133.md')
    """
    return f"{title} ({source})" if title and source else passage_name(source, title, chunk_id)
