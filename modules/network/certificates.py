"""The certificates of authorities that HTTPS connections trust: those of the system, or of SSL_CERT_FILE."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import SettingsError

if TYPE_CHECKING:
    import httpx

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def time_limits(timeout_s: float) -> httpx.Timeout:
    """Return the limits of a client whose requests are cancelled after ``timeout_s``.

    That of connecting comes a little earlier: a client leaves the socket open where it is cancelled in a handshake.
    """
    import httpx  # noqa: PLC0415 - keeps the package's import fast

    return httpx.Timeout(timeout_s, connect=0.9 * timeout_s)


@functools.cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the certificates, loaded once a process in tens of milliseconds; not on an event loop.

    Raises:
        SettingsError: They cannot be loaded.
    """
    import httpx  # noqa: PLC0415 - keeps the package's import fast

    with naming_broken_certificates():
        return httpx.create_ssl_context()


@contextmanager
def naming_broken_certificates() -> Iterator[None]:
    """Name the variable of the environment if certificates cannot be loaded in the block, where a client is made.

    HTTP clients load them when they are made, for addresses without TLS too.

    Raises:
        SettingsError: They cannot be loaded.
    """
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        named = ", ".join(f"{name}={os.environ[name]!r}" for name in _VARIABLES if os.environ.get(name))
        which = named or "those of the system"
        raise SettingsError(
            f"The certificates for HTTPS cannot be loaded ({error.strerror or error}): {which}. Name a file of "
            "certificates in PEM format, or unset the variable."
        ) from error
