"""The worlds that replays search: what each query of a question finds, and how its chunks are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Annotated, Protocol

from langchain_core.documents import Document
from pydantic import Field, NonNegativeInt

from ...graphs.search.findings import Findings, FoundChunk
from ...modules.judge.contract import VerdictStatus
from ...modules.reader.evidence_choice import EvidenceChoice, passage_tokens

Needs = tuple[frozenset[str], ...]
"""What a query needs: of each entry, one of the documents with these keys."""
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class NotRecorded(LookupError):
    """A search asked what the recording does not hold."""


@dataclass(frozen=True, kw_only=True)
class JudgedChunk:
    """A chunk of a query with its verdict."""

    chunk_id: str
    keys: frozenset[str]
    """Keys of the documents that the chunk is of."""
    rank: NonNegativeInt
    """From 0."""
    retrieval_score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    verdict: VerdictStatus = "judged"
    score: Annotated[int, Field(ge=0, le=2)] | None = None
    """0, 1 or 2; None without a verdict."""
    confidence: Probability | None = None
    p_needed: Probability | None = None
    is_calibrated: bool = False
    next_query: str = ""
    """Sub-question; ``""`` for a chunk that asks nothing."""
    calls: NonNegativeInt = 0
    """Model calls that judging made about it alone."""
    tokens: int = 0
    """Tokens of its passage, without answers to its sub-questions, which no replay knows."""
    text: str = ""
    """Text of its passage."""

    def unjudged(self) -> JudgedChunk:
        """Return it as a search has it that cannot pay for its verdict."""
        return JudgedChunk(
            chunk_id=self.chunk_id,
            keys=self.keys,
            rank=self.rank,
            retrieval_score=self.retrieval_score,
            verdict="cancelled",
            tokens=self.tokens,
            text=self.text,
        )


@dataclass(frozen=True, kw_only=True)
class JudgedQuery:
    """What a query finds, judged."""

    chunks: tuple[JudgedChunk, ...]
    """By rank."""
    set_suffices: bool | None = None
    p_suffices: Probability | None = None
    calls: NonNegativeInt = 0
    """Model calls that judging made about all chunks together, beside those about each."""
    expected_calls: NonNegativeInt = 0
    """Model calls that judging so many chunks usually takes, which a search reserves for each of its sub-runs."""
    needs: Needs | None = None
    """What the query needs, by a judge that sees gold; None by any other."""
    is_wrong: bool = False
    """Whether the query is a sub-question that helps no question of the data set, by a judge that sees gold."""

    def unjudged(self) -> JudgedQuery:
        """Return it as a search has it that judges nothing."""
        return JudgedQuery(chunks=tuple(each.unjudged() for each in self.chunks), expected_calls=self.expected_calls)

    def as_by_a_model(self, *, batched: bool) -> JudgedQuery:
        """Return it with the calls of a model: one for all chunks if ``batched``, else one for each."""
        each_takes, all_take = (0, min(len(self.chunks), 1)) if batched else (1, 0)
        chunks = tuple(replace(each, calls=each_takes) for each in self.chunks)
        return replace(self, chunks=chunks, calls=all_take, expected_calls=all_take + each_takes * len(chunks))

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
        score, tokens, text = map(attrgetter, ("score", "tokens", "text"))
        return evidence.chosen(self.chunks, score=score, tokens=tokens, text=text)


def tokens_of(chunk: Document) -> int:
    """Return the tokens of a chunk's passage, estimated once for each text."""
    return _tokens(chunk.page_content, *(str(chunk.metadata.get(key) or "") for key in ("source", "title")))


@lru_cache(maxsize=1 << 16)
def _tokens(text: str, source: str, title: str) -> int:
    return passage_tokens(Document(page_content=text, metadata={"source": source, "title": title}))


class ReplayEnvironment(Protocol):
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
    """A question as its recording judged it: under these verdicts a chunk asks what its judge asked, or nothing."""

    question: str
    gold: frozenset[str]
    queries: Mapping[str, JudgedQuery]
    questions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Sub-questions of all chunks, one for each try, by the query that found the chunk and its id."""
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
        questions = self.questions_of(query, chunk_id)
        if len(tried) < len(questions):
            return questions[len(tried)]
        if len(questions) < self.tries:
            return None
        raise NotRecorded(query, chunk_id)

    def questions_of(self, query: str, chunk_id: str) -> tuple[str, ...]:
        """Return the sub-questions of a chunk's tries, whatever its verdict; empty on the deepest level."""
        return self.questions.get(query, {}).get(chunk_id, ())
