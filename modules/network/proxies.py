"""The proxies of the environment: which one a connection goes through, and what is wrong where one fails.

``HTTP_PROXY``, ``HTTPS_PROXY`` and ``ALL_PROXY`` name proxies by the scheme of an address, and ``NO_PROXY`` what they
are not for, in small letters too, which win. HTTP libraries read them each in its own way; here they are read once, so
that all doors take the same way, and this machine's own servers are asked through a proxy only where
``JUDGETREE_PROXY_LOOPBACK`` says so.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from ..addresses import Address
from ..errors import ProxyFault
from ..redaction import starred
from ..settings import load_settings

SCHEMES = ("http", "https")
"""Schemes that the address of a proxy may have."""
_LOCAL_NETWORKS = tuple(
    map(ipaddress.ip_network, ("127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10", "0.0.0.0/32", "::/128"))
)
_STATUS = re.compile(r"(?:Tunnel connection failed: )?([45]\d\d)\b")
_SHORT_IP = re.compile(r"[0-9a-fx.]{1,40}")
_BAD = re.compile(r"[\s\x00-\x1f\x7f]")
_PORTS = {"http": 80, "https": 443}
_REDO = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses of a proxy after which it may let the same request through."""


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A proxy that the environment names."""

    address: Address
    variable: str
    """Where it is named, such as ``HTTPS_PROXY``."""

    def __str__(self) -> str:
        return f"the proxy {self.address} ({self.variable})"

    @property
    def url(self) -> str:
        """The address with its user and password, for HTTP clients."""
        return self.address.revealed()

    def headers(self) -> dict[str, str]:
        """Return the HTTP header of its user and password; empty without them."""
        return {f"Proxy-{name}": value for name, value in self.address.headers().items()}


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for an ``http`` or ``https`` address; None where it is asked directly.

    Raises:
        ProxyFault: The proxy's address is malformed, or of a scheme that is not in ``SCHEMES``.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return None
    named = _named(f"{parts.scheme}_proxy") or _named("all_proxy")
    if named is None or is_direct(parts.hostname, parts.port or _PORTS[parts.scheme]):
        return None
    variable, text = named
    return Proxy(address=_checked(variable, text, parts.hostname), variable=variable)


def is_direct(host: str, port: int) -> bool:
    """Return whether a host is asked without a proxy: by ``NO_PROXY``, or since it is this machine.

    ``NO_PROXY`` has entries between commas or spaces: ``*``, ``example.org`` and ``.example.org`` (with all below),
    ``10.0.0.0/8``, ``fd00::/8``, an address, each with ``:port`` at its end or not.
    """
    host = host.rstrip(".").lower()
    if is_this_machine(host) and not load_settings().proxy_loopback:
        return True
    entries = (_named("no_proxy") or ("", ""))[1]
    return any(_covers(entry, host, port) for entry in re.split(r"[\s,]+", entries) if entry)


def is_this_machine(host: str) -> bool:
    """Return whether a host is of this machine or its link: ``localhost``, loopback and link-local addresses."""
    host = host.rstrip(".").lower()
    address = _ip(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return any(address in network for network in _LOCAL_NETWORKS)


def named_proxies() -> dict[str, str]:
    """Return the variables that are set, as ``{"HTTPS_PROXY": "http://proxy:3128"}``, without secrets."""
    found = [_named(f"{name}_proxy") for name in ("http", "https", "all", "no")]
    return {name: _shown(text) for name, text in filter(None, found)}


@contextmanager
def naming_proxy(url: str) -> Iterator[Proxy | None]:
    """Give the proxy for an address, and name it in what fails inside the block, whatever HTTP library raises it.

    Raises:
        ProxyFault: The proxy cannot be used, refuses, or stands before a TLS certificate that is not accepted.
    """
    proxy = proxy_for(url)
    try:
        yield proxy
    except ProxyFault:
        raise
    except Exception as error:
        if proxy is not None and (fault := fault_of(proxy, url, error)) is not None:
            raise fault from error
        raise


def check_no_proxy_reply(proxy: Proxy | None, url: str, status: int) -> None:
    """Check the status of a reply that came through a proxy.

    Raises:
        ProxyFault: It is 407, which no endpoint sends: the proxy demands a user and a password.
    """
    if proxy is not None and status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        raise _refused(proxy, url, status)


def through(proxy: Proxy | None) -> str:
    """Return the words about a reply that may be the proxy's own; ``""`` without one."""
    return f" The reply came through {proxy}, which may have answered itself." if proxy is not None else ""


