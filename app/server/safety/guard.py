"""The guard before all doors: lets a request through that is allowed, and answers all others itself."""

from __future__ import annotations

import asyncio
import html
from http import HTTPStatus
from string import Template

from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..keys.book import KeyBook
from ..serving.errors import ApiError, answer_of, as_api_error, hides_causes
from ..serving.options import ServerOptions
from ..serving.validity import Validity, key_ended
from ..trees.forms import HTML, JSON, wanted_form
from .answer_headers import add_headers
from .bodies import BodyLimits, LimitedBody
from .connections import Connections
from .hosts import HostCheck
from .key_check import KeyCheck
from .key_watch import KeyWatch
from .peers import TrustedProxies
from .request_rate import RequestRate

_PAGE = Template(
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>No access</title>'
    '<main><h1>No access</h1><p>$words</p><p><a href="/">To the start page, which takes a key</a></p></main></html>'
)


class Guard:
    """Checks host, origin, key, rate and body of every request, in this order, and adds headers to every answer.

    There is no CORS: pages of other sites get no answer to read.
    """

    def __init__(
        self, app: ASGIApp, *, options: ServerOptions, keys: KeyBook, connections: Connections, watch: KeyWatch
    ) -> None:
        self._app = app
        self._watch = watch
        self._proxies = TrustedProxies(options.trusted_proxies)
        self._connections = connections
        self._hosts = HostCheck(options)
        self._keys = KeyCheck(keys, demands_keys=options.demands_keys)
        self._rate = RequestRate(options.requests_per_minute)
        self._bodies = BodyLimits(options)
        self._max_answer_s = options.max_answer_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:  # there are no web sockets
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._proxies.see_through(scope)
        answer = _Answer(send)
        hides_causes.set(False)
        try:
            with self._connections.request(scope):
                key_id = await self._check(scope)
                hides_causes.set(bool(key_id))
                answer.body = self._bodies.body_of(scope, receive)
                with self._watch.request(scope, key_id) as answer.validity:
                    async with asyncio.timeout(self._max_s_of(scope)) as answer.waiting:
                        await self._app(scope, answer.body.receive, answer.send)
            refusal = answer.body.refusal
        except asyncio.CancelledError:  # the key or the server has ended, or the client has left
            if answer.is_started:
                raise
            refusal = key_ended() if answer.validity.has_ended else _server_ends()
        except Exception as error:
            if answer.is_started:
                raise
            refusal = _late() if answer.waiting and answer.waiting.expired() else as_api_error(error)
        if refusal is not None and not answer.is_started:
            answer.refused = refusal
            await _refused(scope, refusal)(scope, receive, answer.send)

    def _max_s_of(self, scope: Scope) -> float | None:
        """Return the seconds in which an answer must start; None for what may change something or ask a model."""
        return self._max_answer_s if scope["method"] in ("GET", "HEAD") else None

    async def _check(self, scope: Scope) -> str:
        self._hosts.check(scope)
        try:
            key_id = await self._keys.check(scope)
        except ApiError:
            self._rate.check(scope, "")
            raise
        self._rate.check(scope, key_id)
        return key_id


class _Answer:
    """An answer on its way out."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_started = False
        self.body: LimitedBody | None = None
        self.validity = Validity()
        self.waiting: asyncio.Timeout | None = None
        """The time in which it must start."""
        self.refused: ApiError | None = None
        """The guard's own answer."""

    async def send(self, message: Message) -> None:
        """Send a piece; none of a door's answer to a body that was refused, for which the guard's own stands."""
        if self.refused is None and not self.is_started and self.body is not None and self.body.refusal is not None:
            return
        if message["type"] == "http.response.start":
            self.is_started = True
            if self.refused is None and self.waiting is not None and not self.waiting.expired():
                self.waiting.reschedule(None)
            # What was not read of the body would be taken for the next request.
            add_headers(message, closes=self.refused is not None)
        await self._send(message)


def _refused(scope: Scope, refusal: ApiError) -> Response:
    """Return the answer to a refused request: to people who open a page without a key in words, else as JSON."""
    accepted = Headers(scope=scope).get("accept", "*/*")
    if refusal.status != HTTPStatus.UNAUTHORIZED or wanted_form(accepted, (JSON, HTML)) != HTML:
        return answer_of(refusal)
    page = _PAGE.substitute(words=html.escape(refusal.body.message))
    return HTMLResponse(page, refusal.status, headers=refusal.headers)


def _late() -> ApiError:
    return ApiError(503, "A store does not answer. Try again later.", kind="api_error", code="store_hangs")


def _server_ends() -> ApiError:
    return ApiError(503, "The server ends. Ask the same again.", kind="api_error", code="server_ends")
