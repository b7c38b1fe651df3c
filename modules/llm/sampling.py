"""Answers that are drawn at a temperature, in place of the likeliest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..calls.completion import Completion
from ..calls.growing_text import TextListener
from ..calls.messages import Message
from ..calls.usage import CallMeter
from .endpoint import PLAIN_TEXT, CallOptions, ChatLLM


class SampledLLM:
    """A chat model whose replies are drawn at a temperature. Around a cache: its keys have the temperature then."""

    def __init__(self, inner: ChatLLM, temperature: float) -> None:
        """``temperature``: 0 takes the likeliest answer, 1 draws as the model was trained."""
        self._inner = inner
        self.temperature = temperature

    @property
    def model(self) -> str:
        """The inner model's name."""
        return self._inner.model

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        on_text: TextListener | None = None,
        on_thinking: TextListener | None = None,
    ) -> Completion:
        """See ``ChatLLM.complete``; the temperature of ``options`` does not count."""
        drawn = replace(options, temperature=self.temperature)
        return await self._inner.complete(
            messages, meter=meter, options=drawn, on_text=on_text, on_thinking=on_thinking
        )


def sampled(llm: ChatLLM, temperature: float) -> ChatLLM:
    """``llm`` with its replies drawn at a temperature; at 0 ``llm`` itself."""
    return SampledLLM(llm, temperature) if temperature else llm


def temperature_of(llm: ChatLLM) -> float:
    """The temperature of ``SampledLLM.temperature``; 0 for a model that has none of its own."""
    return float(getattr(llm, "temperature", 0.0))
