"""How well a conversation is led: its rewrites, the earlier turns that it finds, and what it reuses.

ROUGE-1 recall (Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries) over the words of both: case folded,
split at everything but letters and digits, without stemming and with all stop words. Chinese is cut like its answers
(``answer_tokens``): a token for every Han character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from ..datasets.questions import EvalQuestion
from .answers import answer_tokens

QueryForm = Literal["raw", "joined", "rewrite", "human"]
"""As asked; all questions up to it, joined; as rewritten by us; as rewritten by a human."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class RewriteScores:
    """Scores of one rewrite, each in [0, 1], higher is better."""

    rouge1_recall: float
    """Share of the human's words, each as often as it stands there, that the rewrite has.

    A rewrite that adds words loses nothing: all questions of a dialogue joined score high.
    """
    exact: float
    """1 where both have the same words in the same order, else 0."""


def rewrite_scores(rewrite: str, human: str, *, lang: str) -> RewriteScores:
    """Compare a rewrite with that of a human; both are of one language (ISO 639-1 code).

    >>> rewrite_scores("Is the throat cancer treatable?", "Is throat cancer treatable?", lang="en")
    RewriteScores(rouge1_recall=1.0, exact=0.0)
    >>> rewrite_scores("Is it?", "Is it it?", lang="en")
    RewriteScores(rouge1_recall=0.6666666666666666, exact=0.0)

    Raises:
        ValueError: There is no word in the human's.
    """
    ours, theirs = _words(rewrite, lang), _words(human, lang)
    if not theirs:
        raise ValueError(f"There is no rewrite to compare with: {human!r} has no word. Leave such a turn out.")
    shared = (Counter(ours) & Counter(theirs)).total()
    return RewriteScores(rouge1_recall=shared / len(theirs), exact=float(ours == theirs))


def query_forms(question: EvalQuestion, rewrite: str) -> Mapping[QueryForm, str]:
    """What a turn can be searched for with, in the order of ``QueryForm``.

    "human" is left out where no human rewrote the question. One that stands alone is its own joined form.
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
    if lang.casefold().partition("-")[0] == "zh":
        return answer_tokens(text, lang=lang)
    return _WORD.findall(text.casefold())


@dataclass(frozen=True, kw_only=True)
class NeededScores:
    """How the turns that a system named agree with the gold ones; each in [0, 1], higher is better."""

    precision: float | None
    """Share of the named turns that are gold; None where none was named."""
    recall: float | None
    """Share of the gold turns that were named; None where there are none."""
    f1: float
    """Their harmonic mean; 1 where there are none and none was named."""


def needed_scores(named: Collection[int], gold: Collection[int]) -> NeededScores:
    """Compare the turns that a system named with the gold ones, by number.

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
    """Length of its path: 1 for a first turn, more for a follow-up."""
    from_history: bool = False
    """Whether it was answered from what earlier turns had found, without a search."""
    kept_chunks: int = 0
    """Chunks of earlier turns that its answer rests on beside what it searched for."""
    is_right: bool | None = None
    """Whether the answer is right; None where that cannot be told."""
    topic_switch: bool | None = None
    """Whether the question leaves the topic, as the data set says; None where it does not say."""

    @property
    def is_follow_up(self) -> bool:
        """Whether there was something to reuse."""
        return self.number > 1

    @property
    def reuses(self) -> bool:
        """Whether it is a follow-up that was answered from history or with a kept chunk."""
        return self.is_follow_up and (self.from_history or self.kept_chunks > 0)

    @property
    def reuses_wrongly(self) -> bool | None:
        """True where reuse did harm: answered from history, and the answer is wrong; or a kept chunk on a new topic.

        False where the turn reuses nothing, or neither is so. None where what it takes to tell is not known: of an
        answer from history, whether it is right; of a kept chunk, whether the topic is new.
        """
        if not self.reuses:
            return False
        harms: list[bool | None] = []
        if self.from_history:
            harms.append(None if self.is_right is None else not self.is_right)
        if self.kept_chunks > 0:
            harms.append(self.topic_switch)
        return True if True in harms else None if None in harms else False
