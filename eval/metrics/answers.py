"""How right an answer is: exact match, token F1 with its precision and recall, cover exact match, refusals.

English, and every language but Chinese, as the official HotpotQA script does (``hotpot_evaluate_v1.py`` of
https://github.com/hotpotqa/hotpot): lower case, without ASCII punctuation, without "a", "an" and "the"; F1 over the bag
of words; "yes", "no" and "noanswer" overlap with nothing but themselves.

Chinese as CMRC 2018 does (``cmrc2018_evaluate.py`` of https://github.com/ymcui/cmrc2018): a token for every Han
character and for every word of other letters, punctuation removed, and the overlap is the longest run of tokens that
both have. We depart from that script in three things. Words are split at white space, not by NLTK; all Unicode
punctuation is removed, not a list, but for a full stop between digits; white space beside a Han character does not
count in exact match.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..datasets.questions import EvalQuestion

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DROP_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ALL_OR_NOTHING = (["yes"], ["no"], ["noanswer"])

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_CHINESE_TOKEN = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)")
# CMRC 2018 removes them although Unicode calls them symbols. Others (℃, °, <) are part of an answer.
_SYMBOLS_AS_PUNCTUATION = frozenset("^`~+=～")


@dataclass(frozen=True, kw_only=True)
class TokenOverlap:
    """How far two answers share their tokens; every figure in [0, 1], higher is better."""

    f1: float
    """Harmonic mean of the two below."""
    precision: float
    """Shared tokens by those of the prediction."""
    recall: float
    """Shared tokens by those of the gold answer."""


@dataclass(frozen=True, kw_only=True)
class AnswerScores:
    """Scores of one answer, each in [0, 1], higher is better."""

    em: float
    """1 where the prediction equals some gold answer after normalisation, else 0."""
    f1: float
    """Token F1 against the gold answer that gives the most."""
    precision: float
    """Of that same gold answer; of several with the same F1, the most precise."""
    recall: float
    """Of that same gold answer."""
    cover_em: float
    """1 where the prediction contains some gold answer as whole tokens, else 0; never below ``em``."""


RIGHT = AnswerScores(em=1.0, f1=1.0, precision=1.0, recall=1.0, cover_em=1.0)
WRONG = AnswerScores(em=0.0, f1=0.0, precision=0.0, recall=0.0, cover_em=0.0)
"""Also the scores of a question that failed."""


@dataclass(frozen=True, kw_only=True)
class RefusalRates:
    """Shares of refused questions, in [0, 1]; None where there is no such question."""

    answerable: float | None
    """Lower is better."""
    unanswerable: float | None
    """Higher is better."""


def normalize_answer(text: str) -> str:
    """``text`` as the official HotpotQA script compares it.

    >>> normalize_answer(" The Band's  first album. ")
    'bands first album'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DROP_ASCII_PUNCTUATION)).split())


def answer_tokens(text: str, *, lang: str = "en") -> list[str]:
    """The tokens of an answer after normalisation, in their order; empty where nothing is left of it.

    >>> answer_tokens("《红楼梦》的 PDF 版, 3.5 元", lang="zh")
    ['红', '楼', '梦', '的', 'pdf', '版', '3.5', '元']
    """
    if not _is_chinese(lang):
        return normalize_answer(text).split()
    lowered = text.lower()
    decimal_points = {match.start() for match in _DECIMAL_POINT.finditer(lowered)}
    kept = (char for at, char in enumerate(lowered) if at in decimal_points or not _is_punctuation(char))
    return _CHINESE_TOKEN.findall("".join(kept))


def exact_match(prediction: str, gold: str, *, lang: str = "en") -> float:
    """1.0 where both are the same after normalisation, else 0.0.

    Two answers of which normalisation leaves nothing ("The" and "A") match, though their F1 is 0, as in the scripts.
    """
    return float(answer_tokens(prediction, lang=lang) == answer_tokens(gold, lang=lang))


