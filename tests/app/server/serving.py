"""A running server, over real HTTP on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from judgetree.app.server.application import create_app
from judgetree.app.server.safety.start import uvicorn_config
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings

PATIENT = ServerOptions(requests_per_minute=1_000_000)
"""Usual options, but for tests, which ask faster than people."""


_TIMES = ("max_store_seconds", "max_search_seconds", "max_answer_seconds", "max_body_seconds", "max_header_seconds")


def patient(options: ServerOptions) -> ServerOptions:
    """The options with ten times the usual limits of time, but for those that they set: a busy machine is slow."""
    usual = {name: 10 * getattr(options, name) for name in _TIMES if name not in options.model_fields_set}
    return options.model_copy(update=usual)


@contextmanager
def serving(settings: Settings, options: ServerOptions | None = None) -> Iterator[str]:
    """Serve in a thread of this process; yields the address."""
    options = patient(options or PATIENT)
    with serving_app(create_app(settings, options), options) as address:
        yield address


@contextmanager
def serving_app(app: FastAPI, options: ServerOptions = PATIENT) -> Iterator[str]:
    """Serve an application in a thread of this process; yields the address."""
    listening = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup(sockets)  # type: ignore[arg-type]
            listening.set()

    server = Server(uvicorn_config(app, options, host="127.0.0.1", port=0, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, name="server")
    thread.start()
    try:
        assert listening.wait(60), "the server does not listen"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
