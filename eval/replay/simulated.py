"""A world without a model: recorded searches, judged by a judge that calls none, such as ``noisy``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_core.documents import Document

from ...modules.calls.record import CallRecord
from ...modules.calls.usage import CallMeter
from ...modules.errors import ModelCallError
from ...modules.judge.contract import AnyJudge, SetVerdict, expected_calls, judges_sets
from ...modules.judge.gold import keys_of
from ...modules.judge.noisy import NoisyJudge, NoisySetJudge
from ...modules.judge.sub_questions import SubQuestionWriter
from .recording import Hits
from .world import JudgedChunk, JudgedQuery, tokens_of

T = TypeVar("T")


@dataclass
class SimulatedWorld:
    """A question whose chunks a judge without a model judges; every query is judged once, at the calls of a model."""

    question: str
    gold: frozenset[str]
    search: Callable[[str], Hits]
    """Returns what a query finds, or raises ``NotRecorded``."""
    judge: AnyJudge
    writer: SubQuestionWriter
    key_field: str
    queries: dict[str, JudgedQuery] = field(default_factory=dict)
    """What was searched so far."""
    _further: dict[tuple[str, str, int], str | None] = field(default_factory=dict)

    def judged(self, query: str) -> JudgedQuery:
        """Return what a query finds, judged."""
        if query not in self.queries:
            self.queries[query] = self._judge(query, self.search(query))
        return self.queries[query]

    def asked_again(self, query: str, chunk_id: str, tried: Sequence[str]) -> str | None:
        """Return the question of a further try, as the writer writes it."""
        place = query, chunk_id, len(tried)
        if place not in self._further:
            chunk = next(each for each, _ in self.search(query) if _id_of(each) == chunk_id)
            try:
                self._further[place] = _at_once(self.writer.write(query, chunk, tried, meter=_meter()))
            except ModelCallError:
                self._further[place] = None
        return self._further[place]

    def _judge(self, query: str, hits: Hits) -> JudgedQuery:
        if judges_sets(self.judge):
            chunks = [chunk for chunk, _ in hits]
            given = _at_once(self.judge.judge_set(query, chunks, meter=_meter())) if chunks else SetVerdict(verdicts=())
        else:
            verdicts = [_at_once(self.judge.judge(query, chunk, meter=_meter())) for chunk, _ in hits]
            given = SetVerdict(verdicts=tuple(verdicts))
        return judged_query(hits, given, self.key_field).as_by_a_model(batched=judges_sets(self.judge))


def recorded_query(
    judge: AnyJudge, query: str, hits: Hits, given: SetVerdict, key_field: str, *, made: Iterable[CallRecord]
) -> JudgedQuery:
    """Return what a query finds with its verdicts, and what replays must know of its judge; ``made`` are its calls."""
    calls = Counter(each["chunk_id"] for each in made if each["kind"] == "chat")
    judged = judged_query(hits, given, key_field)
    judged = replace(
        judged,
        chunks=tuple(replace(each, calls=calls[each.chunk_id]) for each in judged.chunks),
        calls=calls[""],
        expected_calls=expected_calls(judge, len(hits)) if hits else 0,
    )
    if isinstance(judge, NoisyJudge | NoisySetJudge):
        needs, is_wrong = judge.known_needs(query)
        by_model = judged.as_by_a_model(batched=judges_sets(judge))
        return replace(by_model, needs=tuple(each.keys for each in needs), is_wrong=is_wrong)
    return judged


def judged_query(hits: Hits, given: SetVerdict, key_field: str) -> JudgedQuery:
    """Return what a query finds with its verdicts, which are in the order of the hits."""
    judged = [
        JudgedChunk(
            chunk_id=_id_of(chunk),
            keys=keys_of(chunk.metadata, key_field),
            rank=rank,
            retrieval_score=score,
            verdict=verdict.status,
            score=verdict.score,
            confidence=verdict.confidence,
            p_needed=verdict.p_needed,
            is_calibrated=verdict.is_calibrated,
            next_query=verdict.next_query,
            tokens=tokens_of(chunk),
            text=chunk.page_content,
        )
        for rank, ((chunk, score), verdict) in enumerate(zip(hits, given.verdicts, strict=True))
    ]
    return JudgedQuery(chunks=tuple(judged), set_suffices=given.suffices, p_suffices=given.p_suffices)


def _meter() -> CallMeter:
    """Return a meter whose records are dropped: ``as_by_a_model`` counts the calls."""
    return CallMeter(node="replay")


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata["chunk_id"])


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing.

    Raises:
        TypeError: It waits: its judge calls a model.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise TypeError("a replay needs a judge that calls no model, such as noisy")
