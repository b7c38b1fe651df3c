"""What is kept of recordings: a line a question with figures and what the model wrote, and no text of a data set.

A kept question replays as its recording does. Documents are told by digests, passages by the tokens of their text, and
in what the model wrote the question itself stands as ``{question}``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from langchain_core.documents import Document
from pydantic import TypeAdapter

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.replay.recording import SearchRecording
from judgetree.evaluation.replay.simulated import judged_query
from judgetree.evaluation.replay.world import JudgedChunk, JudgedQuery, RecordedWorld
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.digests import text_digest
from judgetree.modules.judge.contract import VerdictStatus
from judgetree.modules.judge.embedding import EmbeddingJudge
from judgetree.modules.judge.gold import keys_of
from judgetree.modules.judge.prompts import (
    ask_again_messages,
    look_up_messages,
    needed_messages,
    sub_question_messages,
)
from judgetree.modules.reader.evidence_choice import passage_tokens
from judgetree.modules.reader.prompts import reader_messages
from judgetree.modules.retriever.retriever import Retriever

QUESTION = "{question}"
"""Stands for the question in what is kept."""
NAIVE = tuple(range(1, 81))
"""Passages of the plain searches that are kept."""


@dataclass(frozen=True, kw_only=True)
class KeptChunk:
    """A chunk that a query found. Tokens are estimates of prompts with judgetree's own words."""

    documents: tuple[str, ...]
    """Digests of the keys of the documents that have its text."""
    tokens: int
    """Of its passage in the evidence."""
    verdict: VerdictStatus
    score: int | None
    p_needed: float | None
    calls: int
    """Of the judge, with those for its own question."""
    judging: int
    """Tokens of these calls' prompts."""
    asks: tuple[str, ...] = ()
    """Sub-questions of its tries."""
    asked_by_judge: bool = False
    """Whether the first of them is of the judge, who asks for a 1 alone."""
    again: int = 0
    """Tokens of the prompt that asks for the second of them."""

    @property
    def id(self) -> str:
        """Its name in replays: no query finds two chunks of one document."""
        return self.documents[0]


@dataclass(frozen=True, kw_only=True)
class KeptQuery:
    """A query with what it found, by rank."""

    query: str
    reading: int
    """Tokens of its reader's prompt without passages."""
    expected_calls: int
    chunks: tuple[KeptChunk, ...]

    @cached_property
    def judged(self) -> JudgedQuery:
        """The query as replays have it."""
        return JudgedQuery(
            chunks=tuple(
                JudgedChunk(
                    chunk_id=each.id,
                    keys=frozenset(each.documents),
                    rank=rank,
                    verdict=each.verdict,
                    score=each.score,
                    confidence=_confidence(each),
                    p_needed=each.p_needed,
                    next_query=each.asks[0] if each.asked_by_judge else "",
                    calls=each.calls,
                    tokens=each.tokens,
                )
                for rank, each in enumerate(self.chunks)
            ),
            expected_calls=self.expected_calls,
        )


@dataclass(frozen=True, kw_only=True)
class PlainSearch:
    """A search for so many passages, without a judge."""

    topk: int
    gold: int
    """Needed documents among them."""
    tokens: int
    """Of the reader's prompt."""


@dataclass(frozen=True, kw_only=True)
class KeptQuestion:
    """A recorded question."""

    id: str
    part: str
    """Of the split."""
    type: str
    shares: tuple[str, ...]
    """Digests of what it has in common with other questions."""
    gold: tuple[str, ...]
    """Digests of the documents that it needs."""
    tries: int
    naive: tuple[PlainSearch, ...]
    queries: tuple[KeptQuery, ...]
    """The question itself first."""
    template: tuple[KeptQuery, ...] = ()
    """The same by similarity, where a 1 asks the query with the title of its document; no model is called."""

    @cached_property
    def world(self) -> RecordedWorld:
        """The question as replays search it."""
        return self._world(self.queries)

    @cached_property
    def template_world(self) -> RecordedWorld:
        """The question as it is searched without a model."""
        return self._world(self.template)

    @cached_property
    def by_query(self) -> Mapping[str, KeptQuery]:
        """The queries, by their words."""
        return {each.query: each for each in self.queries}

    def _world(self, queries: Sequence[KeptQuery]) -> RecordedWorld:
        return RecordedWorld(
            question=QUESTION,
            gold=frozenset(self.gold),
            queries={each.query: each.judged for each in queries},
            questions={each.query: {chunk.id: chunk.asks for chunk in each.chunks} for each in queries},
            tries=self.tries,
        )


_LINE = TypeAdapter(KeptQuestion)


def read_kept(file: Path) -> list[KeptQuestion]:
    """Read the lines of a file; there is none if the file is missing."""
    if not file.exists():
        return []
    return [_LINE.validate_json(line) for line in file.read_text(encoding="utf-8").splitlines()]


