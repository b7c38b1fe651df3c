"""The worlds that replays search: what each query of a question finds, and how its chunks are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Protocol

from langchain_core.documents import Document

from ...graphs.search.findings import Findings, FoundChunk
from ...modules.judge.contract import VerdictStatus
from ...modules.reader.evidence_choice import EvidenceChoice, passage_tokens


class NotRecorded(LookupError):
    """A search asked what the recording does not hold."""


@dataclass(frozen=True, kw_only=True)
class JudgedChunk:
    """A chunk of a query with its verdict."""

    chunk_id: str
    keys: frozenset[str]
    """Keys of the documents that the chunk is of."""
    rank: int
    """From 0."""
    retrieval_score: float | None = None
    verdict: VerdictStatus = "judged"
    score: int | None = None
    """0, 1 or 2; None without a verdict."""
    confidence: float | None = None
    p_needed: float | None = None
    is_calibrated: bool = False
    next_query: str = ""
    """Sub-question; ``""`` for a chunk that asks nothing."""
    tokens: int = 0
    """Tokens of its passage, without answers to its sub-questions, which no replay knows."""


@dataclass(frozen=True, kw_only=True)
class JudgedQuery:
    """What a query finds, judged."""

    chunks: tuple[JudgedChunk, ...]
    """By rank."""
    set_suffices: bool | None = None
    p_suffices: float | None = None

    @cached_property
    def findings(self) -> Findings:
        """What the verdicts say of the query, as a live search says it."""
        found = (FoundChunk(each.chunk_id, each.score, each.confidence, each.p_needed) for each in self.chunks)
        return Findings.of(found, set_suffices=self.set_suffices, p_suffices=self.p_suffices)

    def shown_keys(self, evidence: EvidenceChoice) -> frozenset[str]:
        """Return the keys of the documents that the reader of this query sees."""
        return frozenset().union(*(each.keys for each in self.shown(evidence)))

    def shown(self, evidence: EvidenceChoice) -> list[JudgedChunk]:
        """Return the chunks that the reader of this query sees, in the order of the evidence."""
        return evidence.chosen(self.chunks, score=attrgetter("score"), tokens=attrgetter("tokens"))


def tokens_of(chunk: Document) -> int:
    """Return the tokens of a chunk's passage, estimated once for each text."""
    return _tokens(chunk.page_content, *(str(chunk.metadata.get(key) or "") for key in ("source", "title")))


@lru_cache(maxsize=1 << 16)
def _tokens(text: str, source: str, title: str) -> int:
    return passage_tokens(Document(page_content=text, metadata={"source": source, "title": title}))


class World(Protocol):
    """One question, as far as replays search it."""

    @property
    def question(self) -> str:
        """The question."""
        ...

    @property
    def gold(self) -> frozenset[str]:
        """Keys of the documents that the answer needs."""
        ...

    def judged(self, query: str) -> JudgedQuery:
        """Return what a query finds, judged; the same at each call.

        Raises:
            NotRecorded: It was not recorded.
        """
        ...

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        """Return the question of a chunk's further try, after those in ``tried``; None if there is no other.

        Raises:
            NotRecorded: It was not recorded.
        """
        ...


@dataclass
class RecordedWorld:
    """A question as its recording judged it."""

    question: str
    gold: frozenset[str]
    queries: dict[str, JudgedQuery]
    further: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Questions of the further tries of a chunk, by the query that found it and its id."""
    tries: int = 1
    """Tries of each chunk that were recorded, where as many questions could be written."""

    def judged(self, query: str) -> JudgedQuery:
        """Return a recorded query."""
        try:
            return self.queries[query]
        except KeyError:
            raise NotRecorded(query) from None

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        """Return the recorded question of the next try."""
        questions = self.further.get((query, chunk_id), ())
        if len(tried) <= len(questions):
            return questions[len(tried) - 1]
        if len(questions) + 1 < self.tries:
            return None
        raise NotRecorded(query, chunk_id)
