"""The application: its doors, its errors, and the start and end of what it serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from ...modules.background.garbage import rare_collections
from ...modules.background.threads import SpareThreads
from ...modules.settings import Settings
from .chat.completions import router as chat_router
from .chat.models import router as models_router
from .collections.documents import router as documents_router
from .collections.filling import LOCK
from .collections.library import Library
from .collections.listing import router as collections_router
from .collections.playground import router as playground_router
from .collections.uploads import Uploads
from .conversations.changes import router as changes_router
from .conversations.questions import router as questions_router
from .conversations.reading import router as reading_router
from .knowledge.question import router as knowledge_router
from .page.serving import router as page_router
from .runs.folder import RunsFolder
from .runs.routes import router as runs_router
from .safety.connections import Connections
from .safety.guard import Guard
from .safety.heads import Heads
from .safety.key_watch import KeyWatch
from .safety.start import check_can_start
from .serving.errors import ErrorAnswer, add_error_handlers
from .serving.expiry import expiring
from .serving.options import ServerOptions
from .serving.served import Served
from .trees.routes import router as trees_router
from .watching.health import Prober
from .watching.health import router as health_router
from .watching.metrics import Metrics, Watch
from .watching.metrics import router as metrics_router
from .watching.tracing import Tracing

logger = logging.getLogger(__name__)

UPLOADS_S = LOCK.wait_s + 2
"""Seconds for uploads to end, which may wait for another writer."""
_STORES_S = 4.0
CLOSING_S = UPLOADS_S + 2 * _STORES_S
"""Longest end of an application, after its last request."""
_REFUSALS = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 501, 502, 503)
_ERROR = {"schema": {"$ref": f"#/components/schemas/{ErrorAnswer.__name__}"}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    **{status: {"content": {"application/json": _ERROR}} for status in _REFUSALS},
    500: {"model": ErrorAnswer},
}
"""With one model: FastAPI would describe thirteen for each route, which would take a third of a second."""
ROUTERS = (
    chat_router,
    models_router,
    knowledge_router,
    reading_router,
    questions_router,
    changes_router,
    collections_router,
    playground_router,
    documents_router,
    runs_router,
    trees_router,
    page_router,
    health_router,
    metrics_router,
)


def create_app(settings: Settings, options: ServerOptions | None = None) -> FastAPI:
    """Make the ASGI application; collections and models are opened at their first question.

    ::

        uvicorn.run(create_app(load_settings()), port=8808)
    """
    options = options or ServerOptions()
    served, library = Served(settings, options), Library(settings, options)
    watch = KeyWatch(served.keys)
    uploads = Uploads(settings, options, watch)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(SpareThreads(name="judgetree-server"))
        try:
            await asyncio.to_thread(check_can_start, options, served.keys)
            with rare_collections():
                async with expiring(served):
                    yield
        finally:
            await _closed_in_time({uploads.close: UPLOADS_S, library.close: _STORES_S, served.close: _STORES_S})

    app = FastAPI(
        title="judgetree",
        version=version("judgetree"),
        summary="Recursive RAG with a judge: chat completions, conversations, search trees, collections and runs.",
        lifespan=lifespan,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        responses=_ERRORS,
    )
    app.state.served = served
    app.state.library = library
    app.state.uploads = uploads
    app.state.runs = RunsFolder(options.runs, settings)
    app.state.prober = Prober(served)
    app.state.connections = connections = Connections(options)
    app.state.metrics = Metrics(served, connections)
    add_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(Heads)
    if settings.telemetry == "otlp":
        app.add_middleware(Tracing)
    app.add_middleware(Guard, options=options, keys=served.keys, connections=connections, watch=watch)
    app.add_middleware(Watch, metrics=app.state.metrics)  # around the guard, whose refusals count too
    return app


async def _closed_in_time(closes: Mapping[Callable[[], Awaitable[None]], float]) -> None:
    """Close one after the other, each within its seconds; what a store that hangs keeps open ends with the process."""
    for close, limit_s in closes.items():
        try:
            async with asyncio.timeout(limit_s):
                await close()
        except TimeoutError:
            logger.warning("%s took more than %g s, and ends with the process", close.__qualname__, limit_s)
