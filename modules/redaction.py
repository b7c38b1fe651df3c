"""Removal of secrets from foreign texts: error bodies of servers, messages of libraries."""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, quote_plus

STARS = "***"
_SHORTEST_ANYWHERE = 4
"""Least length of a secret that is starred inside words too; a shorter one is starred as a whole word."""
_URL_ALPHABET = str.maketrans("-_", "+/")


def starred(text: str, secrets: Iterable[str]) -> str:
    """Replace each secret in a text by ``***``: plain, escaped for URLs, JSON or HTML, or in base64.

    >>> starred("Bearer hunter2 (aHVudGVyMg==)", ["hunter2"])
    'Bearer *** (***)'
    """
    known = tuple(sorted({secret for secret in secrets if secret}))
    if not known:
        return text
    encoded = [secret.encode("utf-8", "surrogatepass") for secret in known]
    text = _base64_runs(min(map(len, encoded))).sub(lambda run: STARS if _hides(run[0], encoded) else run[0], text)
    return _pattern(known).sub(STARS, text)


@functools.cache
def _base64_runs(least_bytes: int) -> re.Pattern[str]:
    """Return the pattern of runs that are long enough to hold so many bytes; most words of a text are not."""
    return re.compile(rf"[\w+/-]{{{max(2, -(-4 * least_bytes // 3))},}}={{0,2}}", re.ASCII)


@functools.lru_cache(maxsize=64)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    return re.compile(
        "|".join(
            re.escape(form) if len(form) >= _SHORTEST_ANYWHERE else rf"(?<!\w){re.escape(form)}(?!\w)" for form in forms
        )
    )


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    yield html.escape(secret)
    as_bytes = secret.encode("utf-8", "surrogatepass")
    yield from (quote(as_bytes), quote(as_bytes, safe=""), quote_plus(as_bytes))


def _hides(run: str, secrets: Sequence[bytes]) -> bool:
    """Return whether base64 characters hold a secret, read from any of their first four places."""
    run = run.rstrip("=").translate(_URL_ALPHABET)
    for start in range(4):
        piece = run[start:]
        piece = piece[: len(piece) - (len(piece) % 4 == 1)]
        decoded = base64.b64decode(piece + "=" * (-len(piece) % 4))
        for secret in secrets:
            if secret in decoded and (len(secret) >= _SHORTEST_ANYWHERE or re.split(b"[ :]", decoded)[-1] == secret):
                return True
    return False
