"""The decisive sentence of a passage: the one to show where there is room for one."""

from __future__ import annotations

import re
from collections import Counter

from ...modules.storage.texts import printable
from .layout import one_line

_SENTENCE_END = re.compile(r"(?<=[.!?][\s\"”’)\]])\s*(?=\S)|(?<=[。！？])|\n\s*\n")
_QUOTE = re.compile(r"[\"“”„«「『](?P<quote>[^\"“”„«»「」『』]{8,})[\"“”»」』]")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""A character of a script without blanks; two neighbours count as a word."""


def decisive_sentence(text: str, *, query: str, reason: str = "") -> str:
    """Return the sentence that the judge's reason quotes, else the one that shares most with the query.

    Shared words count the more, the longer they are and the fewer sentences hold them; the first of equal sentences
    wins. "… " stands before a sentence from further down.

    >>> decisive_sentence("It is big. The drum holds 40 l. It is red.", query="How much does the drum hold?")
    '… The drum holds 40 l.'
    """
    sentences = [line for part in _SENTENCE_END.split(printable(text)) if (line := one_line(part))]
    if not sentences:
        return ""
    place = _quoted_place(sentences, reason)
    if place is None:
        place = _nearest_place(sentences, query)
    return f"… {sentences[place]}" if place else sentences[0]


def _quoted_place(sentences: list[str], reason: str) -> int | None:
    folded = [sentence.casefold() for sentence in sentences]
    whole = "\n".join(folded)
    for found in _QUOTE.finditer(one_line(reason)):
        quote = found["quote"].strip(" .…").casefold()
        if quote in whole:
            return next(place for place, sentence in enumerate(folded) if quote in sentence)
    return None


def _nearest_place(sentences: list[str], query: str) -> int:
    asked = _words(query)
    shared = [_words(sentence) & asked for sentence in sentences]
    holders = Counter(word for words in shared for word in words)
    weights = [sum(len(word) / holders[word] for word in words) for words in shared]
    return weights.index(max(weights))


def _words(text: str) -> set[str]:
    words: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            words |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        else:
            words.add(word)
    return words
