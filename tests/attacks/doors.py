"""Every door through which judgetree reads what a foreign server sends, each opened by one call with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from judgetree.evaluation.datasets.fetch import fetch_dataset
from judgetree.evaluation.datasets.sources import DatasetSource
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.errors import ModelCallError, UserError
from judgetree.modules.retriever.rerank import create_reranker
from judgetree.modules.retriever.web import SearxngSearch
from judgetree.modules.settings import Settings
from tests.modules.model_endpoints import llm_at

Door = Callable[[str, Path, float], Awaitable[object]]
"""Asks the server at a base URL, with a folder for files, within some seconds."""


async def _chat(base_url: str, folder: Path, timeout_s: float) -> object:
    return await llm_at(base_url, retries=0, timeout_s=timeout_s).complete(
        [("user", "?")], meter=CallMeter(node="generate")
    )


async def _stream(base_url: str, folder: Path, timeout_s: float) -> object:
    return await llm_at(base_url, retries=0, timeout_s=timeout_s).complete(
        [("user", "?")], meter=CallMeter(node="generate"), on_text=lambda text: None
    )


async def _embeddings(base_url: str, folder: Path, timeout_s: float) -> object:
    settings = Settings(home=folder, retries=0, timeout_s=timeout_s)
    return await create_embeddings(f"{base_url}#m", settings, cache=False).aembed_documents(["a", "b"])


async def _rerank(base_url: str, folder: Path, timeout_s: float) -> object:
    model = create_reranker(f"{base_url}/rerank#m", timeout_s=timeout_s, retries=0)
    return await asyncio.to_thread(model.rerank, "?", ["a", "b"], 2)


async def _web(base_url: str, folder: Path, timeout_s: float) -> object:
    return await SearxngSearch(base_url, timeout_s=timeout_s).search("?", limit=3)


async def _download(base_url: str, folder: Path, timeout_s: float) -> object:
    source = DatasetSource(
        format="hotpotqa",
        target="set.json",
        size="",
        citation="",
        homepage="",
        licence="",
        url=f"{base_url}/set.json",
        max_bytes=1_000_000,
    )
    return await asyncio.to_thread(fetch_dataset, source, folder, loopback_http=True)


DOORS: dict[str, Door] = {
    "chat": _chat,
    "stream": _stream,
    "embeddings": _embeddings,
    "rerank": _rerank,
    "web-search": _web,
    "download": _download,
}
TYPED = (ModelCallError, UserError)
"""What a person sees in place of a traceback."""