def append_kept(file: Path, question: KeptQuestion) -> None:
    """Add a question to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(question), separators=(",", ":")) + "\n")


def kept(
    part: str, dataset: Dataset, recording: SearchRecording, retriever: Retriever, similarity: EmbeddingJudge
) -> Iterator[KeptQuestion]:
    """Yield what is kept of a recording's finished questions; plain searches are as ``retriever`` makes them."""
    for question in dataset.questions:
        if question.id in recording.finished:
            yield KeptQuestion(
                id=question.id,
                part=part,
                type=question.type,
                shares=tuple(map(_digest, question.shares)),
                gold=tuple(map(_digest, question.supporting)),
                tries=recording.tries,
                naive=tuple(_plain(question, retriever, topk, dataset.key_field) for topk in NAIVE),
                queries=tuple(_queries(question.question, recording)),
                template=tuple(_by_template(question.question, retriever, similarity, dataset.key_field)),
            )


def _plain(question: EvalQuestion, retriever: Retriever, topk: int, key_field: str) -> PlainSearch:
    found = retriever.model_copy(update={"topk": topk}).search(question.question, meter=CallMeter(node="naive"))
    documents = frozenset().union(*(keys_of(chunk.metadata, key_field) for chunk, _ in found))
    passages = sum(passage_tokens(chunk) for chunk, _ in found)
    return PlainSearch(
        topk=topk,
        gold=len(documents & question.gold),
        tokens=message_tokens(reader_messages(question.question, "")) + passages,
    )


def _queries(question: str, recording: SearchRecording) -> Iterator[KeptQuery]:
    """Yield a question's queries, level by level, each once."""
    waiting, seen = [question], {question}
    for query in waiting:
        judgement = recording.judgement(query)
        assert judgement is not None, query
        chunks = []
        for chunk, (passage, _) in zip(judgement.judged.chunks, recording.hits(query), strict=True):
            asks = judgement.questions.get(chunk.chunk_id, ())
            chunks.append(_kept_chunk(chunk, passage, asks, query=query, question=question))
            new = [each for each in asks if each not in seen]
            waiting += new
            seen.update(new)
        yield KeptQuery(
            query=query.replace(question, QUESTION),
            reading=message_tokens(reader_messages(query, "")),
            expected_calls=judgement.judged.expected_calls,
            chunks=tuple(chunks),
        )


def _by_template(question: str, retriever: Retriever, judge: EmbeddingJudge, key_field: str) -> Iterator[KeptQuery]:
    """Yield a question and its sub-questions as a judge without a model has them."""
    waiting, seen = [question], {question}
    for query in waiting:
        meter = CallMeter(node="template")
        hits = retriever.search(query, meter=meter)
        expand = query == question
        chunks = [chunk for chunk, _ in hits]
        given = asyncio.run(judge.judge_set(query, chunks, meter=meter, expand=expand))
        judged = judged_query(hits, given, key_field)
        new = dict.fromkeys(each.next_query for each in judged.chunks if each.next_query not in {"", *seen})
        waiting += new
        seen.update(new)
        yield KeptQuery(
            query=query.replace(question, QUESTION),
            reading=message_tokens(reader_messages(query, "")),
            expected_calls=0,
            chunks=tuple(
                _kept_chunk(
                    each, passage, (each.next_query,) if each.next_query else (), query=query, question=question
                )
                for each, passage in zip(judged.chunks, chunks, strict=True)
            ),
        )


def _kept_chunk(chunk: JudgedChunk, passage: Document, asks: Sequence[str], *, query: str, question: str) -> KeptChunk:
    text = passage.page_content
    calls: Sequence[list[Message]] = (
        needed_messages(query, text),
        look_up_messages(query, text),
        sub_question_messages(query, text),
    )[: chunk.calls]
    again = message_tokens(ask_again_messages(query, text, asks[:1])) if len(asks) > 1 else 0
    return KeptChunk(
        documents=tuple(map(_digest, sorted(chunk.keys))),
        tokens=passage_tokens(passage),
        verdict=chunk.verdict,
        score=chunk.score,
        p_needed=None if chunk.p_needed is None else round(chunk.p_needed, 4),
        calls=chunk.calls,
        judging=sum(map(message_tokens, calls)),
        asks=tuple(each.replace(question, QUESTION) for each in asks),
        asked_by_judge=bool(chunk.next_query),
        again=again,
    )


def _confidence(chunk: KeptChunk) -> float | None:
    """Return what ``LogprobJudge`` says without a second question: the probability of its verdict."""
    if chunk.p_needed is None:
        return None
    return chunk.p_needed if chunk.score else 1 - chunk.p_needed


def _digest(key: str) -> str:
    return text_digest(key).hex()[:16]
