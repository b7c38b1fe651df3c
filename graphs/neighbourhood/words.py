"""The words of a neighbourhood, for all of its forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...modules.structure.neighbourhood import Neighbourhood
from ...modules.structure.titles import words_of
from ..drawing.words import count_of


@dataclass(frozen=True, kw_only=True)
class PassageText:
    """What is shown of a passage."""

    title: str
    """Its title, else its file."""
    text: str


def neighbourhood_words(found: Neighbourhood) -> str:
    """Return how much is shown: "graph triples: 5 passages, 9 phrases, 4 relations shown, 120 more reached"."""
    passages = sum(place.kind == "passage" for place in found.places)
    relations = sum(bool(bond.relation) for bond in found.bonds)
    related = f", {count_of(relations, 'relation')}" if relations else ""
    more = f", {found.left_out:,} more reached" if found.left_out else ""
    phrases = count_of(len(found.places) - passages, "phrase")
    return f"graph {found.kind}: {count_of(passages, 'passage')}, {phrases}{related} shown{more}"


def shown_phrases(found: Neighbourhood, texts: Mapping[str, PassageText]) -> dict[int, str]:
    """Return each phrase by its node as the first of the texts writes it, else as the graph does.

    A graph holds phrases without letter case and punctuation.
    """
    written = "\n".join([found.query, *(f"{each.title}\n{each.text}" for each in texts.values())])
    return {place.node: _as_written(place.name, written) for place in found.places if place.kind == "phrase"}


def _as_written(phrase: str, written: str) -> str:
    words = [re.escape(word) for word in words_of(phrase)]
    match = re.search(r"[^\w\n]{0,3}".join(words), written, re.IGNORECASE) if words else None
    return match[0] if match else phrase
