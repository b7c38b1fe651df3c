"""Embedding of 2,000 texts by an endpoint on loopback that takes 50 ms a request: one call after another, and now.

Before, LangChain's client sent one batch after another. ``dashscope`` has 10 texts a request, the others 64.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.settings import load_settings

from .measurement import Row

TEXTS = 2000
LATENCY_S = 0.05
CAPS = (1, 8, 16, 64)


def measure() -> list[Row]:
    """Embed the same texts by each client, with none cached; the clients are loaded before."""
    numbers = random.Random(0)
    texts = [" ".join(f"w{numbers.randrange(5000)}" for _ in range(80)) for _ in range(TEXTS)]
    with tempfile.TemporaryDirectory() as home, ScriptedServer([]) as server:
        server.configure(latency_s=LATENCY_S)
        return [row for size in (64, 10) for row in _rows(server.base_url, Path(home), texts, size)]


def _rows(base_url: str, home: Path, texts: list[str], size: int) -> list[Row]:
    def before(texts: list[str]) -> list[list[float]]:
        client = OpenAIEmbeddings(
            model="m",
            base_url=base_url,
            api_key=SecretStr("none"),
            check_embedding_ctx_length=False,
            chunk_size=size,
            model_kwargs={"encoding_format": "float"},
        )
        return client.embed_documents(texts)

    def now(texts: list[str], cap: int) -> list[list[float]]:
        spec = f"{base_url}#m" if size == 64 else "dashscope:m"
        address = "" if size == 64 else base_url.replace("/v1", "/compatible-mode/v1")
        settings = load_settings(home=home, max_concurrency=cap, llm_base_url=address, llm_api_key="none")
        return create_embeddings(spec, settings, cache=False).embed_documents(texts)

    what = f"embed {TEXTS:,} texts, {size} a request, {LATENCY_S * 1000:.0f} ms latency"
    slow = _seconds(before, texts)
    rows = [Row(f"{what}: one call after another", f"{slow:.2f} s, {TEXTS / slow:,.0f} texts/s")]
    for cap in CAPS:
        fast = _seconds(lambda texts, cap=cap: now(texts, cap), texts)
        rows.append(
            Row(f"{what}: cap {cap}", f"{fast:.2f} s, {TEXTS / fast:,.0f} texts/s, {slow / fast:.1f} x as fast")
        )
    return rows


def _seconds(embed: Callable[[list[str]], list[list[float]]], texts: list[str]) -> float:
    embed(texts[:1])  # loads the client
    started = time.perf_counter()
    vectors = embed(texts)
    assert len(vectors) == len(texts)
    return time.perf_counter() - started
