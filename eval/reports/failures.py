"""Incomplete answers of a run, those with caveats, and the causes of wrong answers, whose counts add up to all errors.

An answer is wrong if its exact match is 0. Its kind is the first of these that applies. Kinds 1 to 5 need no search
tree; kinds 6 to 11 name the first step of the search that kept a gold document from the reader.

1. ``failed_run``: the run failed, so there is no answer.
2. ``answered_unanswerable``: the question is unanswerable, but was answered.
3. ``format_only``: the answer contains a gold answer (cover exact match).
4. ``closed_book``: the system does not retrieve.
5. ``other``: the data set names no gold documents, or the run has no tree of the question.

Some gold was not found anywhere in the tree:

6. ``judge_false_0``: the question itself found gold, but the judge scored it 0, so it was not followed up, as the
   depth of the search allowed.
7. ``judge_false_2``: a 2 stopped the search above the deepest level, so that its query asked nothing on: at the
   question itself, on a chunk without all of the gold; further down, on a chunk without gold. Not where nothing stops
   a search.
8. ``bad_sub_question``: a gold chunk led to a sub-question whose subtree found no gold that was new on its path, and
   that does not name a missing document by its title: of one that does, the search is to blame.
9. ``retrieval_miss``: none of these.

All gold was found, but some did not reach the reader of the question:

10. ``judge_false_0``: gold was scored 0 and withheld.
11. ``wrong_sub_answer``: the sub-run or round that found it passed on neither the gold nor an answer drawn from it: no
    answer, a refusal, or an answer with most words outside the gold chunks below it (except yes and no). Data sets
    have no gold answers to sub-questions, so this is the closest check.

All gold reached the reader:

12. ``refused_despite_evidence``: it refused.
13. ``reader_missed``: it gave another answer.

Gold is known by document: any chunk of a gold document counts as gold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from ...graphs.config.variants import system_name
from ...graphs.drawing.words import count_of
from ...graphs.rag.search_tree import SearchTree
from ...graphs.search.stop import Never
from ...graphs.systems.registry import retrieves
from ...graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks
from ...modules.caveats.kinds import CAVEATS, CaveatKind
from ...modules.reader.refusals import is_refusal
from ..datasets.questions import EvalQuestion
from ..datasets.rows import title_in_key
from ..metrics.answers import AnswerScores, answer_tokens, cover_exact_match, score_answer
from ..metrics.context import answers_to
from ..metrics.damage import DAMAGE_KINDS, OWN_FAILURES, format_damage, in_order
from ..rows.store import INCOMPLETE, Completeness, RunRow
from .frames import CAVEAT

_DISAMBIGUATION = re.compile(r" \([^()]{1,80}\)$")
"""What an encyclopedia adds to a title that several things have, and no question says."""


def completeness_counts(questions: pd.DataFrame) -> dict[str, dict[Completeness, int]]:
    """Count complete, degraded and failed answers of each system of a ``frames.question_frame``; all kinds are keys."""
    return {
        str(system): {kind: int((part["completeness"] == kind).sum()) for kind in get_args(Completeness)}
        for system, part in questions.groupby("system", sort=False)
    }


def incomplete_words(questions: pd.DataFrame, missing: int) -> Iterator[str]:
    """Yield a sentence on the ``missing`` answers of a run, and one on the degraded and the failed ones that it has."""
    if missing:
        yield f"The run is not finished: {missing:,} of {missing + len(questions):,} answers are missing."
    counts = completeness_counts(questions)
    for kind in INCOMPLETE:
        if said := [f"{system} {of[kind]:,}" for system, of in counts.items() if of[kind]]:
            yield f"{kind.capitalize()} answers, which count in means: {', '.join(said)}."


def damage_remarks(questions: pd.DataFrame) -> Iterator[str]:
    """Yield a paragraph on the degraded answers in a ``frames.question_frame``, and one on unusable replies."""
    degraded = questions[questions["completeness"] == "degraded"]
    unusable = questions[(questions["completeness"] == "complete") & has_own_failure(questions)]
    if not degraded.empty:
        remedy = f" {CAVEATS['reply_cut'].remedy}" if degraded["cut_off_replies"].any() else ""
        yield (
            f"Degraded by faults: {_damage_by_system(degraded)}. They count in these means; `judgetree eval compare` "
            "leaves them out unless `--rows` says otherwise. `judgetree eval run --retry incomplete` asks them again."
            f"{remedy}"
        )
    if not unusable.empty:
        yield (
            f"Replies that could not be used: {_damage_by_system(unusable)}. They are the system's own failures: these "
            "answers count, here and in comparisons; `judgetree eval compare --rows usable` leaves them out."
        )


def has_own_failure(questions: pd.DataFrame) -> pd.Series[bool]:
    """Return, for each row of a ``frames.question_frame``, whether it has damage of ``OWN_FAILURES``."""
    return questions[sorted(OWN_FAILURES)].gt(0).any(axis=1)


def _damage_by_system(questions: pd.DataFrame) -> str:
    systems = []
    for system, part in questions.groupby("system", sort=False):
        words = format_damage(in_order({kind: int(part[kind].sum()) for kind in DAMAGE_KINDS}))
        systems.append(f"{system} {count_of(len(part), 'answer')} ({words})")
    return ", ".join(systems)


def caveat_counts(questions: pd.DataFrame) -> dict[str, dict[CaveatKind, int]]:
    """Count the answers of each system of a ``frames.question_frame`` with each kind of caveat; kinds without any are
    left out."""
    return {
        str(system): {kind: count for kind in CAVEATS if (count := int((part[f"{CAVEAT}{kind}"] > 0).sum()))}
        for system, part in questions.groupby("system", sort=False)
    }


def caveat_remarks(questions: pd.DataFrame) -> Iterator[str]:
    """Yield a paragraph and a list on answers with caveats: an item a kind, each system's share, and what to do."""
    counts = caveat_counts(questions)
    if not any(counts.values()):
        return
    answers = {str(system): len(part) for system, part in questions.groupby("system", sort=False)}
    marked = int((questions["caveats"] != "").sum())
    yield (
        f"{count_of(marked, 'answer')} of {len(questions):,} with replies that are worse than they look. They count "
        "in these means and in comparisons; `results.csv` names them."
    )
    items = []
    for kind, caveat in CAVEATS.items():
        shares = [
            f"{system} {of[kind]:,} of {answers[system]:,} ({of[kind] / answers[system]:.0%})"
            for system, of in counts.items()
            if kind in of
        ]
        if shares:
            items.append(f"- **{caveat.noun}**: {', '.join(shares)}. {caveat.sentence} {caveat.remedy}")
    yield "\n".join(items)


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
"""All kinds, in display order."""

