"""Answer metrics: exact match, token F1 with precision and recall, cover exact match, refusal rates.

English, and every language but Chinese, follows the official HotpotQA script (``hotpot_evaluate_v1.py`` of
https://github.com/hotpotqa/hotpot): lower case, without ASCII punctuation, without "a", "an" and "the"; F1 over the bag
of words; "yes", "no" and "noanswer" match only themselves.

Chinese follows CMRC 2018 (``cmrc2018_evaluate.py`` of https://github.com/ymcui/cmrc2018): a token for every Han
character and for every word of other letters, punctuation removed, and the overlap is the longest common run of tokens.
Four things differ from that script: words are split at white space, not by NLTK; all Unicode punctuation except decimal
points, powers, % and ‰ is removed, not a fixed list; exact match ignores white space beside Han characters; and
traditional characters, and letters of full width, equal the usual ones.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from ..datasets.questions import EvalQuestion

if TYPE_CHECKING:
    from opencc import OpenCC

ANSWER_METRICS_VERSION = "2"
"""Version of these metrics. Since 2, Chinese keeps % and ‰, and traditional letters and full width equal the usual."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DROP_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_YES_OR_NO = (["yes"], ["no"])
_ALL_OR_NOTHING = (*_YES_OR_NO, ["noanswer"])

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_CHINESE_TOKEN = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_KEPT = re.compile(r"(?<=\d)[.^](?=\d)|[%‰]")
"""Punctuation that is a part of a number."""
_BEFORE_PER_CENT = re.compile(r"(?<=\d)\s{1,3}(?=[%‰])")
_WIDE = re.compile("[\u3000\ufe50-\ufe6b\uff01-\uffee]+")
"""Letters, digits and marks of another than their usual width."""
# CMRC 2018 removes these Unicode symbols as punctuation. Other symbols (℃, °, <) are part of an answer.
_SYMBOLS_AS_PUNCTUATION = frozenset("^`~+=～")


@dataclass(frozen=True, kw_only=True)
class TokenOverlap:
    """Token overlap of two answers; every score in [0, 1], higher is better."""

    f1: float
    """Harmonic mean of ``precision`` and ``recall``."""
    precision: float
    """Shared tokens divided by the tokens of the prediction."""
    recall: float
    """Shared tokens divided by the tokens of the gold answer."""


@dataclass(frozen=True, kw_only=True)
class AnswerScores:
    """Scores of one answer, each in [0, 1], higher is better."""

    em: float
    """1 where the prediction equals some gold answer after normalisation, else 0."""
    f1: float
    """Highest token F1 against any gold answer."""
    precision: float
    """Token precision against the gold answer of ``f1``; the highest where several share that F1."""
    recall: float
    """Token recall against the same gold answer as ``precision``."""
    cover_em: float
    """1 where the prediction contains some gold answer as whole tokens, else 0; never below ``em``."""


RIGHT = AnswerScores(em=1.0, f1=1.0, precision=1.0, recall=1.0, cover_em=1.0)
WRONG = AnswerScores(em=0.0, f1=0.0, precision=0.0, recall=0.0, cover_em=0.0)
"""Scores of a wrong answer and of a question that failed."""


