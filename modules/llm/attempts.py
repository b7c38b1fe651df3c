"""Failures of calls to model endpoints: their causes, and the waits between further attempts."""

from __future__ import annotations

import errno
import random
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx
import httpx2

from ..calls.reported_usage import attached_usage
from ..caveats.endings import Withheld
from ..errors import ModelCallError, ModelRequestError, ModelSetupError, ProxyFault, error_class_of
from ..redaction import starred
from ..settings import without_secrets
from .wire.error_words import code_of, is_about_one_prompt, is_reported, setup_status, status_of, without_tags

_REMEDIES = {
    401: "check the API key",
    402: "check the account's balance",
    403: "check what the key may use",
    404: "check the model's name and the address",
    429: "check the account's quota and balance",
}
_MOST_SHOWN = 200
_OF_A_PROMPT = (400, 403, 422, 451)
"""HTTP statuses with which endpoints refuse what a prompt says."""
_OF_SETUP_TOO = (400, 422, 429)
"""HTTP statuses with which many hosts refuse a key, an account or a model, rather than with its own."""
_PERMANENT = (301, 308)
_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH)
_TIMEOUTS = (TimeoutError, httpx.TimeoutException, httpx2.TimeoutException)
_BROKEN = frozenset(
    {"ServerDisconnectedError", "ClientOSError", "ClientConnectionResetError", "ClientConnectionError"}  # aiohttp
    | {"ServerConnectionError", "RemoteProtocolError", "RemoteDisconnected", "IncompleteReadError"}
)
"""Names of exceptions of a connection that was closed; the transport of aiohttp calls them time-outs."""
_NO_CONNECTION_IN_TIME = (httpx.ConnectTimeout, httpx2.ConnectTimeout)
_NOT_CONNECTED = (*_NO_CONNECTION_IN_TIME, httpx.PoolTimeout, httpx2.PoolTimeout)
MALFORMED_REPLY = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""Errors on a reply that is not a chat completion, or cannot be used."""


class PageReply(Exception):
    """An endpoint answered with a page, for a browser; ``content_type`` is what it calls that."""

    def __init__(self, content_type: str, *, no: str) -> None:
        kind = content_type.partition(";")[0].strip()[:_MOST_SHOWN] or "of no named type"
        super().__init__(f"it is no {no} ({kind}): check the address, which usually ends in /v1")


def check_no_page(response: httpx2.Response, body: bytes, *, no: str) -> None:
    """Refuse the whole ``body`` of a response that is HTML or XML, in place of what ``no`` names.

    Raises:
        PageReply: It is.
    """
    if body[:1_000].lstrip()[:1] == b"<":
        raise PageReply(response.headers.get("content-type", ""), no=no)


class RedirectedError(Exception):
    """An endpoint answered with another address; ``location`` is that, without user, password and query string."""

    def __init__(self, location: str, *, is_permanent: bool) -> None:
        super().__init__(f"redirected to {location}")
        self.location = location
        self.is_permanent = is_permanent
        """Whether the same request would be redirected again, by its status 301 or 308."""


async def check_no_redirect(response: httpx2.Response) -> None:
    """Refuse an answer that names another address: the texts of a call would go to a host that no setting names.

    A response hook of the HTTP client.

    Raises:
        RedirectedError: It does.
    """
    if response.has_redirect_location:
        raise redirected(str(response.request.url), response.headers["location"], response.status_code)


def redirected(url: str, location: str, status: int) -> RedirectedError:
    """Return the error for the answer of ``url`` that names another address, which may be relative."""
    try:
        found = httpx2.URL(url).join(location).copy_with(userinfo=b"", query=None, fragment=None)
        shown = str(found)[:_MOST_SHOWN]
    except (httpx2.InvalidURL, ValueError):
        shown = "another address"
    return RedirectedError(shown, is_permanent=status in _PERMANENT)


@dataclass(frozen=True, kw_only=True)
class EndpointFailure:
    """The cause of a failed call, read from the exception of an HTTP client."""

    error_class: type[ModelCallError]
    is_final: bool
    """True where the same request would fail again."""
    what: str
    """The cause in one line; ``""`` where the exception's own text has to do."""
    is_reached: bool = True
    """False where no connection to the endpoint could be made."""
    remedy: str
    """What to do, as a clause; ``""`` if only waiting helps."""
    status: int | None = None
    """HTTP status of the reply; None without a reply."""
    is_adapted: bool = False
    """Whether the request is repeated without what the endpoint refused by name."""
    is_filtered: bool = False
    """Whether a content filter ended a reply, or stands in its place."""
    through: str = ""
    """A sentence about the proxy that the reply came through, behind a space; ``""`` without one."""

    def in_status(self, said: str) -> str:
        """Return the HTTP status in brackets, behind a blank; ``""`` without one, or where ``said`` has it."""
        return "" if self.status is None or str(self.status) in said else f" (HTTP {self.status})"

    @property
    def to_do(self) -> str:
        """The remedy and the proxy as the end of a message; ``""`` without them."""
        remedy = f". To do: {self.remedy}." if self.remedy else ""
        return f"{remedy or '.'}{self.through}" if self.through else remedy


