"""Who sends a request, and what they may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from ....modules.errors import SettingsError
from ..keys.key import NO_LIMITS, Budget
from ..keys.links import LinkSigner
from .validity import Validity

_SEPARATOR = "/"
_KEY_PREFIX = "key:"
_DOT_SEGMENTS = (".", "..")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The sender of a request: the user of this machine, or the holder of a key."""

    key_id: str = ""
    """Id of the key; ``""`` for the user of this machine, where no key is needed."""
    name: str = "local"
    """Name of the key in logs and metrics."""
    collections: frozenset[str] | None = None
    """Collections that the caller may search and fill; None for all."""
    per_day: Budget = NO_LIMITS
    """What the caller may use on a day."""
    per_question: Budget = NO_LIMITS
    """What one question may use."""
    links: LinkSigner = field(default_factory=LinkSigner, compare=False, repr=False)
    """Signs links to what the caller may see."""
    validity: Validity = field(default_factory=Validity, compare=False, repr=False)
    """Whether the key is still valid while the request is served."""

    @property
    def is_local(self) -> bool:
        """Whether it is the user of this machine, who sees everything."""
        return not self.key_id

    def stored_name(self, name: str) -> str:
        """Return the name under which a conversation of the caller is kept.

        >>> Caller(key_id="k1").stored_name("monday"), Caller().stored_name("monday")
        ('key:k1/monday', 'monday')

        Raises:
            SettingsError: The name is "." or "..", which clients take out of paths even where it is percent-encoded.
        """
        if name in _DOT_SEGMENTS:
            raise SettingsError(f"A conversation cannot be named {name!r}, which clients take out of paths.")
        return f"{self._prefix}{name}"

    def shown_name(self, stored: str) -> str | None:
        """Return the name of a kept conversation as its owner knows it; None for one of another caller.

        >>> Caller(key_id="k1").shown_name("key:k1/monday"), Caller(key_id="k2").shown_name("key:k1/monday")
        ('monday', None)
        """
        return stored.removeprefix(self._prefix) if stored.startswith(self._prefix) else None

    def may_use(self, collection: str) -> bool:
        """Return whether the caller may search and fill a collection."""
        return self.collections is None or collection in self.collections

    @property
    def _prefix(self) -> str:
        return f"{_KEY_PREFIX}{self.key_id}{_SEPARATOR}" if self.key_id else ""


LOCAL = Caller()


def caller_of(request: Request) -> Caller:
    """Return the sender of a request, whom the key check has put into its state."""
    return cast(Caller, getattr(request.state, "caller", LOCAL))


CallerBy = Annotated[Caller, Depends(caller_of)]
