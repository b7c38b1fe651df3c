"""Which answers of a run are not complete, and why an answer is wrong: kinds that sum to all errors.

An answer is wrong where its exact match is 0. The kind is the **first of these that holds**. The first four need no
look at the search; of the others, those that lost evidence stand in the order in which a search goes on, each being
what kept some document that the answer needs (gold) from the reader.

1. ``failed_run``: the run failed, so there is no answer.
2. ``answered_unanswerable``: the question cannot be answered, and was.
3. ``format_only``: the answer contains a gold answer (cover exact match); whatever went wrong before did not matter.
4. ``closed_book``: the system looks nothing up, so it had but its memory.
5. ``other``: nothing more can be told, since the data set names no gold documents or the run kept no tree.

Not all gold was found, anywhere in the tree:

6. ``judge_false_0``: the question itself found gold, which the judge scored 0, so that it was not followed up.
7. ``judge_false_2``: a 2 stopped the search: at the question itself on a chunk that is not all of the gold; further
   down, where there was a level left, on a chunk that is not gold at all.
8. ``bad_sub_question``: a chunk that is gold led to a sub-question, below which no gold was found that the queries
   above it had not found already.
9. ``retrieval_miss``: none of these; retrieval had the right question, or no sub-question was asked.

All gold was found, but some did not reach the reader of the question:

10. ``judge_false_0``: gold was scored 0 and thereby withheld.
11. ``wrong_sub_answer``: neither it nor an answer that is drawn from it was handed on. The sub-run or follow-up that
    found it gave no answer, a refusal, or one of which most words stand in none of the gold chunks below it (yes and
    no excepted), or a later round replaced what an earlier one had found. Data sets have no gold answers to
    sub-questions: that an answer is drawn from the gold is the most that can be checked.

All gold reached the reader:

12. ``refused_despite_evidence``: it refused.
13. ``reader_missed``: it answered something else.

Gold is known by document. Where documents are cut into several chunks, any chunk of a gold document counts as gold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from ...graphs.drawing.words import count_of
from ...graphs.rag.search_tree import SearchTree
from ...graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks
from ...modules.reader.evidence import render_sub_answer
from ...modules.reader.refusals import is_refusal
from ..datasets.questions import EvalQuestion
from ..metrics.answers import AnswerScores, answer_tokens, score_answer
from ..metrics.damage import DAMAGE_KINDS, damage_in_words, in_order
from ..rows.store import Completeness, RunRow
from ..runs.experiment import RETRIEVING


def completeness_counts(questions: pd.DataFrame) -> dict[str, dict[Completeness, int]]:
    """How many answers of each system are complete, degraded and failed; each of these is a key.

    Args:
        questions: As from ``frames.question_frame``.
    """
    return {
        str(system): {kind: int((part["completeness"] == kind).sum()) for kind in get_args(Completeness)}
        for system, part in questions.groupby("system", sort=False)
    }


def damage_lines(questions: pd.DataFrame) -> Iterator[str]:
    """Lines of Markdown on degraded answers, what damaged them in which system; none where no answer is degraded.

    Args:
        questions: As from ``frames.question_frame``.
    """
    degraded = questions[questions["completeness"] == "degraded"]
    if degraded.empty:
        return
    told = []
    for system, part in degraded.groupby("system", sort=False):
        words = damage_in_words(in_order({kind: int(part[kind].sum()) for kind in DAMAGE_KINDS}))
        told.append(f"{system} {count_of(len(part), 'answer')} ({words})")
    yield (
        f"Degraded by faults: {', '.join(told)}. They count in these means; `judgetree eval compare` leaves them out "
        "unless `--rows` says otherwise. `judgetree eval run --retry incomplete` asks them again."
    )
    yield ""


FailureKind = Literal[
    "failed_run",
    "answered_unanswerable",
    "retrieval_miss",
    "judge_false_0",
    "judge_false_2",
    "bad_sub_question",
    "wrong_sub_answer",
    "refused_despite_evidence",
    "reader_missed",
    "format_only",
    "closed_book",
    "other",
]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
"""In the order in which they are shown."""

FAILURE_WORDS: Mapping[FailureKind, tuple[str, str]] = {
    "failed_run": ("failed run", "The run failed, so there is no answer."),
    "answered_unanswerable": ("answered the unanswerable", "The question cannot be answered, and was."),
    "retrieval_miss": (
        "retrieval miss",
        "Not all gold documents were found, and no judge or sub-question is to blame.",
    ),
    "judge_false_0": ("judge false 0", "A gold chunk was scored 0: withheld from the reader, or not followed up."),
    "judge_false_2": ("judge false 2", "A 2 on a chunk that does not hold all gold stopped the search too early."),
    "bad_sub_question": ("bad sub-question", "A gold chunk's sub-question found no gold that was still missing."),
    "wrong_sub_answer": (
        "wrong sub-answer",
        "A sub-run or round found gold, but handed on neither it nor an answer that is drawn from it.",
    ),
    "refused_despite_evidence": ("refused despite evidence", "All gold reached the reader, which refused."),
    "reader_missed": ("reader missed it", "All gold reached the reader, which answered something else."),
    "format_only": ("format only", "The answer contains a gold answer; only exact match fails."),
    "closed_book": ("no retrieval", "The system looks nothing up; it was wrong, or refused, from memory."),
    "other": ("other", "The data set names no gold documents, or the run kept no tree, so the cause cannot be told."),
}
"""By kind: its name, and what it means in a sentence."""

_GROUNDED_SHARE = 0.5
_NEEDS_NO_SOURCE = (["yes"], ["no"])


def failure_kind(row: RunRow, question: EvalQuestion, read_tree: Callable[[], SearchTree | None]) -> FailureKind | None:
    """Why the answer of ``row`` is wrong; None where it is right, or where the gold answers are not known.

    Args:
        row: What came of the question.
        question: The same question with its gold answers and documents.
        read_tree: Gives its search tree, or None where none was kept; called only if the cause lies in the search.
    """
    if not question.answers_known:
        return None
    if row.status == "failed":
        return "failed_run"
    scores = score_answer(question, row.prediction, refused=row.status == "refused")
    if scores.em == 1.0:
        return None
    return _without_a_look(row, question, scores) or _lost_evidence(row, question, read_tree) or _readers_fault(row)


def _without_a_look(row: RunRow, question: EvalQuestion, scores: AnswerScores) -> FailureKind | None:
    if not question.is_answerable:
        return "answered_unanswerable"
    if scores.cover_em == 1.0:
        return "format_only"
    return "closed_book" if row.system not in RETRIEVING else None


def _readers_fault(row: RunRow) -> FailureKind:
    return "refused_despite_evidence" if row.status == "refused" else "reader_missed"


def _lost_evidence(
    row: RunRow, question: EvalQuestion, read_tree: Callable[[], SearchTree | None]
) -> FailureKind | None:
    tree = read_tree() if question.supporting else None
    if tree is None:
        return "other"
    search = _Search(row, question, tree)
    if search.missing:
        if search.has_false_0_at_the_root():
            return "judge_false_0"
        if search.has_false_2():
            return "judge_false_2"
        return "bad_sub_question" if search.has_bad_sub_question() else "retrieval_miss"
    if withheld := search.gold - search.reaching(tree.root):
        return "judge_false_0" if search.scored_0 & withheld else "wrong_sub_answer"
    return None


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """A query of the tree, with the gold that the queries above it had found."""

    query: QueryNode
    known: frozenset[str]
    asked_from: ChunkNode | None = None
    """None for the question itself."""


class _Search:
    """What a tree did with the gold documents of its question."""

    def __init__(self, row: RunRow, question: EvalQuestion, tree: SearchTree) -> None:
        self.gold = frozenset(question.supporting)
        self._lang = question.lang
        self._root = tree.root
        self._keys = {chunk.chunk_id: chunk.key for chunk in row.chunks}
        self._deepest = float(tree.fingerprint.get("max_rec_depth", "inf"))
        chunks = list(tree.chunk_nodes())
        self.missing = self.gold - self._gold_of(chunks)
        self.scored_0 = self._gold_of(chunk for chunk in chunks if chunk.verdict_label == "0")

    def has_false_0_at_the_root(self) -> bool:
        return bool(self._gold_of(chunk for chunk in self._root.chunks if chunk.verdict_label == "0"))

    def has_false_2(self) -> bool:
        return any(
            chunk.verdict_label == "2" and self._is_too_much(chunk, visit)
            for visit in self._visits()
            for chunk in visit.query.chunks
        )

    def _is_too_much(self, chunk: ChunkNode, visit: _Visit) -> bool:
        """Whether it cannot deserve the 2 that it got. Gold to a sub-question is one document of those missing."""
        if visit.asked_from is None:
            return self._gold_of([chunk]) != self.gold
        return visit.query.depth < self._deepest and not self._gold_of([chunk])

    def has_bad_sub_question(self) -> bool:
        return any(
            visit.asked_from is not None
            and self._gold_of([visit.asked_from])
            and self._found_below(visit.query) <= visit.known
            for visit in self._visits()
        )

    def reaching(self, query: QueryNode) -> frozenset[str]:
        """Gold that the reader of ``query`` had before it: in chunks that it was shown, or in answers drawn from it."""
        shown = query.shown_chunks
        handed_up = (
            self.reaching(chunk.child)
            for chunk in shown
            if chunk.child is not None
            and self._is_drawn_from(chunk.sub_answer, [found for _, found in walk_chunks(chunk.child)])
        )
        followed_up = (
            self._gold_of(found) for answer, found in _follow_ups(query) if self._is_drawn_from(answer, found)
        )
        return self._gold_of(shown).union(*handed_up, *followed_up)

    def _is_drawn_from(self, answer: str, chunks: Iterable[ChunkNode]) -> bool:
        """Whether an answer may come from the gold among the chunks."""
        if is_refusal(answer):
            return False
        words = answer_tokens(answer, lang=self._lang)
        if words in _NEEDS_NO_SOURCE:
            return True
        gold = [found for found in chunks if self._gold_of([found])]
        source = {token for found in gold for token in answer_tokens(found.text, lang=self._lang)}
        return sum(token in source for token in words) >= _GROUNDED_SHARE * len(words)

    def _visits(self) -> Iterator[_Visit]:
        """Every query, parents before children."""
        stack = [_Visit(query=self._root, known=frozenset())]
        while stack:
            visit = stack.pop()
            yield visit
            known = visit.known | self._gold_of(visit.query.chunks)
            stack.extend(
                _Visit(query=chunk.child, known=known, asked_from=chunk)
                for chunk in visit.query.chunks
                if chunk.child is not None
            )

    def _found_below(self, query: QueryNode) -> frozenset[str]:
        return self._gold_of(chunk for _, chunk in walk_chunks(query))

    def _gold_of(self, chunks: Iterable[ChunkNode]) -> frozenset[str]:
        return self.gold.intersection(self._keys.get(chunk.chunk_id, "") for chunk in chunks)


def _follow_ups(query: QueryNode) -> Iterator[tuple[str, list[ChunkNode]]]:
    """Answers that a reader was given in place of what rounds had found for them (Self-Ask), each with those chunks."""
    found: dict[str, list[ChunkNode]] = {}
    for chunk in query.chunks:
        if chunk.round:
            found.setdefault(chunk.found_by, []).append(chunk)
    for asked, chunks in found.items():
        _, stands_there, rest = query.evidence.partition(render_sub_answer(asked, ""))
        if stands_there:
            yield rest.partition("\n\n")[0], chunks