FAILURE_WORDS: Mapping[FailureKind, tuple[str, str]] = {
    "failed_run": ("failed run", "The run failed, so there is no answer."),
    "answered_unanswerable": ("answered the unanswerable", "The question cannot be answered, and was."),
    "retrieval_miss": (
        "retrieval miss",
        "Not all gold documents were found, and no judge or sub-question is to blame.",
    ),
    "judge_false_0": ("judge false 0", "A gold chunk was scored 0: withheld from the reader, or not followed up."),
    "judge_false_2": ("judge false 2", "A 2 on a chunk that does not hold all gold stopped the search too early."),
    "bad_sub_question": (
        "bad sub-question",
        "A gold chunk's sub-question neither named nor found missing gold.",
    ),
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
"""Name and one-sentence meaning of each kind."""

_GROUNDED_SHARE = 0.5
_NEEDS_NO_SOURCE = (["yes"], ["no"])


def failure_kind(row: RunRow, question: EvalQuestion, read_tree: Callable[[], SearchTree | None]) -> FailureKind | None:
    """Classify the error of ``row``; None if its answer is right or its gold answers are unknown.

    ``read_tree`` reads the search tree, or returns None without one; it is called only if the cause lies in the search.
    """
    if not question.answers_known:
        return None
    if row.status == "failed":
        return "failed_run"
    scores = score_answer(question, row.prediction, refused=row.status == "refused")
    if scores.em == 1.0:
        return None
    if kind := _kind_without_tree(row, question, scores) or _lost_evidence(row, question, read_tree):
        return kind
    return "refused_despite_evidence" if row.status == "refused" else "reader_missed"


def _kind_without_tree(row: RunRow, question: EvalQuestion, scores: AnswerScores) -> FailureKind | None:
    if not question.is_answerable:
        return "answered_unanswerable"
    if scores.cover_em == 1.0:
        return "format_only"
    return None if retrieves(system_name(row.system)) else "closed_book"


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
    """A query of the tree, with the gold found by the queries above it."""

    query: QueryNode
    known: frozenset[str]
    asked_from: ChunkNode | None = None
    """The chunk that asked the query; None for the question itself."""


class _Search:
    """The gold documents of a question in its search tree."""

    def __init__(self, row: RunRow, question: EvalQuestion, tree: SearchTree) -> None:
        self.gold = frozenset(question.supporting)
        self._lang = question.lang
        self._root = tree.root
        self._queries = {query.thread_id: query for query in tree.query_nodes()}
        self._keys = row.keys_by_chunk
        self._deepest = float(tree.fingerprint.get("max_rec_depth", "inf"))
        self._is_never_stopped = tree.fingerprint.get("stop.name") == Never.name
        chunks = list(tree.chunk_nodes())
        self.missing = self.gold - self._gold_of(chunks)
        self.scored_0 = self._gold_of(chunk for chunk in chunks if chunk.verdict_label == "0")

    def has_false_0_at_the_root(self) -> bool:
        scored_0 = self._gold_of(chunk for chunk in self._root.chunks if chunk.verdict_label == "0")
        return bool(scored_0) and self._deepest > 0

    def has_false_2(self) -> bool:
        return not self._is_never_stopped and any(
            chunk.verdict_label == "2" and self._is_too_much(chunk, visit)
            for visit in self._visits()
            for chunk in visit.query.chunks
        )

    def _is_too_much(self, chunk: ChunkNode, visit: _Visit) -> bool:
        """Whether a chunk's 2 wrongly stopped its query; a sub-question needs one of the missing gold documents."""
        has_asked = any(each.sub_runs or each.shared_thread_id for each in visit.query.chunks)
        if has_asked or visit.query.depth >= self._deepest:
            return False
        return not self._gold_of([chunk]) if visit.asked_from else self._gold_of([chunk]) != self.gold

    def has_bad_sub_question(self) -> bool:
        return any(
            visit.asked_from is not None
            and self._gold_of([visit.asked_from])
            and self._gold_of(found for _, found in walk_chunks(visit.query)) <= visit.known
            and not self._names_missing_gold(visit)
            for visit in self._visits()
        )

    def _names_missing_gold(self, visit: _Visit) -> bool:
        titles = (_name_in(title_in_key(key)) for key in self.missing - visit.known)
        return any(cover_exact_match(visit.query.query, title, lang=self._lang) for title in titles)

    def reaching(self, query: QueryNode) -> frozenset[str]:
        """Collect the gold shown to the reader of ``query``: in chunks, or in sub-answers drawn from gold."""
        queue, seen = [query], {id(query)}
        for each in queue:  # the queue grows
            handed_up = [
                sub_run
                for chunk in each.shown_chunks
                for answer, sub_run in answers_to(chunk, self._queries)
                if id(sub_run) not in seen and self._is_drawn_from(answer, [at for _, at in walk_chunks(sub_run)])
            ]
            queue += handed_up
            seen |= {id(sub_run) for sub_run in handed_up}
        return frozenset[str]().union(*map(self._reaching_alone, queue))

    def _reaching_alone(self, query: QueryNode) -> frozenset[str]:
        by_answer: defaultdict[str, list[ChunkNode]] = defaultdict(list)
        for chunk in query.chunks:
            by_answer[chunk.round_answer].append(chunk)
        followed_up = (
            self._gold_of(found) for answer, found in by_answer.items() if self._is_drawn_from(answer, found)
        )
        return self._gold_of(query.shown_chunks).union(*followed_up)

    def _is_drawn_from(self, answer: str, chunks: Iterable[ChunkNode]) -> bool:
        """Whether an answer may be drawn from the gold among the chunks."""
        if is_refusal(answer):
            return False
        words = answer_tokens(answer, lang=self._lang)
        if words in _NEEDS_NO_SOURCE:
            return True
        gold = [found for found in chunks if self._gold_of([found])]
        source = {token for found in gold for token in answer_tokens(found.text, lang=self._lang)}
        return sum(token in source for token in words) >= _GROUNDED_SHARE * len(words)

    def _visits(self) -> Iterator[_Visit]:
        """Yield every query, parents before children."""
        stack = [_Visit(query=self._root, known=frozenset())]
        while stack:
            visit = stack.pop()
            yield visit
            known = visit.known | self._gold_of(visit.query.chunks)
            stack.extend(
                _Visit(query=sub_run, known=known, asked_from=chunk)
                for chunk in visit.query.chunks
                for sub_run in chunk.sub_runs
            )

    def _gold_of(self, chunks: Iterable[ChunkNode]) -> frozenset[str]:
        return self.gold.intersection(key for chunk in chunks for key in self._keys.get(chunk.chunk_id, ()))


def _name_in(title: str) -> str:
    return _DISAMBIGUATION.sub("", title)
