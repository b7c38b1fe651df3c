"""The words of a neighbourhood, for all of its forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...modules.language.letters import CJK, is_cjk
from ...modules.structure.neighbourhood import Neighbourhood
from ...modules.structure.titles import words_of
from ..drawing.words import count_of

_GAP = r"[^\w\n]{0,3}"
_PAIRS = (("(", ")"), ("（", "）"), ("[", "]"), ("《", "》"), ("“", "”"), ("「", "」"))


@dataclass(frozen=True, kw_only=True)
class PassageText:
    """What is shown of a passage."""

    title: str
    """Its title, else its file."""
    text: str


def format_neighbourhood(found: Neighbourhood) -> str:
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
    words = words_of(phrase)
    if not words:
        return phrase
    found = re.search(_GAP.join(map(re.escape, words)).join((_bound(words[0], "<"), _bound(words[-1]))), written, re.I)
    return phrase if found is None else found[0] + _closing(found[0], written[found.end() :])


def _bound(word: str, behind: str = "") -> str:
    """Return a pattern for the end of a word, or its start with ``behind``; Chinese words have no bounds."""
    return "" if is_cjk(word[0]) else rf"(?{behind}![^\W_{CJK}])"


def _closing(found: str, rest: str) -> str:
    """Return the bracket or quote that closes one within a phrase, if it comes next: of "Up (film" it is ")"."""
    is_open = any(found.count(left) > found.count(right) and rest.startswith(right) for left, right in _PAIRS)
    return rest[:1] if is_open else ""
