"""``/healthz`` and ``/readyz``: whether the process lives, and whether it can answer questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import httpx
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from ....modules.errors import JudgetreeError
from ....modules.llm.factory import is_local, resolve_endpoint
from ....modules.llm.own import is_own
from ....modules.network.certificates import trusted_certificates
from ....modules.network.clients import async_client
from ..serving.caller import LOCAL
from ..serving.served import Served

router = APIRouter(tags=["watching"])

_TIMEOUT_S = 5.0
_FRESH_S = 5.0
"""Age up to which an answer is given again, so that probes cost the stores next to nothing."""


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """What questions need; each is ``ok``, or says what is wrong."""

    ready: bool
    milvus: str
    checkpoints: str
    model: str


class Prober:
    """Tries what questions need, at most once in some seconds."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._trying = asyncio.Lock()
        self._known: Readiness | None = None
        self._known_at = 0.0

    async def readiness(self) -> Readiness:
        """Return what works; no model is called, and none is paid for."""
        async with self._trying:
            if self._known is None or time.monotonic() - self._known_at > _FRESH_S:
                self._known = await self._try()
                self._known_at = time.monotonic()
            return self._known

    async def _try(self) -> Readiness:
        probes: Mapping[str, Callable[[], Awaitable[object]]] = {
            "milvus": lambda: self._served.collections(LOCAL),
            "checkpoints": self._read_store,
            "model": self._reach_model,
        }
        words = dict(zip(probes, await asyncio.gather(*(_outcome(probe) for probe in probes.values())), strict=True))
        return Readiness(ready=all(word == "ok" for word in words.values()), **words)

    async def _read_store(self) -> None:
        conversations = await self._served.any_conversations()
        await conversations.conversation("readyz").abranches()

    async def _reach_model(self) -> None:
        settings = self._served.settings
        if is_local(settings.llm_spec) or is_own(settings.llm_spec):
            return
        endpoint = resolve_endpoint(settings.llm_spec, settings)
        if endpoint.base_url is None:
            return  # OpenAI's own address is not asked every few seconds
        certificates = await asyncio.to_thread(trusted_certificates)
        async with async_client(timeout_s=_TIMEOUT_S, verify=certificates) as client:
            await client.get(endpoint.base_url.revealed())  # any answer shows that it is there


async def _outcome(probe: Callable[[], Awaitable[object]]) -> str:
    """Return ``ok`` or what is wrong, without addresses and text of stores, which are the owner's."""
    probing = asyncio.ensure_future(probe())
    await asyncio.wait([probing], timeout=_TIMEOUT_S)
    if not probing.done():
        probing.cancel()  # and not awaited: a store that hangs may also take long to be left
        _LEFT.add(probing)
        probing.add_done_callback(_forget)
        return TimeoutError.__name__
    try:
        probing.result()
    except (JudgetreeError, httpx.HTTPError, OSError, TimeoutError) as error:
        return type(error).__name__
    return "ok"


_LEFT: set[asyncio.Future[object]] = set()
"""Probes that came too late: asyncio itself keeps no reference to them."""


def _forget(probing: asyncio.Future[object]) -> None:
    _LEFT.discard(probing)
    if not probing.cancelled():
        probing.exception()  # retrieved, so that asyncio does not log it


@router.get("/healthz")
async def healthz() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness}})
async def readyz(request: Request, response: Response) -> Readiness:
    """Try Milvus, the checkpoint store and the model's address; HTTP 503 if one does not answer within 5 s."""
    found = await cast(Prober, request.app.state.prober).readiness()
    response.status_code = 200 if found.ready else 503
    return found