def endpoint_failure(error: BaseException) -> EndpointFailure:
    """Classify an exception of the OpenAI client, httpx or aiohttp, by the socket error underneath if there is one.

    A refused connection or an unknown host is a setup error that further attempts may cure: servers restart.
    """
    if (connection := _connection_failure(error)) is not None:
        return connection
    within = is_reported(error)
    status = status_of(error) if within else getattr(error, "status_code", None)
    is_vague = status in _OF_SETUP_TOO or (within and status is None)
    meant = (setup_status(error) if is_vague else None) or status
    error_class = error_class_of(meant, code_of(error))
    remedy = _REMEDIES.get(meant or 0, "check the request and the model's limits")
    is_of_a_prompt = (meant in _OF_A_PROMPT or (within and meant is None)) and is_about_one_prompt(error)
    if is_of_a_prompt:
        error_class, remedy = ModelRequestError, "ask in other words, or take a model that is not so moderated"
    is_final = error_class is not ModelCallError
    return EndpointFailure(
        error_class=error_class,
        is_final=is_final,
        what="",
        remedy=remedy if is_final else "",
        status=None if within else status,
        is_filtered=isinstance(error, Withheld) or (within and is_of_a_prompt),
        through=str(getattr(getattr(error, "response", None), "extensions", {}).get("proxy", "")),
    )


def is_congestion(error: BaseException) -> bool:
    """Return whether an endpoint was asked too much: HTTP 429, but for an empty account, or no reply in time.

    It is looked for among the causes too: clients raise time-outs of their own from those of httpx or asyncio. The
    transport of aiohttp raises one where no connection can be made as well, which says nothing of the number of calls.
    """
    causes = list(_causes(error))
    if any(_is_of_the_socket(cause) or _is_broken(cause) for cause in causes):
        return False
    return any(isinstance(cause, _TIMEOUTS) or _was_refused(cause) for cause in causes)


def may_be_billed(error: BaseException) -> bool:
    """Return whether an endpoint may bill an attempt that failed: a reply came, or began, or did not come in time.

    A refusal (an HTTP status from 300), a connection that could not be made, one that broke before the reply began, and
    a request that could not be written are not billed.
    """
    if isinstance(error, Exception) and attached_usage(error) is not None:
        return True
    if isinstance(error, UnicodeEncodeError):
        return False
    if (getattr(error, "status_code", None) or 200) >= 300 or _connection_failure(error) is not None:
        return False
    causes = list(_causes(error))
    if any(isinstance(cause, _NOT_CONNECTED) for cause in causes):
        return False
    return isinstance(error, MALFORMED_REPLY) or any(isinstance(cause, _TIMEOUTS) for cause in causes)


