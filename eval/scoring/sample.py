"""What a metric of one's own gets: one answer of a run with its evidence and its search tree, as plain data."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from langchain_core.documents import Document

from ...graphs.rag.search_tree import SearchTree
from ...graphs.threads.state import AnswerStatus
from ...graphs.tree.nodes import ChunkNode
from ...modules.reader.evidence import split_evidence
from ..datasets.questions import EvalQuestion
from ..rows.store import RunRow


@dataclass(frozen=True, kw_only=True)
class MetricSample:
    """One answer of a run.

    >>> MetricSample(question="Who?", answer="Ada", gold_answers=("Ada Lovelace",)).answer
    'Ada'
    """

    question: str
    answer: str
    """What the system said; a refusal too."""
    gold_answers: tuple[str, ...] = ()
    """The gold answer, then its aliases; empty where they are unknown, or nothing can be known."""
    answers_known: bool = True
    """False where the data set has no gold answer: neither an answer nor a refusal can be compared with one."""
    status: AnswerStatus = "answered"
    """"answered" or "refused"; failed questions are given to no metric."""
    evidence: tuple[str, ...] = ()
    """The passages that the reader was shown, in order; empty for a system that does not retrieve."""
    chunks: tuple[ChunkNode, ...] = ()
    """The chunks of the whole tree with their verdicts, each once, in search order."""
    tree: SearchTree | None = None
    """The search tree; None for an answer without a search, or if the run kept none."""
    supporting: tuple[str, ...] = ()
    """Keys of the gold documents."""
    system: str = ""
    question_id: str = ""
    type: str = ""
    """The data set's name of the kind of question."""
    hops: int | None = None
    lang: str = "en"
    """ISO 639-1 code of the question."""


class Metric(Protocol):
    """Protocol of a metric: a function, or an object that can be called.

    It returns a number, or None where it has nothing to say. It may be a coroutine function. Attributes may say more:
    ``range``, the lowest and the highest number, (0, 1) without it; ``higher_is_better``, True without it; and
    ``version``, a text.
    """

    def __call__(self, sample: MetricSample, /) -> float | Awaitable[float | None] | None:
        """Score one answer."""
        ...


def sample_of(row: RunRow, question: EvalQuestion, tree: SearchTree | None) -> MetricSample:
    """Collect what a metric gets of one row."""
    chunks = {} if tree is None else {chunk.chunk_id: chunk for chunk in tree.chunk_nodes()}
    return MetricSample(
        question=row.question,
        answer=row.prediction,
        gold_answers=question.answers,
        answers_known=question.answers_known,
        status=row.status,
        evidence=() if tree is None else evidence_of(tree),
        chunks=tuple(chunks.values()),
        tree=tree,
        supporting=question.supporting,
        system=row.system,
        question_id=row.question_id,
        type=question.type,
        hops=question.hops,
        lang=question.lang,
    )


def evidence_of(tree: SearchTree) -> tuple[str, ...]:
    """Collect the passages shown to the reader, in order: source, text, and a sub-question with its answer.

    Sub-questions without a passage (Self-Ask) come last, each as a text of its own.
    """
    root = tree.root
    found = (Document(page_content=chunk.text, metadata=dict(chunk.metadata)) for chunk in root.chunks)
    return split_evidence(root.evidence, found)
