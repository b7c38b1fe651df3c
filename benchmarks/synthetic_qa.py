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
"""Of the questions in turn: mostly two, as in HotpotQA, and some whose third step only a deeper search reaches."""

_TYPES: dict[Hops, Literal["single", "2hop", "3hop"]] = {1: "single", 2: "2hop", 3: "3hop"}
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "k", "kl", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "eo")
_CODAS = ("", "l", "m", "n", "r", "s", "th")


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """One document of the corpus."""

    title: str
    sentences: tuple[str, ...]
    """The first one holds the fact; each but the first begins with its space, as HotpotQA's do."""


@dataclass(frozen=True, kw_only=True)
class SyntheticQuestion:
    """A question as the scripted model knows it, and what it brings into the corpus."""

    question: Question
    paragraphs: tuple[Paragraph, ...]
    """Those that it needs, and others that say the same of other names; shuffled."""


@dataclass(frozen=True, kw_only=True)
class _Names:
    film: str
    director: str
    town: str
    river: str

    def facts(self) -> tuple[tuple[str, str, str, str], ...]:
        """(title, what its paragraph says, question that this alone answers, answer), in hop order."""
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
        """What is asked once the first ``known`` of ``hops`` facts are known; ``""`` when nothing is left."""
        if known >= hops:
            return ""
        if known == hops - 1:
            return self.facts()[known][2]
        person = f"the director of the film {self.film}" if known == 0 else self.director
        if hops == 2:
            return f"In which town was {person} born?"
        return f"On which river lies the town in which {person} was born?"


def synthetic_questions(count: int, *, seed: int = 3) -> list[SyntheticQuestion]:
    """So many questions; the same ones for the same seed, and the first of a longer list are those of a shorter."""
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
    """Names of two words, no word in two of them, so that a name finds its paragraphs and no other's."""
    used = set(WORDS)
    while True:
        words: list[str] = []
        while len(words) < 2:
            word = "".join(rng.choice(part) for _ in range(3) for part in (_ONSETS, _VOWELS)) + rng.choice(_CODAS)
            if word not in used:
                used.add(word)
                words.append(word.capitalize())
        yield " ".join(words)
