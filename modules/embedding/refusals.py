"""What embedding endpoints refuse of a request, by their messages, and what was learned of each for later ones."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..background_loop import BackgroundLoop
from ..llm.wire.error_words import is_moderated, without_repeats, words_of
from ..llm.wire.refusals import refused_by

logger = logging.getLogger(__name__)

_STATUSES = frozenset({400, 413, 422})
"""HTTP statuses of a refused request."""
_FAILED = (500, 501)
"""llama.cpp refuses a text so that is too long, and others more than one."""
_TOO_LARGE = 413
_FORMAT = re.compile(r"encoding[_ ]format", re.IGNORECASE)
_TEXT_TOO_LONG = re.compile(
    r"context[_ ]length|context window|physical batch size|sequence length|"
    r"(?:maximum|max|exceeds?|than|limit of|too many|allowed)(?: \S{1,40}){0,4} tokens?\b(?! per request)|"
    r"(?:input|text|string|prompt)(?: \S{1,20}){0,2} too (?:long|large)",
    re.IGNORECASE,
)
_TOO_MANY = re.compile(
    r"batch|per request|request size|(?:payload|request entity|request body|body)(?: \S{1,20}){0,2} too large|"
    r"too many (?:input|text|item|document|element|string)|"
    r"(?:number|count|amount) of (?:input|text|item|document|element|string)|"
    r"(?:array|list)(?: \S{1,20}){0,4} too long|"
    r"(?:at most|maximum of|more than|up to|exceeds?) \d{1,6} (?:input|text|item|document|element|string)|"
    r"max\w*[_ ](?:client[_ ])?(?:batch|input|item)",
    re.IGNORECASE,
)
_ONE = re.compile(
    r"\b(?:only|just|exactly|single|multiple|more than)\b.{0,24}?\b(?:one|a single|single|1|multiple) "
    r"(?:input|text|item|document|element|string|sentence)"
    r"|\b(?:multiple|several) (?:input|text|item|document|element|string)s?\b.{0,24}?\b(?:not|n['’]t|un)",
    re.IGNORECASE,
)
"""Words against more than one text in a request."""
_NUMBER = re.compile(r"(?<![\d.])\d{1,5}(?![\d.]*\d)")


@dataclass(kw_only=True)
class LearnedWays:
    """How one model of an endpoint is asked, after what it has refused in this process."""

    model: str
    """Its name in the log."""
    texts_a_call: int
    """Most texts in one request; 0 until the first endpoint object says how many."""
    names_format: bool = True
    """Whether requests name ``encoding_format``."""

    def take_fewer(self, most: int) -> None:
        """Send at most ``most`` texts in a request from now on."""
        if most < self.texts_a_call:
            self.texts_a_call = most
            logger.warning("%s refuses more texts in one request; it gets at most %d from now on", self.model, most)

    def leave_out_format(self) -> None:
        """Name no ``encoding_format`` from now on."""
        if self.names_format:
            self.names_format = False
            logger.warning("%s refuses encoding_format; it is left out from now on", self.model)


@functools.cache
def ways_at(loop: BackgroundLoop, base_url: str | None, model: str, name: str, texts_a_call: int) -> LearnedWays:
    """Return what all embedders of the process have learned of an endpoint and model."""
    return LearnedWays(model=f"The embedding model {name}", texts_a_call=texts_a_call)


def refuses_format(error: Exception, texts: Sequence[str] = ()) -> bool:
    """Return whether an endpoint refuses the parameter ``encoding_format`` of a request for ``texts`` by its name."""
    if "encoding_format" in refused_by(error):
        return True
    said = _message(error, texts)
    return _status(error) in _STATUSES and bool(_FORMAT.search(said)) and not is_moderated(said)


def is_text_too_long(error: Exception, texts: Sequence[str] = ()) -> bool:
    """Return whether an endpoint refuses a request since one of its ``texts`` has more tokens than the model takes."""
    return _status(error) in (*_STATUSES, *_FAILED) and bool(_TEXT_TOO_LONG.search(_message(error, texts)))


def fewer_texts(error: Exception, texts: Sequence[str]) -> int:
    """Return how many texts a request may have that was refused for the number of its ``texts``; 0 for another cause.

    The number that the endpoint names is taken if it is smaller, else half.
    """
    count, status, message = len(texts), _status(error), _message(error, texts)
    if count <= 1 or is_moderated(message):
        return 0
    if status in (*_STATUSES, *_FAILED) and _ONE.search(message):
        return 1
    is_large = status == _TOO_LARGE or (status in _STATUSES and bool(_TOO_MANY.search(message)))
    if not is_large:
        return 0
    named = [number for each in _NUMBER.findall(message) if 1 < (number := int(each)) < count]
    return max(named, default=count // 2)


def described(text: str, place: int, of: int) -> str:
    """Return which text is too long, for messages; ``place`` counts from 0.

    >>> described("six by nine", 4, 40)
    "text 5 of 40 ('six by nine', 11 characters)"
    """
    beginning = " ".join(text[:200].split())[:60]
    which = f"text {place + 1:,} of {of:,}" if of > 1 else "the text"
    return f"{which} ({beginning!r}, {len(text):,} characters)"


def pieces_of(start: int, texts: Sequence[str], size: int) -> list[tuple[int, Sequence[str]]]:
    """Return a batch in pieces of at most ``size`` texts, each with the position of its first."""
    return [(start + at, texts[at : at + size]) for at in range(0, len(texts), size)]


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _message(error: Exception, texts: Sequence[str] = ()) -> str:
    return without_repeats(words_of(error), {"input": list(texts), "encoding_format": "float"})
