"""Links that show one thing of a key's holder without the key, for some time: to sources, which chat clients open."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from .key import StoredKey

LINK_SECONDS = 86_400
"""Seconds for which a link is valid: a day, in which a chat is read."""
_NAMES = ("key", "until", "signature")


@dataclass(frozen=True)
class LinkSigner:
    """Signs links of a key; without a key they need no signature."""

    key_id: str = ""
    _secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, key: StoredKey) -> LinkSigner:
        """Return the signer of a key.

        Its secret is what is kept of the key: all workers have it, it ends with the key, and it lies where the
        holder's search trees do.
        """
        return cls(key.id, key.digest)

    def query(self, path: str) -> str:
        """Return the query of an address that shows what is at a path (not encoded) for ``LINK_SECONDS``."""
        if not self.key_id:
            return ""
        until = str(int(time.time()) + LINK_SECONDS)
        return "?" + urlencode(dict(zip(_NAMES, (self.key_id, until, self._signature(path, until)), strict=True)))

    def has_signed(self, path: str, link: SignedLink) -> bool:
        """Return whether the link is this key's, to this path, and still valid."""
        is_own = hmac.compare_digest(link.signature, self._signature(path, link.until))
        return is_own and int(link.until) >= time.time()

    def _signature(self, path: str, until: str) -> str:
        return hmac.new(bytes.fromhex(self._secret), f"link\n{until}\n{path}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SignedLink:
    """What the query of a signed address says."""

    key_id: str
    until: str
    signature: str

    @classmethod
    def in_query(cls, query: str) -> SignedLink | None:
        """Return the signature in a query; None without one.

        >>> SignedLink.in_query("format=json&key=a&until=1&signature=beef").until
        '1'
        >>> SignedLink.in_query("format=json&key=a") is None
        True
        """
        try:
            given = parse_qs(query, max_num_fields=20)
        except ValueError:
            return None
        key_id, until, signature = (given.get(name, [""])[0] for name in _NAMES)
        if not (key_id and until.isdecimal() and until.isascii() and len(until) < 20 and signature.isascii()):
            return None
        return cls(key_id=key_id, until=until, signature=signature)
