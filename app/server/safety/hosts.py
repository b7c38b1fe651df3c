"""Checks under which name the server is called, and from which page: against DNS rebinding and foreign sites."""

from __future__ import annotations

import re
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from ..serving.errors import ApiError
from ..serving.options import LOOPBACK, ServerOptions

_PLACE = r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?"
_HOST = re.compile(_PLACE)
_ORIGIN = re.compile(rf"https?://(?P<place>{_PLACE})")
_ANY_ADDRESS = {"0.0.0.0", "::"}
"""Addresses to listen on, which are nobody's name."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class HostCheck:
    """Refuses requests for names that the server does not have, and changes that a page of another site sends.

    A page whose name is made to point to this machine (DNS rebinding) still sends that name. The address at which a
    request arrived is always allowed, since no name can be hidden behind it.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._own = {_plain(name) for name in options.allowed_hosts}
        self._names = ({_plain(name) for name in (*LOOPBACK, options.host)} | self._own) - _ANY_ADDRESS

    def check(self, scope: Scope) -> None:
        """Check the headers ``Host`` and ``Origin``.

        Raises:
            ApiError: HTTP 400: another host; 403: a change from a page of another site.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if not self._is_own(host, scope):
            raise ApiError(
                400,
                f"This server is not called {host!r:.200}. Call it by an address of its own, or start it with "
                "--allowed-host NAME.",
                code="unknown_host",
            )
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _READING and not self._is_same_site(origin, host):
            raise ApiError(
                403,
                f"Pages of {origin!r:.200} may change nothing here.",
                kind="permission_error",
                code="foreign_origin",
            )

    def _is_own(self, host: str, scope: Scope) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = _plain(found["name"])
        server = scope.get("server")
        return name in self._names or host in self._names or bool(server and _is_address(name) and name == server[0])

    def _is_same_site(self, origin: str, host: str) -> bool:
        """Return whether a page's origin is that of the request, or one behind a proxy that changes the host."""
        found = _ORIGIN.fullmatch(origin.lower())
        if found is None:
            return False
        place = found["place"]
        return place == host or place in self._own or _plain(found["name"]) in self._own


def _plain(name: str) -> str:
    """Return a host's name in lower case, without brackets around an address of IPv6."""
    return name.lower().removeprefix("[").removesuffix("]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
