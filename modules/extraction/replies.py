"""The triples in the reply of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from ..llm.json_reply import parse_json_reply
from ..storage.texts import printable
from ..structure.triples import Triple
from .prompts import MOST_TRIPLES

MOST_LETTERS = 150
"""Most characters of a subject, relation or object; a longer one is a sentence."""

_MOST_ENTRIES = 1_000
"""Most entries of a reply that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The triples of one passage."""

    triples: tuple[Triple, ...]
    """In the order of the reply, each once; at most ``MOST_TRIPLES``."""
    dropped: int
    """Entries of the reply that were left out: malformed, too long, repeated, or too many."""


class _Reply(BaseModel):
    triples: list[object]


def parse_triples(reply: str, *, cut_off: bool = False) -> Extracted:
    """Parse the triples in a reply; what is no usable triple is dropped, and of a ``cut_off`` reply the last one.

    >>> parse_triples('{"triples": [["Ada", "born in", "Oslo"], ["Ada", "is"]]}')
    Extracted(triples=(Triple(subject='Ada', relation='born in', object='Oslo'),), dropped=1)

    Raises:
        ReplyProblem: The reply holds no JSON object with a list of triples.
    """
    entries = parse_json_reply(reply, _Reply).triples
    whole = entries[:-1] if cut_off else entries
    triples = list(dict.fromkeys(_usable(whole[:_MOST_ENTRIES])))[:MOST_TRIPLES]
    return Extracted(triples=tuple(triples), dropped=len(entries) - len(triples))


def _usable(entries: list[object]) -> Iterator[Triple]:
    for entry in entries:
        parts = _parts(entry)
        texts = [" ".join(printable(str(part)).split()) for part in parts if isinstance(part, str | int | float)]
        if len(texts) != 3 or not all(0 < len(text) <= MOST_LETTERS for text in texts):
            continue
        triple = Triple(*texts)
        if triple.subject.casefold() != triple.object.casefold():
            yield triple


def _parts(entry: object) -> list[object]:
    """Return the parts of a list, or of an object with the keys that models use."""
    if isinstance(entry, dict):
        relation = entry.get("relation", entry.get("predicate"))
        return [entry.get("subject"), relation, entry.get("object")]
    return entry if isinstance(entry, list) else []
