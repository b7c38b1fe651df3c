"""The rule for prompts that a server cut silently, read from the prompt tokens that it reports.

A count far below the prompt's length proves no cut: some servers leave out the tokens of a cached prefix. What tells a
cut is a bound. ``docs/explanation/endpoints.md`` has the rule with its servers, ``docs/measured/from-decisions.md``
the figures, and ``docs/decisions/0009-endpoints-and-replies.md`` what was rejected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..digests import text_digest

LEAST_TOKENS_A_WORD = 0.75
"""Tokenizers have a token or more for each word between blanks; those that join words save a third of all tokens."""
LEAST_TOKENS_A_HAN_CHARACTER = 0.4
"""The best tokenizers of 2026 take 0.5 to 0.7."""
_MOST_A_CHARACTER = 40
"""Times that each character counts: a phrase that is repeated for ever may be one token, real texts vary."""
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_LEAST_CONTEXT = 512
"""Tokens of the shortest context that servers are run with."""
_KEPT = 2
"""A server that keeps the first four tokens and half of the rest of its context reads half of it and two tokens."""
_REPEATED = 3
"""Different prompts with the same count that prove a bound of any size."""
_MOST_ODD = 8
"""Unexplained counts that are remembered; more make no difference."""


def least_tokens(texts: Sequence[str]) -> int:
    """Return a number of tokens that no tokenizer falls below for real texts of any language; 0 for none.

    It is far lower for texts without blanks, and takes a millisecond for 100 kB.

    >>> least_tokens(["Which oil does the compressor need?"]), least_tokens(["压力保持三十五分钟。"])
    (4, 4)
    """
    return int(sum(map(_least, texts)))


def _least(text: str) -> float:
    words = LEAST_TOKENS_A_WORD * len(text.split())
    if text.isascii():
        return words
    han = _HAN.findall(text)
    return words + LEAST_TOKENS_A_HAN_CHARACTER * min(len(han), _MOST_A_CHARACTER * len(set(han)))


def context_of_cut(count: int) -> int:
    """Return the context size, in tokens, of a server known to cut prompts to this count; 0 if none is known.

    Servers cut to their context, a power of two from 512 on, or to half of it and two tokens.

    >>> [(count, context_of_cut(count)) for count in range(1000, 4200) if context_of_cut(count)]
    [(1024, 1024), (1026, 2048), (2048, 2048), (2050, 4096), (4096, 4096), (4098, 8192)]
    """
    if _is_size(count):
        return count
    return _halved(count) if _is_size(count - _KEPT) else 0


def _is_size(count: int) -> bool:
    return count >= _LEAST_CONTEXT and count & (count - 1) == 0


def _halved(count: int) -> int:
    return 2 * (count - _KEPT)


@dataclass
class PromptBounds:
    """What the counts of one model at one endpoint tell of the longest prompt that it reads; safe between threads.

    A count below ``least_tokens`` shows a cut where it stands for a context (``context_of_cut``), or where two
    different prompts had it before, and no call had more than that context holds. Two other counts that are too low
    show that the server leaves out cached tokens: then nothing is a cut. Once a context is known, a prompt that cannot
    fit into it is cut too, until a call has more.
    """

    cut_to: int = 0
    """Tokens to which the server cuts a prompt; 0 while unknown."""
    context: int = 0
    """Tokens of its context; 0 while unknown."""
    _most: int = 0
    _odd: dict[int, set[bytes]] = field(default_factory=dict)
    """Digests of the prompts by their counts, of counts that are too low."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_cut(self, count: int, texts: Sequence[str], *, cached: int = 0) -> bool:
        """Take the prompt tokens that a call reports, and return whether its prompt was cut; False for 0.

        ``cached`` are those that the endpoint says it read from its cache, which ``count`` may leave out.
        """
        if count <= 0:
            return False
        least = least_tokens(texts)
        with self._lock:
            self._most = max(count, self._most)
            if self._most > self.context:
                self.cut_to = self.context = 0
            if count + cached >= least:
                return False
            if not self.context and self._shows_a_cut(count, texts):
                self.cut_to, self.context = count, context_of_cut(count) or _halved(count)
            return count == self.cut_to or 0 < self.context < least

    def _shows_a_cut(self, count: int, texts: Sequence[str]) -> bool:
        if len(self._odd) < _MOST_ODD or count in self._odd:
            prompts = self._odd.setdefault(count, set())
            if len(prompts) < _REPEATED:
                prompts.add(text_digest(*texts))
        if len(self._odd.keys() - {count}) > 1 or self._most > (context_of_cut(count) or _halved(count)):
            return False
        is_repeated = count >= _LEAST_CONTEXT and len(self._odd.get(count, ())) >= _REPEATED
        return is_repeated or context_of_cut(count) > 0
