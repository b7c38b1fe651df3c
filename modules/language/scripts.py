"""The scripts of the letters in texts; Latin ones are distinguished as far as embedders treat them differently."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from .folding import folded

ENGLISH, LATIN, VIETNAMESE, OTHER = "English", "Latin other than English", "Vietnamese", "other scripts"
JAPANESE, CHINESE = "Japanese", "Chinese"

_RANGES = {
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "Devanagari": "\u0900-\u097f",
    "Thai": "\u0e00-\u0e7f",
    "Korean": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7af",
    JAPANESE: "\u3040-\u30ff",
    CHINESE: "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
}
_LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")
_ACCENTED = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
_OF_VIETNAMESE = re.compile("[\u0102\u0103\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
_NO_LETTER = re.compile(r"[\W\d_]+")
_FUNCTION_WORDS = """
a about after all also an and any are as at be because been before between but by can could did do does each for from
had has have he her his how if in into is it its may more most must no not of on one only or other our shall should
since so some such than that the their them then there these they this those to under up was we were what when where
which while who why will with would you your
"""
_ENGLISH_WORDS = frozenset(_FUNCTION_WORDS.split())
_ACCENTS, _ENGLISH_SHARE, _VIETNAMESE_SHARE = 0.005, 0.2, 0.05
"""A text is English without accents on one letter in 200, or with every fifth word a function word of English: English
prose has a third of them, the other languages of ``data/scripts_qa.jsonl`` at most an eighth."""
_KANA = 0.1
_MOST_TEXTS = 1_000


def script_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each script among the letters, the largest first; none without letters.

    At most 1,000 texts are read, evenly spread, always the same of the same texts: 0.1 s.

    >>> script_shares(["The pump is off.", "ปั๊มน้ำหยุด"])
    {'English': 0.6316, 'Thai': 0.3684}
    """
    letters: Counter[str] = Counter()
    step = -(-len(texts) // _MOST_TEXTS) or 1
    for text in texts[::step]:
        letters.update(_letters(folded(text)))
    total = sum(letters.values())
    ranked = sorted(letters.items(), key=lambda each: (-each[1], each[0]))
    return {script: round(count / total, 4) for script, count in ranked if count}


def _letters(text: str) -> Counter[str]:
    """Return the number of letters of each script; marks that are no letters do not count."""
    latin = _LATIN.findall(text)
    found = Counter({_latin_language(latin): sum(map(len, latin))}) if latin else Counter()
    if text.isascii():
        return found
    others = _NO_LETTER.sub("", _LATIN.sub("", text))
    for script, pattern in _patterns().items():
        if count := len(others) - len(others := pattern.sub("", others)):
            found[script] += count
    if found[JAPANESE] > _KANA * (found[JAPANESE] + found[CHINESE]):
        found[JAPANESE] += found.pop(CHINESE, 0)
    found[OTHER] += len(others)
    return found


def _latin_language(words: Sequence[str]) -> str:
    joined = "".join(words)
    if len(_OF_VIETNAMESE.findall(joined)) > _VIETNAMESE_SHARE * len(joined):
        return VIETNAMESE
    if len(_ACCENTED.findall(joined)) <= _ACCENTS * len(joined):
        return ENGLISH
    known = sum(word.lower() in _ENGLISH_WORDS for word in words)
    return ENGLISH if known >= _ENGLISH_SHARE * len(words) else LATIN


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {script: re.compile(f"[{letters}]+") for script, letters in _RANGES.items()}