def _is_of_the_socket(error: BaseException) -> bool:
    """Return whether the system refused a connection, for another reason than time."""
    return isinstance(error, OSError) and error.errno not in (None, errno.ETIMEDOUT)


def _is_broken(error: BaseException) -> bool:
    """Return whether a connection was closed by the other side, or broke."""
    return type(error).__name__ in _BROKEN or isinstance(error, ConnectionResetError | BrokenPipeError)


def _was_refused(error: BaseException) -> bool:
    # The status first: aiohttp warns when the code of one of its errors is read.
    return getattr(error, "status_code", None) == 429 and _is_rate_limit(endpoint_failure(error))


def _is_rate_limit(failure: EndpointFailure) -> bool:
    return failure.status == 429 and not failure.is_final


def redacted_line(error: BaseException, secrets: Iterable[str]) -> str:
    """Return an error's text without secrets or tags on one line of at most 300 characters; its class name if empty."""
    said = without_tags(without_secrets(starred(str(error), secrets)))
    return " ".join(said.split())[:300] or type(error).__name__


def _connection_failure(error: BaseException) -> EndpointFailure | None:
    causes = list(_causes(error))
    if (fault := next((each for each in causes if isinstance(each, ProxyFault)), None)) is not None:
        return _unreachable(fault.what, fault.remedy, is_final=fault.is_final)
    if isinstance(error, PageReply):
        # A gateway shows one for a moment, as it answers 502; a wrong address always does.
        return EndpointFailure(error_class=ModelSetupError, is_final=False, what=str(error), remedy="")
    # The socket's own error says most.
    if (failure := next(filter(None, map(_connection_failure_of, reversed(causes))), None)) is not None:
        return failure
    has_begun = any(type(cause).__name__ == "ClientPayloadError" for cause in causes) or (
        isinstance(error, Exception) and attached_usage(error) is not None
    )
    if any(map(_is_broken, causes)) and not has_begun:
        what = "the server closed the connection before its reply"
    elif any(isinstance(cause, _NO_CONNECTION_IN_TIME) for cause in causes):
        what = "no connection could be made in time"
    else:
        return None
    return EndpointFailure(error_class=ModelCallError, is_final=False, what=what, remedy="")


def _connection_failure_of(cause: BaseException) -> EndpointFailure | None:
    if isinstance(cause, RedirectedError):
        what = f"it redirects to {cause.location}, where nothing is sent"
        remedy = "put that address into the settings if it is the right one"
        return _unreachable(what, remedy, is_final=cause.is_permanent)
    if isinstance(cause, ConnectionRefusedError):
        what, remedy = "the connection was refused", "start the server, or correct the address in the settings"
        return _unreachable(what, remedy)
    if isinstance(cause, socket.gaierror) or (isinstance(cause, OSError) and cause.errno in _NO_WAY):
        is_unknown = isinstance(cause, socket.gaierror)
        what = "its host name is unknown" if is_unknown else "no network leads to it"
        return _unreachable(what, "correct the address in the settings, or check the network")
    if isinstance(cause, ssl.SSLCertVerificationError):
        what = f"its TLS certificate is not accepted ({cause.verify_message})"
        return _unreachable(what, "replace the certificate, or name its authority in SSL_CERT_FILE", is_final=True)
    if isinstance(cause, ssl.SSLError):
        what = f"no TLS connection can be made ({cause.reason or cause})"
        return _unreachable(what, "check whether the address begins with https:// or http://", is_final=True)
    return None


