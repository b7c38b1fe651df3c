"""Who sends a request: the address of its connection, or the one that a trusted proxy says it forwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

Address = IPv4Address | IPv6Address

_UNKNOWN = "unknown"
_MOST_HOPS = 32
_WITH_PORT = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<four>[0-9.]+))(?::[0-9]{1,5})?")


def address_in(text: str) -> Address | None:
    """Return the address of a text, without a port; None for any other text.

    >>> str(address_in("[2001:db8::1]:443")), str(address_in("::ffff:192.0.2.7")), address_in("unix:")
    ('2001:db8::1', '192.0.2.7', None)
    """
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address((found["six"] or found["four"]) if found else text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def peer_of(text: str) -> str:
    """Return who counts as one sender: an address, of IPv6 its network, whose addresses are one customer's.

    >>> peer_of("192.0.2.7"), peer_of("2001:db8::1"), peer_of("somebody")
    ('192.0.2.7', '20010db800000000/64', 'unknown')
    """
    address = address_in(text)
    if isinstance(address, IPv6Address):
        return f"{int(address) >> 64:x}/64"
    return _UNKNOWN if address is None else str(address)


def host_of(scope: Scope) -> str:
    """Return the address of a request's sender; ``""`` if it is unknown."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class TrustedProxies:
    """The proxies whose word is taken for whom they forward; the headers of all others are ignored."""

    def __init__(self, named: Sequence[str]) -> None:
        """``named`` are addresses and networks such as ``10.0.0.0/8``."""
        self._networks = [ip_network(each, strict=False) for each in named]

    def trusts(self, text: str) -> bool:
        """Return whether an address is that of a trusted proxy.

        >>> TrustedProxies(["10.0.0.0/8"]).trusts("::ffff:10.1.2.3")
        True
        """
        if not self._networks:
            return False
        address = address_in(text)
        return address is not None and any(address in network for network in self._networks)

    def see_through(self, scope: Scope) -> None:
        """Set ``client`` and ``scheme`` of a request to those that a trusted proxy forwards.

        Of a chain in ``X-Forwarded-For`` the last address counts that is no trusted proxy's: all before it was written
        by the sender. What is no address there leaves the client as it is.
        """
        if not self.trusts(host_of(scope)):
            return
        headers = Headers(scope=scope)
        client = self._client_in(",".join(headers.getlist("x-forwarded-for")))
        if client is not None:
            scope["client"] = (str(client), 0)
        scheme = headers.get("x-forwarded-proto", "").strip().lower()
        if scheme in ("http", "https"):
            scope["scheme"] = scheme

    def _client_in(self, chain: str) -> Address | None:
        address = None
        for text in reversed(chain.rsplit(",", _MOST_HOPS)):
            address = address_in(text.strip())
            if address is None or not self.trusts(str(address)):
                return address
        return address
