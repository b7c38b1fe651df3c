"""What the judge, and what the writer of the sub-questions loses: a kept search with an ideal one in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .kept import KeptChunk, KeptQuery, KeptQuestion
from .outcomes import BREADTH, played

WRITTEN = "ideal"
"""Begins the sub-questions of an ideal writer."""


def with_ideal_judge(question: KeptQuestion) -> KeptQuestion:
    """Return the search as one whose judge keeps the needed passages and no other, and asks from each of them.

    Where the judge did not ask, it asks what the model wrote for the passage when it was told to.
    """
    queries = [
        replace(
            query,
            chunks=tuple(
                replace(
                    chunk,
                    verdict="judged",
                    score=int(_is_needed(chunk, question)),
                    asked_by_judge=_is_needed(chunk, question) and bool(chunk.asks),
                )
                for chunk in query.chunks
            ),
        )
        for query in question.queries
    ]
    return replace(question, queries=tuple(queries))


def with_ideal_writer(question: KeptQuestion) -> KeptQuestion:
    """Return the search as one whose kept needed passages ask for a missing document each, which is found and kept."""
    root, *others = question.queries
    held = {key for chunk in root.chunks for key in chunk.documents}
    missing = [each for each in question.gold if each not in held]
    if not missing:
        return question
    asking = [chunk for chunk in root.chunks if chunk.score == 1 and _is_needed(chunk, question)]
    asks = {chunk.id: f"{WRITTEN} {at}" for at, chunk in enumerate(asking)}
    chunks = tuple(
        replace(chunk, asks=(asks[chunk.id],), asked_by_judge=True) if chunk.id in asks else chunk
        for chunk in root.chunks
    )
    written = [_finding(query, missing[at % len(missing)]) for at, query in enumerate(asks.values())]
    return replace(question, queries=(replace(root, chunks=chunks), *others, *written))


def both(question: KeptQuestion) -> KeptQuestion:
    """Return the search with both of them."""
    return with_ideal_writer(with_ideal_judge(question))


PARTS: Mapping[str, Callable[[KeptQuestion], KeptQuestion]] = {
    "as it is": lambda question: question,
    "with an ideal judge": with_ideal_judge,
    "with an ideal writer": with_ideal_writer,
    "with both": both,
}


def complete(questions: Sequence[KeptQuestion], part: str) -> int:
    """Count the questions that have all evidence with such a part."""
    return sum(played(PARTS[part](each).world, BREADTH).is_complete for each in questions)


def _is_needed(chunk: KeptChunk, question: KeptQuestion) -> bool:
    return not set(chunk.documents).isdisjoint(question.gold)


def _finding(query: str, document: str) -> KeptQuery:
    found = KeptChunk(documents=(document,), tokens=0, verdict="judged", score=1, p_needed=None, calls=1, judging=0)
    return KeptQuery(query=query, reading=0, expected_calls=1, chunks=(found,))
