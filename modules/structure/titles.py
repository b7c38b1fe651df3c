"""The titles of documents, and where a text names them: no model, in time linear in the text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath

from ..index.schema import STOP_WORDS
from ..language.folding import folded
from ..language.letters import CJK
from .passages import Passage

MOST_WORDS = 16
"""Longest title in words; a Chinese, Japanese or Korean letter counts as one."""

_TOKEN = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_HEADING = re.compile(r"\s*(?:#+\s+)?(\S[^\r\n]{0,99})(?=[\r\n]|$)")
_SENTENCE_END = (".", "!", "?", ":", ";", ",", "。", "！", "？", "：", "；", "，")
_PARENTHESES = re.compile(r" ?[(（][^()（）]*+[)）]\s*$")
_DESIGNATION = re.compile(rf"(?=[^\s{CJK}]*[A-Za-z])(?=[^\s{CJK}]*\d)[^\s{CJK}]+")
_STOP_WORDS = frozenset(STOP_WORDS)

Words = tuple[str, ...]


def words_of(text: str) -> list[str]:
    """Return the words of a text as written, folded; each Chinese, Japanese or Korean letter is one.

    >>> words_of("KV-315 见《结构》")
    ['KV', '315', '见', '结', '构']
    """
    return _TOKEN.findall(folded(text))


def names_of(title: str) -> list[str]:
    """Return the names under which a text may mean a title: itself, without parentheses, its designation, the rest.

    >>> names_of("KV-233 Protective coatings"), names_of("Up (2009 film)")
    (['KV-233 Protective coatings', 'KV-233', 'Protective coatings'], ['Up (2009 film)', 'Up'])
    """
    title = " ".join(title.split())
    names = [title, _PARENTHESES.sub("", title)]
    if found := _DESIGNATION.match(title):
        rest = title[found.end() :].strip()
        names += [found[0].rstrip(".,:;"), rest] if rest else []
    return [name for name in dict.fromkeys(names) if _may_be_named(name)]


def _may_be_named(name: str) -> bool:
    """Whether a name says enough: a letter, not stop words alone, and not too many words."""
    words = [word.casefold() for word in words_of(name)]
    if not words or len(words) > MOST_WORDS or all(word in _STOP_WORDS or word.isdigit() for word in words):
        return False
    return sum(map(len, words)) > 1


@dataclass(frozen=True, kw_only=True)
class TitledChunks:
    """The chunks that share a title: of a file, or of one row of a file of many."""

    title: str
    chunk_ids: tuple[str, ...]
    """In the order of the text."""


def documents_of(passages: Iterable[Passage]) -> list[TitledChunks]:
    """Return the documents that have a title, in the order of source and title.

    It is the chunk's metadata ``title``, else the first line of a file, if it is short and no sentence, else the file's
    name, if it has several words or a digit.
    """
    titled: defaultdict[tuple[str, str], list[Passage]] = defaultdict(list)
    untitled: defaultdict[str, list[Passage]] = defaultdict(list)
    for each in passages:
        given = each.metadata.get("title")
        if isinstance(given, str) and given.strip():
            titled[each.source, given.strip()].append(each)
        else:
            untitled[each.source].append(each)
    for source, chunks in untitled.items():
        if title := _file_title(source, min(chunks, key=_place)):
            titled[source, title] += chunks
    return [
        TitledChunks(title=title, chunk_ids=tuple(each.chunk_id for each in sorted(chunks, key=_place)))
        for (_, title), chunks in sorted(titled.items())
    ]


def _file_title(source: str, first: Passage) -> str:
    if _place(first)[0] == 0 and (heading := _HEADING.match(first.text)):
        line = heading[1].strip().rstrip("#").strip()
        if line and not line.endswith(_SENTENCE_END):
            return line
    words = words_of(PurePath(source).stem.replace("_", " "))
    return " ".join(words) if len(words) > 1 or any(word.isdigit() for word in words) else ""


def _place(passage: Passage) -> tuple[int, str]:
    start = passage.metadata.get("start_index")
    return (start if isinstance(start, int) else 0), passage.chunk_id


class TitleFinder:
    """Finds names in texts: the longest first, at the bounds of words, one of a single word by its letter case."""

    def __init__(self, names: Iterable[str]) -> None:
        """``names`` are looked for, each once; those that differ in case or marks alone are found together."""
        self._names: dict[Words, dict[str, None]] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in names:
            words = tuple(word.casefold() for word in words_of(name))
            if words:
                self._names.setdefault(words, {})[name] = None
                lengths[words[0]].add(len(words))
        self._lengths = {first: tuple(sorted(found, reverse=True)) for first, found in lengths.items()}

    def names_in(self, text: str) -> Iterator[str]:
        """Yield the names in a text as they come, as often as they come; none lies within another."""
        return chain.from_iterable(self.mentions_in(text))

    def mentions_in(self, text: str) -> Iterator[list[str]]:
        """Yield the names of each place of a text that names any: several if they differ in case or marks alone."""
        written = words_of(text)
        words = [word.casefold() for word in written]
        at = 0
        while at < len(words):
            found, length = self._at(written, words, at)
            if found:
                yield found
            at += length

    def _at(self, written: Sequence[str], words: Sequence[str], at: int) -> tuple[list[str], int]:
        for length in self._lengths.get(words[at], ()):
            names = list(self._names.get(tuple(words[at : at + length]), ()))
            if names and length == 1:  # "House" is a title, "house" a word
                names = [name for name in names if words_of(name)[0] == written[at]]
            if names:
                return names, length
        return [], 1


def common(mentions: Mapping[str, int], passages: int) -> set[str]:
    """Return the names that are named in so many passages that they tell little: over 1 %, and over 20.

    ``mentions`` is the number of passages of other documents that name each.
    """
    return {name for name, count in mentions.items() if count > max(20, passages // 100)}
