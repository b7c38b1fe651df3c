"""Conversation metrics: quality of rewrites, needed earlier turns, reuse of earlier evidence.

ROUGE-1 recall (Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries) counts case-folded words, split at
everything but letters and digits, without stemming and with all stop words. Chinese counts Han characters, as
``answer_tokens`` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from ..datasets.questions import EvalQuestion
from .answers import answer_tokens, is_chinese

QueryForm = Literal["raw", "joined", "rewrite", "human"]
"""raw: as asked. joined: all questions of the path, joined. rewrite: the system's. human: the data set's."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class RewriteScores:
    """Scores of one rewrite, each in [0, 1], higher is better."""

    rouge1_recall: float
    """Share of the words of the human rewrite, counted with repetitions, that the rewrite contains.

    Added words cost nothing, so all questions of a dialogue joined score high.
    """
    exact: float
    """1 where both have the same words in the same order, else 0."""


def rewrite_scores(rewrite: str, human: str, *, lang: str) -> RewriteScores:
    """Compare a rewrite with a human one in the same language (ISO 639-1 code).

    >>> rewrite_scores("Is the throat cancer treatable?", "Is throat cancer treatable?", lang="en")
    RewriteScores(rouge1_recall=1.0, exact=0.0)
    >>> rewrite_scores("Is it?", "Is it it?", lang="en")
    RewriteScores(rouge1_recall=0.6666666666666666, exact=0.0)

    Raises:
        ValueError: The human rewrite contains no word.
    """
    ours, theirs = _words(rewrite, lang), _words(human, lang)
    if not theirs:
        raise ValueError(f"The human rewrite {human!r} contains no word to compare with. Leave this turn out.")
    shared = (Counter(ours) & Counter(theirs)).total()
    return RewriteScores(rouge1_recall=shared / len(theirs), exact=float(ours == theirs))


def query_forms(question: EvalQuestion, rewrite: str) -> Mapping[QueryForm, str]:
    """Collect the search queries that a turn allows, in the order of ``QueryForm``.

    "human" is missing if the data set has no rewrite. The joined form of a first turn is its question.
    """
    turn = question.turn
    earlier = [asked for asked, _ in turn.history] if turn else []
    forms: dict[QueryForm, str] = {
        "raw": question.question,
        "joined": " ".join([*earlier, question.question]),
        "rewrite": rewrite,
    }
    return {**forms, "human": turn.rewrite} if turn and turn.rewrite else forms


def _words(text: str, lang: str) -> list[str]:
    return answer_tokens(text, lang=lang) if is_chinese(lang) else _WORD.findall(text.casefold())


@dataclass(frozen=True, kw_only=True)
class NeededScores:
    """Agreement of the turns that a system named with the gold turns; each score in [0, 1], higher is better."""

    precision: float | None
    """Share of the named turns that are gold; None where none was named."""
    recall: float | None
    """Share of the gold turns that were named; None where there are none."""
    f1: float
    """Harmonic mean of both; 1 where there are no gold turns and none was named."""


def needed_scores(named: Collection[int], gold: Collection[int]) -> NeededScores:
    """Compare the turn numbers that a system named with the gold ones.

    >>> needed_scores({1, 2}, {2})
    NeededScores(precision=0.5, recall=1.0, f1=0.6666666666666666)
    >>> needed_scores({1}, set())
    NeededScores(precision=0.0, recall=None, f1=0.0)
    """
    ours, theirs = set(named), set(gold)
    shared = len(ours & theirs)
    return NeededScores(
        precision=shared / len(ours) if ours else None,
        recall=shared / len(theirs) if theirs else None,
        f1=2 * shared / (len(ours) + len(theirs)) if ours or theirs else 1.0,
    )


@dataclass(frozen=True, kw_only=True)
class AnsweredTurn:
    """One turn that a conversation has answered."""

    number: int
    """Position on its path: 1 for a first turn, more for a follow-up."""
    from_history: bool = False
    """True if it was answered from the evidence of earlier turns, without a search."""
    kept_chunks: int = 0
    """Chunks of earlier turns that its answer uses beside those of its own search."""
    is_right: bool | None = None
    """Whether the answer is right; None if unknown."""
    topic_switch: bool | None = None
    """Whether the data set marks a change of topic; None if it has no such mark."""

    @property
    def is_follow_up(self) -> bool:
        """Whether the path has an earlier turn."""
        return self.number > 1

    @property
    def reuses(self) -> bool:
        """Whether it is a follow-up that was answered from history or with a kept chunk."""
        return self.is_follow_up and (self.from_history or self.kept_chunks > 0)

    @property
    def reuses_wrongly(self) -> bool | None:
        """True where reuse did harm: a wrong answer from history, or a chunk kept across a change of topic.

        None where the harm is unknown: the answer from history was not scored, or the data set marks no topics.
        """
        if not self.reuses:
            return False
        harms: list[bool | None] = []
        if self.from_history:
            harms.append(None if self.is_right is None else not self.is_right)
        if self.kept_chunks > 0:
            harms.append(self.topic_switch)
        return True if True in harms else None if None in harms else False
