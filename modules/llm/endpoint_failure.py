"""Why a call to a model endpoint failed: whether anything can succeed there, and in words what to mend."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ModelCallError, ModelSetupError, error_class_of

_REMEDIES = {
    401: "check the API key",
    402: "check the account's balance",
    403: "check what the key may use",
    404: "check the model's name and the address",
    429: "check the account's quota and balance",
}


@dataclass(frozen=True, kw_only=True)
class EndpointFailure:
    """What an exception of an HTTP client says about the endpoint."""

    error_class: type[ModelCallError]
    is_final: bool
    """True where the same request would fail again: it is not worth another attempt."""
    what: str
    """One line without line breaks; ``""`` where only the exception's own text is known."""
    remedy: str
    """What to do, as a clause; ``""`` where waiting is all that can be done."""
    status: int | None = None
    """HTTP status of the reply; None where there was none."""


def endpoint_failure(error: BaseException) -> EndpointFailure:
    """Read an exception of the OpenAI client, httpx or aiohttp, down to the socket error that it stands for.

    A refused connection and an unknown host are setup errors that are worth further attempts: servers restart.
    """
    if (connection := _connection_failure(error)) is not None:
        return connection
    status = getattr(error, "status_code", None)
    error_class = error_class_of(status, str(getattr(error, "code", None) or getattr(error, "type", None) or ""))
    is_final = error_class is not ModelCallError
    return EndpointFailure(
        error_class=error_class,
        is_final=is_final,
        what="",
        remedy=_REMEDIES.get(status or 0, "check the request and the model's limits") if is_final else "",
        status=status,
    )


def _connection_failure(error: BaseException) -> EndpointFailure | None:
    for cause in reversed(list(_causes(error))):  # the socket's own error says most
        if isinstance(cause, ConnectionRefusedError):
            what, remedy = "the connection was refused", "start the server, or correct the address in the settings"
            return _unreachable(what, remedy)
        if isinstance(cause, socket.gaierror):
            return _unreachable("its host name is unknown", "correct the address in the settings, or check the network")
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"its TLS certificate is not accepted ({cause.verify_message})"
            return _unreachable(what, "mend the certificate, or name its authority in SSL_CERT_FILE", is_final=True)
        if isinstance(cause, ssl.SSLError):
            what = f"no TLS connection can be made ({cause.reason or cause})"
            return _unreachable(what, "check whether the address begins with https:// or http://", is_final=True)
    return None


def _unreachable(what: str, remedy: str, *, is_final: bool = False) -> EndpointFailure:
    return EndpointFailure(error_class=ModelSetupError, is_final=is_final, what=what, remedy=remedy)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it was raised from or during, outermost first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__  # httpcore suppresses the context that names the socket's error
