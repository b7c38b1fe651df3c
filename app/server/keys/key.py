"""A key: its text, which is shown once, and its kept digest, grants and budgets."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TypeVar

from ....modules.digests import text_digest

Number = TypeVar("Number", int, float)

_PREFIX = "sk-jt-"
"""Texts that begin with ``sk-`` are starred out of messages."""
_FORM = re.compile(rf"{_PREFIX}([0-9a-f]{{12}})-([\w-]{{43}})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the holder of a key may use; None is no limit."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    """Run time of questions."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return (self.usd, self.tokens, self.seconds) == (None, None, None)

    def within(self, other: Budget) -> Budget:
        """Return the tighter of both limits of each resource.

        >>> Budget(tokens=5).within(Budget(tokens=3, usd=1.0))
        Budget(usd=1.0, tokens=3, seconds=None)
        """
        return Budget(
            usd=_tighter(self.usd, other.usd),
            tokens=_tighter(self.tokens, other.tokens),
            seconds=_tighter(self.seconds, other.seconds),
        )


def _tighter(one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


NO_LIMITS = Budget()


@dataclass(frozen=True, kw_only=True)
class StoredKey:
    """A key as it is kept, without its text."""

    id: str
    name: str
    digest: str = field(repr=False)
    """SHA-256 of the text, in hexadecimal digits."""
    created_at: str
    """ISO 8601, UTC, as are the other times."""
    last_used_at: str = ""
    """``""`` if it was never used; up to ten minutes older than the last use."""
    revoked_at: str = ""
    """``""`` while it is valid."""
    collections: frozenset[str] | None = frozenset()
    """Collections that its holder may search and fill; None for all."""
    per_day: Budget = NO_LIMITS
    """What its holder may use on a day of UTC."""
    per_question: Budget = NO_LIMITS
    """What one question may use."""

    def fits(self, text: str) -> bool:
        """Return whether this is the key of a text; takes as long for a wrong one as for the right one."""
        return hmac.compare_digest(self.digest, digest_of(text))


def new_key_text() -> tuple[str, str]:
    """Return a new key's id, which is no secret, and its text, with 256 random bits.

    >>> key_id, text = new_key_text()
    >>> id_in(text) == key_id
    True
    """
    key_id = secrets.token_hex(6)
    return key_id, f"{_PREFIX}{key_id}-{secrets.token_urlsafe(32)}"


def id_in(text: str) -> str | None:
    """Return the id in the text of a key; None for a text that is no key.

    >>> id_in("sk-proj-something") is None
    True
    """
    found = _FORM.fullmatch(text)
    return found[1] if found else None


def digest_of(text: str) -> str:
    """Return what is kept of a key's text: its SHA-256.

    A slow hash with a salt, as for passwords, would add nothing: it makes guessing dear, and 256 random bits cannot be
    guessed at any speed.
    """
    return text_digest(text).hex()
