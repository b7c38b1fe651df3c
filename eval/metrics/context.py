"""Metrics of the passages that a reader sees: whether the answer stands in them, how much they repeat each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import ChunkNode, QueryNode
from ...modules.reader.refusals import is_refusal
from ...modules.reader.word_similarity import similarity_by_words
from ..datasets.questions import EvalQuestion
from .answers import answer_tokens, cover_exact_match, fold_letters

_SAID_NOWHERE = (["yes"], ["no"], ["noanswer"])


@dataclass(frozen=True, kw_only=True)
class ContextFigures:
    """What the reader of the question itself saw."""

    passages: int
    answer_in_context: float | None
    """1 if a gold answer stands in the evidence, answers to sub-questions included, else 0; see the function."""
    redundancy: float
    """Of the passages, in [0, 1]; see the function."""
    read: tuple[str, ...] | None = None
    """Ids of the chunks that readers saw on the way to the answer, each once; None in rows of older versions."""


def context_of(question: EvalQuestion, tree: SearchTree) -> ContextFigures | None:
    """Score what the reader at the root of a tree saw; None for a tree without chunks."""
    root = tree.root
    if not root.evidence and not root.chunks:
        return None
    return ContextFigures(
        passages=len(root.shown_chunks),
        answer_in_context=answer_in_context(question, [root.evidence]),
        redundancy=round(redundancy([chunk.text for chunk in root.shown_chunks]), 6),
        read=tuple(chunks_read(tree)),
    )


def chunks_read(tree: SearchTree) -> dict[str, None]:
    """Return the ids of the chunks that readers saw on the way to the answer, in order.

    These are the chunks shown to the reader of the question, those whose round had an answer that the next search began
    with, and in turn those of sub-questions whose answers it was shown; answers that are refusals hand nothing on.
    """
    queries = {node.thread_id: node for node in tree.query_nodes()}
    queue, seen, read = [tree.root], {id(tree.root)}, dict[str, None]()
    for query in queue:  # the queue grows
        shown = query.shown_chunks
        read |= dict.fromkeys(chunk.chunk_id for chunk in shown)
        read |= dict.fromkeys(
            chunk.chunk_id for chunk in query.chunks if chunk.round_answer and not is_refusal(chunk.round_answer)
        )
        for chunk in query.chunks:
            for answer, below in answers_to(chunk, queries):
                if answer and not is_refusal(answer) and id(below) not in seen:
                    seen.add(id(below))
                    queue.append(below)
    return read


def answers_to(chunk: ChunkNode, queries: Mapping[str, QueryNode]) -> Iterator[tuple[str, QueryNode]]:
    """Yield the answers to a chunk's sub-questions with the queries that gave them, shared ones too.

    Args:
        chunk: The chunk.
        queries: The queries of its tree by thread.
    """
    if shared := queries.get(chunk.shared_thread_id):
        yield chunk.sub_answer, shared
    answers = [each["answer"] for each in chunk.tries] or [chunk.sub_answer]
    yield from zip(answers, chunk.sub_runs, strict=False)  # a try without a question has no run


def evidence_complete(supporting: Sequence[str], read: Iterable[Iterable[str]]) -> float | None:
    """Return 1.0 if readers saw all gold documents on the way to the answer, else 0.0; None without gold documents.

    Args:
        supporting: Keys of the gold documents.
        read: The keys of each passage that was read.
    """
    return float(set(supporting) <= {key for keys in read for key in keys}) if supporting else None


@dataclass(frozen=True, kw_only=True)
class SupportScores:
    """How far what readers saw is what the question needs, by documents; each in [0, 1]."""

    precision: float
    recall: float
    f1: float


def support_scores(supporting: Sequence[str], read: Iterable[Iterable[str]]) -> SupportScores | None:
    """Score the documents that readers saw on the way to the answer as supporting ones; None without gold documents.

    The measure of HotpotQA's supporting facts (Yang et al. 2018) with documents for sentences, since systems name no
    sentences. A passage that stands for several documents counts as the gold one among them.
    """
    if not supporting:
        return None
    wanted = set(supporting)
    gold, others = set[str](), set[str]()
    for keys in read:
        own = tuple(keys)
        met = wanted.intersection(own)
        gold |= met
        others |= set() if met else set(sorted(own)[:1])
    precision, recall = len(gold) / len(gold | others) if gold else 0.0, len(gold) / len(wanted)
    return SupportScores(precision=precision, recall=recall, f1=harmonic_mean(precision, recall))


def harmonic_mean(precision: float, recall: float) -> float:
    """Return F1 of precision and recall; 0.0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def answer_in_context(question: EvalQuestion, texts: Sequence[str]) -> float | None:
    """Return 1.0 if some gold answer stands in a passage as a run of whole tokens, else 0.0.

    An upper bound of what a reader can copy, and no proof that the passage supports the answer. Source: Chen et al.,
    Reading Wikipedia to Answer Open-Domain Questions (ACL 2017), who match strings.

    Returns:
        None where no passage can hold the answer: gold answers are unknown, none exists, or all are yes or no.
    """
    if not question.answers_known or not question.is_answerable:
        return None
    tokens = {answer: answer_tokens(answer, lang=question.lang) for answer in question.answers}
    golds = [answer for answer, words in tokens.items() if words and words not in _SAID_NOWHERE]
    if not golds:
        return None
    if question.folds_letters:
        golds, texts = [*map(fold_letters, golds)], [*map(fold_letters, texts)]
    found = (cover_exact_match(text, answer, lang=question.lang) for text in texts for answer in golds)
    return max(found, default=0.0)


def redundancy(texts: Sequence[str]) -> float:
    """Compute how much passages repeat each other: the mean cosine of each with the one most like it, by words.

    In [0, 1], lower is better: 1 if each has a copy, 0 if no two share a word, or there is one or none. Words are
    weighed within these passages (see ``similarity_by_words``), so that only sets of about one size compare.
    """
    if len(texts) < 2:
        return 0.0
    cosines = similarity_by_words(texts)
    np.fill_diagonal(cosines, 0.0)
    return fmean(cosines.max(axis=1).tolist())
