"""Chat models whose calls have a temperature and thinking of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from ..calls.completion import Completion
from ..calls.growing_text import TextListeners
from ..calls.messages import PLAIN_TEXT, CallOptions, Message
from ..calls.usage import CallMeter
from ..errors import SettingsError
from .contract import ChatLLM, ChatWrapper, temperature_of, thinking_of


class TunedLLM(ChatWrapper):
    """A chat model whose calls have their own temperature and thinking. It wraps a cache, whose keys hold both."""

    def __init__(self, inner: ChatLLM, *, temperature: float, thinking: bool | None) -> None:
        """Tune the calls of ``inner``; ``tuned`` explains the arguments."""
        super().__init__(inner)
        self._temperature = temperature
        self._thinking = thinking

    @property
    def temperature(self) -> float:
        """Temperature of its calls."""
        return self._temperature or temperature_of(self._inner)

    @property
    def thinking(self) -> bool | None:
        """Whether its calls think; None as the endpoint does."""
        return thinking_of(self._inner) if self._thinking is None else self._thinking

    @property
    def key(self) -> tuple[object, ...]:
        """The same for equal settings of one inner model."""
        return id(self._inner), self._temperature, self._thinking

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Make one call with its own temperature and thinking, unless ``options`` say otherwise."""
        own = replace(
            options,
            temperature=options.temperature or self._temperature,
            thinking=self._thinking if options.thinking is None else options.thinking,
        )
        return await self._inner.complete(messages, meter=meter, options=own, **listeners)


def tuned(llm: ChatLLM, *, temperature: float = 0.0, thinking: bool | None = None) -> ChatLLM:
    """Return ``llm`` with calls of its own temperature and thinking; ``llm`` itself where neither is given.

    Args:
        llm: The model; the settings of one that is tuned already hold where they are not given.
        temperature: 0 takes the likeliest answer, 1 draws as the model was trained.
        thinking: Whether it thinks before it answers; None as the endpoint does.

    Raises:
        SettingsError: The model does not let its thinking be switched: one of LangChain, or one that completes texts.
    """
    if thinking is not None and (why := str(getattr(llm, "why_no_thinking", ""))):
        raise SettingsError(why)
    return TunedLLM(llm, temperature=temperature, thinking=thinking) if temperature or thinking is not None else llm