def _unreachable(what: str, remedy: str, *, is_final: bool = False) -> EndpointFailure:
    return EndpointFailure(error_class=ModelSetupError, is_final=is_final, what=what, is_reached=False, remedy=remedy)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those below it; what was merely handled when it was raised may be of another endpoint."""
    cause: BaseException | None = error
    seen: set[int] = set()  # an error may be made its own cause
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or _reworded(cause)


def _reworded(error: BaseException) -> BaseException | None:
    """Return the handled error that this one stands for: ``from None`` of httpcore, or made from it, by requests."""
    handled = error.__context__
    is_same = error.__suppress_context__ or any(argument is handled for argument in error.args)
    return handled if is_same else None


LONGEST_WAIT_S = 600.0
"""Most seconds that a call waits in all for an endpoint's rate limit (HTTP 429)."""
_LONGEST_REST_S = 60.0
"""Most seconds between two attempts."""
_SHORTEST_ASKED_S = 1.0
"""Seconds below which a wait that an endpoint asks for is no shorter than ours would be."""
_SPREAD = 0.25
"""Share of a wait over which calls that were asked to wait together are spread out."""


class Attempts:
    """The attempts of one call. Waits for a rate limit cost no attempt, up to ``LONGEST_WAIT_S`` in all."""

    def __init__(self, most: int, *, backoff_s: float) -> None:
        """Allow ``most`` attempts that fail; ``backoff_s`` is the mean wait after the first, doubled with each."""
        self.made = 1
        """Number of the current attempt; those refused by the rate limit count."""
        self._most = most
        self._backoff_s = backoff_s
        self._failed = 0
        self._limited = 0
        self._limited_since_s = 0.0
        self._waited_s = 0.0

    def wait_s(self, failure: EndpointFailure, *, asked_s: float) -> float | None:
        """Return the seconds before the next attempt, about ``asked_s`` if that is not 0; None to give up."""
        if _is_rate_limit(failure):
            return self._rate_limited(asked_s)
        self._failed += 1
        if failure.is_final or self._failed >= self._most:
            return None
        self.made += 1
        return self._rest_s(asked_s, self._failed)

    def repeats(self) -> None:
        """Count an attempt that follows one with a request that had to be changed; that one is none that failed."""
        self.made += 1

    @property
    def in_words(self) -> str:
        """The state of the attempts, for messages."""
        if self._failed:
            return f"attempt {self._failed} of {self._most}"
        return f"attempt {self.made}, after {self._waited_s:.0f} s of waiting for its rate limit"

    def _rate_limited(self, asked_s: float) -> float | None:
        now_s = time.monotonic()
        self._limited += 1
        self._limited_since_s = now_s if self._limited == 1 else self._limited_since_s
        wait_s = self._rest_s(asked_s, self._limited)
        if max(self._waited_s, now_s - self._limited_since_s) + wait_s > LONGEST_WAIT_S:
            return None
        self._waited_s += wait_s
        self.made += 1
        return wait_s

    def _rest_s(self, asked_s: float, times: int) -> float:
        if asked_s >= _SHORTEST_ASKED_S:
            return _spread(asked_s)
        doubled: float = self._backoff_s * 2 ** min(times - 1, 20)
        return max(min(doubled, _LONGEST_REST_S) * random.uniform(0.5, 1.5), asked_s)


def spread_s(asked_s: float) -> float:
    """Return the seconds over which calls that were asked to wait ``asked_s`` come back."""
    return asked_s * _SPREAD


def _spread(asked_s: float) -> float:
    return asked_s + random.uniform(0, spread_s(asked_s))


def retry_after_s(error: Exception) -> float:
    """Return the seconds that the endpoint asked to wait, at most 60; 0 if it gave none.

    A moment is compared with the endpoint's own date, since its clock and this machine's may differ.
    """
    response = getattr(error, "response", None)
    headers = {} if response is None else response.headers
    value = headers.get("retry-after")
    if not value:
        return 0.0
    try:
        wait_s = float(value)
    except ValueError:
        until_s = _unix_time(value)
        if until_s is None:
            return 0.0
        now_s = _unix_time(headers.get("date") or "")
        wait_s = until_s - (time.time() if now_s is None else now_s)
    return min(max(0.0, wait_s), _LONGEST_REST_S)  # in this order, since "nan" is a float too


def _unix_time(http_date: str) -> float | None:
    try:
        return parsedate_to_datetime(http_date).timestamp()
    except (ValueError, OverflowError):
        return None
