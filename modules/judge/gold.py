"""What is known of a data set's gold documents: which documents a query needs, and what may be asked on.

Experiments without a model judge and ask by it. A sub-question asks what is stated about a title; where the documents
after it are missing too, it says so, and then needs them all.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from ..calls.messages import version_of
from ..index.content import SOURCE
from ..retriever.search import ALSO_IN, ALSO_KEYS

SEE_GOLD = frozenset({"noisy", "oracle"})
"""Kinds of judges, as their fingerprints have them, that see gold documents or facts."""
_SUB_QUESTION = re.compile(r'What is stated about "(?P<title>.+)"(?:, and about the (?P<then>\d{1,9}) that follow)?\?')


def sub_question(title: str, *, then: int = 0) -> str:
    """Return the question for the document of a title, and for the ``then`` documents that follow from it.

    >>> sub_question("KS-1"), sub_question("KS-1", then=2)
    ('What is stated about "KS-1"?', 'What is stated about "KS-1", and about the 2 that follow?')
    """
    return f'What is stated about "{title}"{f", and about the {then} that follow" if then else ""}?'


@dataclass(frozen=True, kw_only=True)
class Need:
    """A document that a query needs; for a sub-question, any gold document of that title.

    >>> Need(title="KS-1", keys=frozenset({"ks-1.md"})).title
    'KS-1'
    """

    title: str
    keys: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class GoldQuestion:
    """A question with its gold documents and its distractors.

    >>> GoldQuestion(question="Which class?", needs=(Need(title="KS-1", keys=frozenset("a")),)).distractors
    ()
    """

    question: str
    needs: tuple[Need, ...]
    """In hop order if known."""
    distractors: tuple[str, ...] = ()
    """Titles of documents that came with the question and are not needed."""


class GoldTable:
    """The needs of all questions of a data set, and of each sub-question that can be asked.

    >>> needs = (Need(title="KS-1", keys=frozenset("a")), Need(title="Delta", keys=frozenset("b")))
    >>> documents = {"KS-1": {"a"}, "Delta": {"b"}, "Echo": {"c"}}
    >>> table = GoldTable([GoldQuestion(question="Which oil does KS-1 need?", needs=needs)], documents=documents)
    >>> table.missing("Which oil does KS-1 need?", {"a"})
    ('What is stated about "Delta"?',)
    """

    def __init__(
        self,
        questions: Iterable[GoldQuestion],
        *,
        documents: Mapping[str, AbstractSet[str]] | None = None,
        key_field: str = "document_key",
    ) -> None:
        """Keep the questions; ``documents`` are the keys of the corpus's documents by title.

        ``key_field`` has the key of a chunk's document.
        """
        self.key_field = key_field
        self._questions = {_folded(each.question): each for each in questions}
        self._documents = {title: frozenset(keys) for title, keys in (documents or {}).items() if title}
        self._titles = tuple(sorted(self._documents, key=len, reverse=True))
        self._named: dict[str, tuple[str, ...]] = {}
        self._places: defaultdict[str, list[tuple[GoldQuestion, int]]] = defaultdict(list)
        for each in self._questions.values():
            for place, need in enumerate(each.needs):
                self._places[need.title].append((each, place))

    @property
    def digest(self) -> str:
        """Eight digits that change with the questions, their needs and distractors, and with the documents."""
        content = [
            (key, [(need.title, sorted(need.keys)) for need in each.needs], each.distractors)
            for key, each in sorted(self._questions.items())
        ]
        return version_of(repr(content), repr([(title, sorted(self._documents[title])) for title in self._titles]))

    def needs(self, query: str) -> tuple[Need, ...]:
        """Return what a question or sub-question needs; nothing if it is unknown.

        A sub-question about a title that no question needs is answered by any document of that title.
        """
        needs = self.needs_for_questions(query)
        asked = None if needs else _asked(query)
        keys = self._documents.get(asked["title"]) if asked else None
        return (Need(title=asked["title"], keys=keys),) if asked and keys else needs

    def needs_for_questions(self, query: str) -> tuple[Need, ...]:
        """Return what a question needs, or a sub-question about a title that some question needs; else nothing."""
        known = self._questions.get(_folded(query))
        if known is not None:
            return known.needs
        asked = _asked(query)
        places = self._places.get(asked["title"], []) if asked else []
        then = int(asked["then"] or 0) if asked else 0
        chains = [each.needs[place:] for each, place in places if len(each.needs) == place + 1 + then]
        if then and chains:
            return chains[0]
        keys = frozenset(key for each, place in places for key in each.needs[place].keys)
        return (Need(title=places[0][0].needs[places[0][1]].title, keys=keys),) if places else ()

    def missing(self, query: str, held: AbstractSet[str]) -> tuple[str, ...]:
        """Return the sub-questions for the needs of ``query`` that the documents ``held`` do not meet, in their order.

        If these are the last ones, the first asks for those that follow too.
        """
        needs = self.needs(query)
        places = [place for place, need in enumerate(needs) if not need.keys & held]
        is_rest = places == list(range(len(needs) - len(places), len(needs))) and len(places) < len(needs)
        return tuple(
            sub_question(needs[place].title, then=len(needs) - place - 1 if is_rest else 0) for place in places
        )

    def others(self, query: str, passage: str, *, besides: Sequence[str] = ()) -> tuple[str, ...]:
        """Return sub-questions that do not help: for other titles in the passage, and for the distractors.

        Those of ``besides`` and of missing needs are left out.
        """
        known = self._questions.get(_folded(query))
        distractors = known.distractors if known else self._distractors_beside(query)
        needed = {need.title for need in self.needs(query)}
        titles = dict.fromkeys((*self._titles_in(passage), *distractors))
        asked = (sub_question(title) for title in titles if title not in needed)
        return tuple(each for each in asked if each not in besides and _folded(each) != _folded(query))

    def _distractors_beside(self, query: str) -> tuple[str, ...]:
        titles = {need.title for need in self.needs(query)}
        return tuple(title for each in titles for known, _ in self._places[each] for title in known.distractors)

    def _titles_in(self, passage: str) -> tuple[str, ...]:
        """Return the titles of the corpus that the passage names, longest first, without that it begins with."""
        if passage not in self._named:
            left, found = passage, []
            for title in self._titles:
                if title in left:
                    left = left.replace(title, "\n")
                    found.append(title)
            self._named[passage] = tuple(title for title in found if not passage.lstrip().startswith(title))
        return self._named[passage]


def _asked(query: str) -> re.Match[str] | None:
    return _SUB_QUESTION.fullmatch(_folded(query))


def keys_of(metadata: Mapping[str, object], key_field: str) -> frozenset[str]:
    """Return the keys of all documents that have a chunk's text; empty without one.

    >>> sorted(keys_of({"document_key": "a", "also_keys": ["b"]}, "document_key"))
    ['a', 'b']
    """
    key = metadata.get(key_field)
    return frozenset((*(() if key is None else (str(key),)), *also_of(metadata, key_field)))


def also_of(metadata: Mapping[str, object], key_field: str) -> tuple[str, ...]:
    """Return the keys of further documents with a chunk's text, in the order of the search (``search.best_hits``)."""
    given = metadata.get(ALSO_IN if key_field == SOURCE else ALSO_KEYS)
    if isinstance(given, str):  # A search tree keeps lists as JSON.
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    named = dict.fromkeys(map(str, given)) if isinstance(given, list | tuple) else {}
    return tuple(key for key in named if key not in ("", metadata.get(key_field)))


def _folded(text: str) -> str:
    return " ".join(text.split())
