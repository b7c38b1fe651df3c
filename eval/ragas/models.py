"""Our chat models and embeddings as RAGAS wants them, and its metrics made of them.

Importing this module imports RAGAS, which takes seconds and needs the extra ``eval``. RAGAS gets no client and no key:
every call goes through our own models, with their gate, cache, retries and records.
"""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from importlib import metadata
from typing import Any, Protocol

from ...modules.background_loop import background_loop
from ...modules.calls.messages import version_of
from ...modules.calls.usage import CallMeter
from ...modules.embedding.embedder import Embedder
from .metrics import RagasMetric
from .replies import Reply, StructuredLLM

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # before the import; no other spelling switches its telemetry off
with warnings.catch_warnings():
    # Its own imports from packages that have moved on; nothing of ours is imported in here.
    warnings.simplefilter("ignore", DeprecationWarning)
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.metrics import collections
    from ragas.prompt.metrics.base_prompt import BasePrompt

RAGAS_VERSION = metadata.version("ragas")


class Scored(Protocol):
    """A ragas ``MetricResult``."""

    @property
    def value(self) -> object:
        """The score; NaN where there is none."""
        ...


class Scoring(Protocol):
    """A metric of ``ragas.metrics.collections``."""

    async def ascore(self, **inputs: Any) -> Scored:
        """Score one sample."""
        ...


class RagasChat(InstructorBaseRagasLLM):
    """A chat model of ours for the metrics of one sample, whose meter books the calls."""

    def __init__(self, llm: StructuredLLM, meter: CallMeter) -> None:
        self._llm = llm
        self._meter = meter

    def generate(self, prompt: str, response_model: type[Reply]) -> Reply:
        """See ``agenerate``; blocks."""
        return background_loop().run(self.agenerate(prompt, response_model))

    async def agenerate(self, prompt: str, response_model: type[Reply]) -> Reply:
        """The reply to a prompt; see ``StructuredLLM.ask``."""
        return await self._llm.ask(prompt, response_model, meter=self._meter)


class RagasEmbeddings(BaseRagasEmbedding):
    """An embedder of ours for the metrics of one sample, whose meter books the texts."""

    def __init__(self, embedder: Embedder, meter: CallMeter) -> None:
        super().__init__()
        self._embedder = embedder
        self._meter = meter

    def embed_text(self, text: str, **kwargs: Any) -> list[float]:
        """See ``aembed_text``; blocks."""
        return background_loop().run(self.aembed_text(text, **kwargs))

    async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
        """The vector of one text, from the cache of vectors where it is there."""
        started = time.perf_counter()
        # In a thread, since the asynchronous client of an endpoint is left with open connections at the end.
        vector = await asyncio.to_thread(self._embedder.embed_query, text)
        self._meter.record(kind="embedding", model=self._embedder.name, started=started)
        return vector


def build_scoring(metric: RagasMetric, llm: StructuredLLM, embedder: Embedder, meter: CallMeter) -> Scoring:
    """The metric for one sample, whose calls ``meter`` books; calls nothing."""
    parts: dict[str, object] = {"llm": RagasChat(llm, meter), **metric.options}
    if metric.embeds:
        parts["embeddings"] = RagasEmbeddings(embedder, meter)
    scoring: Scoring = getattr(collections, metric.class_name)(**parts)
    return scoring


def prompts_version(scoring: Scoring) -> str:
    """Eight hexadecimal digits that change whenever an instruction, example or reply form of the metric does."""
    prompts = [prompt for _, prompt in sorted(vars(scoring).items()) if isinstance(prompt, BasePrompt)]
    return version_of(*(text for prompt in prompts for text in _texts(prompt)))


def _texts(prompt: BasePrompt[Any, Any]) -> list[str]:
    examples = [part.model_dump_json() for pair in prompt.examples for part in pair]
    return [prompt.instruction, repr(prompt.output_model.model_json_schema()), *examples]