def token_overlap(prediction: str, gold: str, *, lang: str = "en") -> TokenOverlap:
    """F1, precision and recall; all 0 where nothing is shared. Exchanging the answers exchanges the latter two.

    >>> token_overlap("the drum of Bern", "Bern drum")
    TokenOverlap(f1=0.8, precision=0.6666666666666666, recall=1.0)
    >>> token_overlap("no, it is not", "no")
    TokenOverlap(f1=0.0, precision=0.0, recall=0.0)
    """
    predicted, wanted = answer_tokens(prediction, lang=lang), answer_tokens(gold, lang=lang)
    shared = _longest_common_run(predicted, wanted) if _is_chinese(lang) else _shared_words(predicted, wanted)
    if shared == 0:
        return TokenOverlap(f1=0.0, precision=0.0, recall=0.0)
    precision, recall = shared / len(predicted), shared / len(wanted)
    return TokenOverlap(f1=2 * precision * recall / (precision + recall), precision=precision, recall=recall)


def cover_exact_match(prediction: str, gold: str, *, lang: str = "en") -> float:
    """1.0 where the tokens of ``gold`` stand in ``prediction`` one after the other, else 0.0.

    Whole tokens: "art" is not contained in "Bartok". A gold answer of which normalisation leaves nothing is contained
    only in its like. Mallen et al., When Not to Trust Language Models (2023), count so, but look for strings.
    """
    predicted, wanted = answer_tokens(prediction, lang=lang), answer_tokens(gold, lang=lang)
    if not wanted:
        return float(not predicted)
    starts = range(len(predicted) - len(wanted) + 1)
    return float(any(predicted[start : start + len(wanted)] == wanted for start in starts))


def score_answer(question: EvalQuestion, prediction: str, *, refused: bool) -> AnswerScores:
    """The best scores that ``prediction`` gets against any gold answer; ``question.lang`` picks the variant.

    An unanswerable question scores 1 throughout if it was refused, else 0, whatever the prediction says. A refusal of
    an answerable question scores 0 throughout, even where its words overlap with the gold answer. A question that
    failed is no refusal and gets ``WRONG``.

    Args:
        question: What was asked, with its gold answers; their order does not matter.
        prediction: The answer.
        refused: Whether the answer is a refusal, as the caller decided.

    Raises:
        ValueError: The answers of the question are not known, so that nothing can be said of this one.
    """
    if not question.answers_known:
        raise ValueError(f"Question {question.id!r} comes without answers, so none can be scored: leave it out.")
    if refused or not question.is_answerable:
        return RIGHT if refused and not question.is_answerable else WRONG
    golds, lang = question.answers, question.lang
    overlaps = (token_overlap(prediction, gold, lang=lang) for gold in golds)
    best = max(overlaps, key=lambda overlap: (overlap.f1, overlap.precision))
    return AnswerScores(
        em=max(exact_match(prediction, gold, lang=lang) for gold in golds),
        f1=best.f1,
        precision=best.precision,
        recall=best.recall,
        cover_em=max(cover_exact_match(prediction, gold, lang=lang) for gold in golds),
    )


def refusal_rates(questions: Iterable[EvalQuestion], refused: Iterable[bool]) -> RefusalRates:
    """How often answerable and unanswerable questions were refused; ``refused[i]`` belongs to ``questions[i]``.

    Questions whose answers are not known count for neither.

    Raises:
        ValueError: There are more of the one than of the other.
    """
    outcomes: dict[bool, list[bool]] = {True: [], False: []}
    for question, was_refused in zip(questions, refused, strict=True):
        if question.answers_known:
            outcomes[question.is_answerable].append(was_refused)
    return RefusalRates(answerable=_share(outcomes[True]), unanswerable=_share(outcomes[False]))


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _is_chinese(lang: str) -> bool:
    return lang.casefold().partition("-")[0] == "zh"


def _is_punctuation(char: str) -> bool:
    return char in _SYMBOLS_AS_PUNCTUATION or unicodedata.category(char).startswith("P")


def _shared_words(predicted: list[str], wanted: list[str]) -> int:
    if predicted != wanted and (predicted in _ALL_OR_NOTHING or wanted in _ALL_OR_NOTHING):
        return 0
    return (Counter(predicted) & Counter(wanted)).total()


def _longest_common_run(predicted: list[str], wanted: list[str]) -> int:
    # By default difflib takes the commonest tokens of a long answer for junk.
    return SequenceMatcher(None, predicted, wanted, autojunk=False).find_longest_match().size
