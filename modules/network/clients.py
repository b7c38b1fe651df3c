"""HTTP clients that take the proxies of the environment as ``proxy_for`` reads them, for each address by itself."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence

import httpx

from .certificates import time_limits, trusted_certificates
from .proxies import Proxy, check_no_proxy_reply, naming_proxy


def async_client(*, timeout_s: float, verify: ssl.SSLContext) -> httpx.AsyncClient:
    """Return a client that follows no redirects; ``verify`` is ``trusted_certificates``, loaded off the event loop.

    Its requests raise ``ProxyFault`` besides the errors of ``httpx``.
    """
    return httpx.AsyncClient(timeout=time_limits(timeout_s), transport=_AsyncRoutes(verify))


def following_client(
    *, timeout_s: float, event_hooks: Mapping[str, Sequence[Callable[[httpx.Request], None]]]
) -> httpx.Client:
    """Return a blocking client that follows redirects; its requests raise ``ProxyFault`` besides those of ``httpx``.

    Raises:
        SettingsError: The certificates cannot be loaded.
    """
    return httpx.Client(
        timeout=timeout_s,
        follow_redirects=True,
        event_hooks={name: list(hooks) for name, hooks in event_hooks.items()},
        transport=_Routes(trusted_certificates()),
    )


class _AsyncRoutes(httpx.AsyncBaseTransport):
    """A transport a proxy, and one for what is asked directly."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._by_proxy: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        with naming_proxy(url) as proxy:
            if (key := _key(proxy)) not in self._by_proxy:
                self._by_proxy[key] = httpx.AsyncHTTPTransport(verify=self._verify, proxy=key or None)
            response = await self._by_proxy[key].handle_async_request(request)
            check_no_proxy_reply(proxy, url, response.status_code)
        return response

    async def aclose(self) -> None:
        for transport in self._by_proxy.values():
            await transport.aclose()


class _Routes(httpx.BaseTransport):
    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._by_proxy: dict[str, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        with naming_proxy(url) as proxy:
            if (key := _key(proxy)) not in self._by_proxy:
                self._by_proxy[key] = httpx.HTTPTransport(verify=self._verify, proxy=key or None)
            response = self._by_proxy[key].handle_request(request)
            check_no_proxy_reply(proxy, url, response.status_code)
        return response

    def close(self) -> None:
        for transport in self._by_proxy.values():
            transport.close()


def _key(proxy: Proxy | None) -> str:
    return proxy.url if proxy is not None else ""
