"""Chat models whose calls have a temperature, thinking and a longest prompt of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Unpack

from ..calls.completion import Completion
from ..calls.growing_text import TextListeners
from ..calls.messages import PLAIN_TEXT, CallOptions, Message, texts_of
from ..calls.tokens import TOKENS_A_MESSAGE, fair_shares, message_tokens, shortened, text_tokens
from ..calls.usage import CallMeter
from ..errors import SettingsError
from .contract import ChatLLM, ChatWrapper, lacks_of, temperature_of, thinking_of


class SampledLLM(ChatWrapper):
    """A chat model whose calls have their own temperature and thinking. It wraps a cache, whose keys hold both."""

    def __init__(self, inner: ChatLLM, *, temperature: float | None, thinking: bool | None) -> None:
        """Tune the calls of ``inner``; ``with_sampling`` explains the arguments."""
        super().__init__(inner)
        self._temperature = temperature
        self._thinking = thinking

    @property
    def temperature(self) -> float:
        """Temperature of its calls."""
        return temperature_of(self._inner) if self._temperature is None else self._temperature

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
            temperature=self._temperature if options.temperature is None else options.temperature,
            thinking=self._thinking if options.thinking is None else options.thinking,
        )
        return await self._inner.complete(messages, meter=meter, options=own, **listeners)


def with_sampling(llm: ChatLLM, *, temperature: float | None = None, thinking: bool | None = None) -> ChatLLM:
    """Return ``llm`` with calls of its own temperature and thinking; ``llm`` itself where neither is given.

    Args:
        llm: The model; the settings of one that is tuned already hold where they are not given.
        temperature: 0 takes the likeliest answer, 1 draws as the model was trained; None as the model has it.
        thinking: Whether it thinks before it answers; None as the endpoint does.

    Raises:
        SettingsError: The model does not let its thinking be switched: one of LangChain, or one that completes texts.
            Or it keeps its own temperature.
    """
    if temperature is not None:
        check_takes(llm, ("temperature",))
    if thinking is not None and (why := str(getattr(llm, "why_no_thinking", ""))):
        raise SettingsError(why)
    if temperature is None and thinking is None:
        return llm
    return SampledLLM(llm, temperature=temperature, thinking=thinking)


def check_takes(llm: ChatLLM, options: Collection[str]) -> None:
    """Check that a model follows these options of its calls, by their names in ``CallOptions``.

    Raises:
        SettingsError: It is one of LangChain, which keeps its own settings.
    """
    if kept := sorted(lacks_of(llm).intersection(options)):
        raise SettingsError(
            f"The model {llm.model!r} is one of LangChain, which keeps its own settings: leave out {', '.join(kept)}."
        )


class BoundedLLM(ChatWrapper):
    """A chat model whose longer prompts are shortened, which the record of the call says. It wraps a cache."""

    def __init__(self, inner: ChatLLM, *, max_prompt_tokens: int) -> None:
        """Shorten prompts of more than ``max_prompt_tokens``, as ``message_tokens`` estimates them."""
        super().__init__(inner)
        self._most = max_prompt_tokens

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Make one call, with the middles of the longest messages left out as far as all are too long."""
        if message_tokens(messages) > self._most:
            messages, options = _shortened(messages, self._most), replace(options, is_shortened=True)
        return await self._inner.complete(messages, meter=meter, options=options, **listeners)


def bounded(llm: ChatLLM, max_prompt_tokens: int | None) -> ChatLLM:
    """Return ``llm`` with prompts of at most so many tokens; ``llm`` itself for None."""
    return llm if max_prompt_tokens is None else BoundedLLM(llm, max_prompt_tokens=max_prompt_tokens)


def _shortened(messages: Sequence[Message], max_tokens: int) -> list[Message]:
    """Return the messages with equal room for those that are too long; the short ones stay as they are."""
    texts = texts_of(messages)
    rooms = fair_shares([*map(text_tokens, texts)], max(0, max_tokens - TOKENS_A_MESSAGE * len(texts)))
    return [(role, shortened(text, room)) for (role, text), room in zip(messages, rooms, strict=True)]
