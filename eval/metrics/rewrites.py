"""How near a stand-alone question comes to the one that a human wrote, and the forms in which a turn can be asked.

ROUGE-1 recall (Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries) over the words of both: case folded,
split at everything but letters and digits, without stemming and with all stop words. Chinese is cut like its answers
(``answer_tokens``): a token for every Han character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
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
