"""Adapters of judgetree's chat models and embeddings to RAGAS, and its metrics built from them.

Importing this module imports RAGAS, which takes seconds and needs the extra ``eval``. RAGAS gets no client and no key:
all calls go through judgetree's models with their rate limits, cache, retries and records.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from importlib import metadata
from typing import Any, Protocol

from ...modules.background_loop import background_loop
from ...modules.calls.messages import version_of
from ...modules.calls.usage import CallMeter
from ...modules.embedding.embedder import Embedder
from ...modules.quiet_libraries import keep_libraries_quiet
from ..scoring.replies import Reply, StructuredLLM
from .metrics import RagasMetric

keep_libraries_quiet()  # RAGAS reads its variable at import
with warnings.catch_warnings():
    # RAGAS imports from deprecated packages; keep our own imports out of this block.
    warnings.simplefilter("ignore", DeprecationWarning)
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.metrics import collections
    from ragas.prompt.metrics.base_prompt import BasePrompt

RAGAS_VERSION = metadata.version("ragas")


class Scored(Protocol):
    """Protocol of the ``MetricResult`` of RAGAS."""

    @property
    def value(self) -> object:
        """The score; NaN if RAGAS could not compute one."""
        ...


class Scoring(Protocol):
    """Protocol of a metric of ``ragas.metrics.collections``."""

    async def ascore(self, **inputs: Any) -> Scored:
        """Score one sample."""
        ...


class RagasChat(InstructorBaseRagasLLM):
    """A judgetree chat model for the metrics of one sample; ``meter`` records its calls."""

    def __init__(self, llm: StructuredLLM, meter: CallMeter) -> None:
        self._llm = llm
        self._meter = meter

    def generate(self, prompt: str, response_model: type[Reply]) -> Reply:
        """Send a prompt and wait for the reply. Blocks."""
        return background_loop().run(self.agenerate(prompt, response_model))

    async def agenerate(self, prompt: str, response_model: type[Reply]) -> Reply:
        """Send a prompt and parse the reply as ``response_model``."""
        return await self._llm.ask(prompt, response_model, meter=self._meter)


class RagasEmbeddings(BaseRagasEmbedding):
    """A judgetree embedder for the metrics of one sample; ``meter`` records the texts."""

    def __init__(self, embedder: Embedder, meter: CallMeter) -> None:
        super().__init__()
        self._embedder = embedder
        self._meter = meter

    def embed_text(self, text: str, **kwargs: Any) -> list[float]:
        """Embed one text. Blocks."""
        return background_loop().run(self.aembed_text(text, **kwargs))

    async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
        """Embed one text, or read its vector from the cache."""
        started = time.perf_counter()
        # In a thread: the asynchronous client of an endpoint would leave open connections.
        vector = await asyncio.to_thread(self._embedder.embed_query, text)
        self._meter.record(kind="embedding", model=self._embedder.name, started=started)
        return vector


def build_scoring(metric: RagasMetric, llm: StructuredLLM, embedder: Embedder, meter: CallMeter) -> Scoring:
    """Build a metric for one sample; ``meter`` records its calls. Makes no call."""
    parts: dict[str, object] = {"llm": RagasChat(llm, meter), **metric.options}
    if metric.embeds:
        parts["embeddings"] = RagasEmbeddings(embedder, meter)
    scoring: Scoring = getattr(collections, metric.class_name)(**parts)
    return scoring


def prompts_version(scoring: Scoring) -> str:
    """Return eight hexadecimal digits that change with any instruction, example or reply schema of the metric."""
    prompts = [prompt for _, prompt in sorted(vars(scoring).items()) if isinstance(prompt, BasePrompt)]
    return version_of(*(text for prompt in prompts for text in _texts(prompt)))


def _texts(prompt: BasePrompt[Any, Any]) -> list[str]:
    examples = [part.model_dump_json() for pair in prompt.examples for part in pair]
    return [prompt.instruction, repr(prompt.output_model.model_json_schema()), *examples]
