"""HEAD requests, answered as GET without a body: ASGI middleware."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OF_ROUTES = ("route", "path_params", "endpoint")


class Heads:
    """Answers HEAD wherever GET is answered; a stream ends with its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_sent = False

        async def received() -> Message:
            return {"type": "http.disconnect"} if is_sent else await receive()

        async def sent(message: Message) -> None:
            nonlocal is_sent
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                is_sent = True

        inner = {**scope, "method": "GET"}
        try:
            await self._app(inner, received, sent)
        finally:
            scope.update({name: inner[name] for name in _OF_ROUTES if name in inner})  # for the log