def normalize_answer(text: str) -> str:
    """Normalise ``text`` as the official HotpotQA script does.

    >>> normalize_answer(" The Band's  first album. ")
    'bands first album'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DROP_ASCII_PUNCTUATION)).split())


def answer_tokens(text: str, *, lang: str = "en") -> list[str]:
    """Split an answer into its normalised tokens, in order; empty if normalisation removes everything.

    >>> answer_tokens("《紅樓夢》的 PDF 版, ３.５ 元", lang="zh")
    ['红', '楼', '梦', '的', 'pdf', '版', '3.5', '元']
    """
    if not is_chinese(lang):
        return normalize_answer(text).split()
    lowered = _BEFORE_PER_CENT.sub("", _simplified(fold_letters(text)).lower())
    of_numbers = {match.start() for match in _KEPT.finditer(lowered)}
    kept = (char for at, char in enumerate(lowered) if at in of_numbers or not _is_punctuation(char))
    return _CHINESE_TOKEN.findall("".join(kept))


def exact_match(prediction: str, gold: str, *, lang: str = "en") -> float:
    """Return 1.0 if both answers have the same tokens after normalisation, else 0.0.

    As in the official scripts, two answers that normalise to nothing ("The" and "A") match, though their F1 is 0.
    """
    return float(answer_tokens(prediction, lang=lang) == answer_tokens(gold, lang=lang))


def token_overlap(prediction: str, gold: str, *, lang: str = "en") -> TokenOverlap:
    """Compute token F1, precision and recall; all 0 if no token is shared.

    >>> token_overlap("the drum of Bern", "Bern drum")
    TokenOverlap(f1=0.8, precision=0.6666666666666666, recall=1.0)
    >>> token_overlap("no, it is not", "no")
    TokenOverlap(f1=0.0, precision=0.0, recall=0.0)
    """
    predicted, wanted = answer_tokens(prediction, lang=lang), answer_tokens(gold, lang=lang)
    shared = _longest_common_run(predicted, wanted) if is_chinese(lang) else _shared_words(predicted, wanted)
    if shared == 0:
        return TokenOverlap(f1=0.0, precision=0.0, recall=0.0)
    precision, recall = shared / len(predicted), shared / len(wanted)
    return TokenOverlap(f1=2 * precision * recall / (precision + recall), precision=precision, recall=recall)


def cover_exact_match(prediction: str, gold: str, *, lang: str = "en") -> float:
    """Return 1.0 if ``prediction`` contains the tokens of ``gold`` as one run, else 0.0.

    Only whole tokens match: "Bartok" does not contain "art". A gold answer that normalises to nothing is contained only
    in a prediction that does too, and yes or no only in one that begins with it: "Yes, there is no doubt" is no "no".
    After Mallen et al., When Not to Trust Language Models (2023), who match substrings.
    """
    predicted, wanted = answer_tokens(prediction, lang=lang), answer_tokens(gold, lang=lang)
    if not wanted:
        return float(not predicted)
    starts = range(1 if wanted in _YES_OR_NO else len(predicted) - len(wanted) + 1)
    return float(any(predicted[start : start + len(wanted)] == wanted for start in starts))


def score_answer(question: EvalQuestion, prediction: str, *, refused: bool) -> AnswerScores:
    """Score ``prediction`` against the gold answer that fits it best; ``question.lang`` selects the tokenizer.

    Every score of an unanswerable question is 1 if it was refused, else 0. Every score of a refused answerable question
    is 0, unless the refusal is a gold answer, such as "not enough info". A question that failed is not a refusal: use
    ``WRONG``.

    Args:
        question: The question with its gold answers, in any order.
        prediction: The answer.
        refused: Whether the answer is a refusal, as the caller decided.

    Raises:
        ValueError: The gold answers of the question are unknown.
    """
    if not question.answers_known:
        raise ValueError(f"Question {question.id!r} has no gold answers, so it cannot be scored: leave it out.")
    if not question.is_answerable:
        return RIGHT if refused else WRONG
    golds, lang = question.answers, question.lang
    if question.folds_letters:
        golds, prediction = tuple(map(fold_letters, golds)), fold_letters(prediction)
    em = max(exact_match(prediction, gold, lang=lang) for gold in golds)
    if refused and not (prediction.strip() and em):
        return WRONG
    overlaps = (token_overlap(prediction, gold, lang=lang) for gold in golds)
    best = max(overlaps, key=lambda overlap: (overlap.f1, overlap.precision))
    return AnswerScores(
        em=em,
        f1=best.f1,
        precision=best.precision,
        recall=best.recall,
        cover_em=max(cover_exact_match(prediction, gold, lang=lang) for gold in golds),
    )


def fold_letters(text: str) -> str:
    """Return a text with composed letters, and those of full or half width as usual ones.

    >>> fold_letters("Que\u0301bec １９７２") == "Québec 1972"
    True
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text))


def _simplified(text: str) -> str:
    return text if text.isascii() else str(_converter().convert(text))


@functools.cache
def _converter() -> OpenCC:
    from opencc import OpenCC  # noqa: PLC0415 - only Chinese answers need its tables

    return OpenCC("t2s")


def is_chinese(lang: str) -> bool:
    """Whether an ISO 639-1 code, perhaps with a region, is that of Chinese."""
    return lang.casefold().replace("_", "-").partition("-")[0] == "zh"


def _is_punctuation(char: str) -> bool:
    return char in _SYMBOLS_AS_PUNCTUATION or unicodedata.category(char).startswith("P")


def _shared_words(predicted: list[str], wanted: list[str]) -> int:
    if predicted != wanted and (predicted in _ALL_OR_NOTHING or wanted in _ALL_OR_NOTHING):
        return 0
    return (Counter(predicted) & Counter(wanted)).total()


def _longest_common_run(predicted: list[str], wanted: list[str]) -> int:
    # difflib's default, autojunk=True, ignores the most frequent tokens of a long answer.
    return SequenceMatcher(None, predicted, wanted, autojunk=False).find_longest_match().size