def fault_of(proxy: Proxy, url: str, error: BaseException) -> ProxyFault | None:
    """Return what an exception of an HTTP client says of the proxy; None where it is of the endpoint alone."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        why = next(filter(None, (getattr(cause, "verify_message", "") for cause in causes)), "it proves nothing")
        return ProxyFault(
            f"a TLS certificate is not accepted ({why}) behind {proxy}, which may put its own in "
            f"place of that of {_place(url)}",
            "name a file with the certificate of the proxy's authority in SSL_CERT_FILE",
            is_final=True,
        )
    by_status = next((status for cause in causes if (status := _status_of(cause))), 0)
    if by_status:
        return _refused(proxy, url, by_status)
    if not any(map(_is_of_a_proxy, causes)) or any(isinstance(cause, ssl.SSLError) for cause in causes):
        return None
    said = next((str(cause.strerror) for cause in causes if isinstance(cause, OSError) and cause.strerror), "")
    said = said or starred(" ".join(str(error).split())[:200], proxy.address.secrets()) or type(error).__name__
    return ProxyFault(f"{proxy} cannot be reached: {said}", f"start it, {_remedy(proxy, url)}")


def _refused(proxy: Proxy, url: str, status: int) -> ProxyFault:
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        has = "other ones" if proxy.address.credentials() else "them"
        return ProxyFault(
            f"{proxy} demands a user and a password (HTTP {status})",
            f"write {has} into {proxy.variable}, as in http://USER:PASSWORD@HOST:PORT, or {_remedy(proxy, url)}",
            is_final=True,
        )
    phrase = next((each.phrase for each in HTTPStatus if each == status), "")
    return ProxyFault(
        f"{proxy} answered HTTP {status} {phrase}".rstrip() + f" in place of {_place(url)}",
        f"look into the proxy's log, {_remedy(proxy, url)}",
        is_final=status not in _REDO,
        status=status,
    )


def _remedy(proxy: Proxy, url: str) -> str:
    parts = _split(url)
    host = parts.hostname if parts is not None else None
    return f"correct {proxy.variable}, or add {host or 'the host'} to NO_PROXY to ask it directly"


def _place(url: str) -> str:
    parts = _split(url)
    return parts.hostname if parts is not None and parts.hostname else "the endpoint"


def _status_of(error: BaseException) -> int:
    """Return the HTTP status with which a proxy refused a tunnel; 0 if the exception tells none."""
    if not _is_of_a_proxy(error) and "tunnel connection failed" not in str(error).lower():
        return 0
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return status
    found = _STATUS.match(str(error))
    return int(found[1]) if found else 0


def _is_of_a_proxy(error: BaseException) -> bool:
    """Return whether an exception is of a proxy: by its name, or of a connection, which leads to the proxy."""
    return any(name in type(error).__name__ for name in ("Proxy", "ConnectError", "ConnectTimeout"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all below it, those that a library keeps as an argument or as its reason too."""
    waiting, seen = [error], set()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        below = (cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args)
        waiting += [each for each in below if isinstance(each, BaseException)]


def _named(name: str) -> tuple[str, str] | None:
    """Return the name and value of a variable, small letters first; an empty one hides the other."""
    for variable in (name, name.upper()):
        text = os.environ.get(variable)
        if text is None or (variable == "HTTP_PROXY" and "REQUEST_METHOD" in os.environ):  # a header under CGI
            continue
        return (variable, text.strip()) if text.strip() else None
    if sys.platform in ("darwin", "win32") and name.partition("_")[0] in (found := urllib.request.getproxies()):
        return "the settings of the system", found[name.partition("_")[0]]
    return None


def _checked(variable: str, text: str, host: str) -> Address:
    """Return the address of a proxy, whose scheme may be left out."""
    address = Address(text if "://" in text else f"http://{text}")
    parts = _split(address)
    scheme = address.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise ProxyFault(
            f"{variable}={_shown(text)} has the scheme {scheme!r}, which judgetree does not speak",
            f"name one by http:// or https:// (most SOCKS proxies have an HTTP port too), or add {host} to NO_PROXY",
            is_final=True,
        )
    if parts is None or not parts.hostname or _BAD.search(text):
        raise ProxyFault(
            f"{variable}={_shown(text)!r} is no address of a proxy",
            f"write it as http://HOST:PORT, or unset {variable}",
            is_final=True,
        )
    return address


def _shown(text: str) -> str:
    return Address(text if "://" in text or "@" not in text else f"http://{text}")[:200]


def _covers(entry: str, host: str, port: int) -> bool:
    entry = entry.lower()
    if entry == "*":
        return True
    if "://" in entry:
        entry = entry.partition("://")[2]
    name, entry_port = _host_and_port(entry)
    if entry_port and entry_port != str(port):
        return False
    address = _ip(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _host_and_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name + (rest if rest.startswith("/") else ""), rest.removeprefix(":") if rest.startswith(":") else ""
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _short_ip(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _short_ip(host: str) -> ipaddress.IPv4Address | None:
    """Return the address that the system reads in a short form such as ``127.1``; None where it is a name."""
    if not _SHORT_IP.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return None
    return parts
