"""The language of texts, as far as analyzers and embedders depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

CJK_THRESHOLD = 0.05
Language = Literal["cjk", "other"]

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
"""Chinese, Japanese and Korean letters, for a character class of a regular expression."""

_CJK = re.compile(f"[{CJK}]")
_NO_LETTER = re.compile(r"[\W\d_]+")


def cjk_share(texts: str | Iterable[str]) -> float:
    """Return the share of Chinese, Japanese and Korean letters among all, in [0, 1]; 0 without letters."""
    cjk = letters = 0
    for text in [texts] if isinstance(texts, str) else texts:
        only_letters = _NO_LETTER.sub("", text)
        letters += len(only_letters)
        cjk += len(_CJK.findall(only_letters))
    return cjk / letters if letters else 0.0


def language_of(share: float) -> Language:
    """Return ``"cjk"`` for a share over 5 %, else ``"other"``; it decides analyzer and embedder."""
    return "cjk" if share > CJK_THRESHOLD else "other"


def is_cjk(letter: str) -> bool:
    """Whether a text begins with a Chinese, Japanese or Korean letter."""
    return _CJK.match(letter) is not None
