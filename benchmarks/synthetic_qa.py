"""A generated data set in the shape of HotpotQA, for benchmarks that must run without the real one.

Films, directors, towns and rivers of invented names. A question takes one to three paragraphs, each of which names the
next, and brings ten paragraphs into the corpus, so that 500 questions are asked of 5,000 chunks, as with HotpotQA.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from judgetree.evaluation.datasets.standards_qa import Question, SupportingFact

from .indexing import WORDS

PARAGRAPHS_A_QUESTION = 10
FILLING_SENTENCES = 4
WORDS_A_SENTENCE = 12

Hops = Literal[1, 2, 3]
HOPS: tuple[Hops, ...] = (2, 1, 2, 3, 2)
"""Hops of the questions in turn: mostly two, as in HotpotQA, and some that need a deeper search."""

_TYPES: dict[Hops, Literal["single", "2hop", "3hop"]] = {1: "single", 2: "2hop", 3: "3hop"}
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "k", "kl", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "eo")
_CODAS = ("", "l", "m", "n", "r", "s", "th")


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """One document of the corpus."""

    title: str
    sentences: tuple[str, ...]
    """The first sentence contains the fact; each later one begins with a blank, as in HotpotQA."""


@dataclass(frozen=True, kw_only=True)
class SyntheticQuestion:
    """A question with its paragraphs of the corpus."""

    question: Question
    paragraphs: tuple[Paragraph, ...]
    """Needed paragraphs and similar ones about other names, shuffled."""


@dataclass(frozen=True, kw_only=True)
class _Names:
    film: str
    director: str
    town: str
    river: str

    def facts(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return (title, fact, its question, its answer) of each hop, in order."""
        return (
            (
                self.film,
                f"{self.film} is a film directed by {self.director}.",
                f"Who directed the film {self.film}?",
                self.director,
            ),
            (
                self.director,
                f"{self.director} was born in the town of {self.town}.",
                f"In which town was {self.director} born?",
                self.town,
            ),
            (
                self.town,
                f"{self.town} is a town on the river {self.river}.",
                f"On which river does the town of {self.town} lie?",
                self.river,
            ),
        )

    def question(self, hops: Hops, *, known: int = 0) -> str:
        """Return the question that remains after the first ``known`` facts; ``""`` if none remains."""
        if known >= hops:
            return ""
        if known == hops - 1:
            return self.facts()[known][2]
        person = f"the director of the film {self.film}" if known == 0 else self.director
        if hops == 2:
            return f"In which town was {person} born?"
        return f"On which river lies the town in which {person} was born?"


def synthetic_questions(count: int, *, seed: int = 3) -> list[SyntheticQuestion]:
    """Make ``count`` questions; the same seed gives the same questions, whatever the count."""
    rng = random.Random(seed)
    names = _unique_names(rng)
    return [_synthetic(f"synthetic-{number:04d}", hops, names, rng) for number, hops in _numbered(count)]


def write_hotpotqa(file: Path, questions: Sequence[SyntheticQuestion]) -> None:
    """Write the questions as a HotpotQA file."""
    rows = [
        {
            "_id": item.question.id,
            "question": item.question.question,
            "answer": item.question.answer,
            "type": "bridge",
            "context": [[paragraph.title, list(paragraph.sentences)] for paragraph in item.paragraphs],
            "supporting_facts": [[fact.source, 0] for fact in item.question.supporting],
        }
        for item in questions
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")


def _numbered(count: int) -> Iterator[tuple[int, Hops]]:
    return zip(range(count), itertools.cycle(HOPS), strict=False)


def _synthetic(question_id: str, hops: Hops, names: Iterator[str], rng: random.Random) -> SyntheticQuestion:
    asked = _next_names(names)
    paragraphs = [_paragraph(title, says, rng) for title, says, *_ in asked.facts()[:hops]]
    while len(paragraphs) < PARAGRAPHS_A_QUESTION:
        title, says, *_ = rng.choice(_next_names(names).facts())
        paragraphs.append(_paragraph(title, says, rng))
    rng.shuffle(paragraphs)
    supporting = tuple(
        SupportingFact(
            source=title,
            quote=says,
            question=question,
            answer=answer,
            remaining_question=asked.question(hops, known=place),
        )
        for place, (title, says, question, answer) in enumerate(asked.facts()[:hops], start=1)
    )
    question = Question(
        id=question_id,
        lang="en",
        question=asked.question(hops),
        answer=supporting[-1].answer,
        type=_TYPES[hops],
        supporting=supporting,
    )
    return SyntheticQuestion(question=question, paragraphs=tuple(paragraphs))


def _paragraph(title: str, says: str, rng: random.Random) -> Paragraph:
    filling = (" ".join(rng.choices(WORDS, k=WORDS_A_SENTENCE)) for _ in range(FILLING_SENTENCES))
    return Paragraph(title=title, sentences=(says, *(f" {sentence.capitalize()}." for sentence in filling)))


def _next_names(names: Iterator[str]) -> _Names:
    return _Names(film=next(names), director=next(names), town=next(names), river=next(names))


def _unique_names(rng: random.Random) -> Iterator[str]:
    """Yield names of two words; no two names share a word, so a name finds its own paragraphs only."""
    used = set(WORDS)
    while True:
        words: list[str] = []
        while len(words) < 2:
            word = "".join(rng.choice(part) for _ in range(3) for part in (_ONSETS, _VOWELS)) + rng.choice(_CODAS)
            if word not in used:
                used.add(word)
                words.append(word.capitalize())
        yield " ".join(words)
