"""The contract of chat models, what fingerprints read of one, and the base of those that wrap another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..calls.completion import Completion
from ..calls.growing_text import TextListener
from ..calls.messages import PLAIN_TEXT, CallOptions, Message
from ..calls.usage import CallMeter


class ChatLLM(Protocol):
    """A chat model for judges and readers."""

    @property
    def model(self) -> str:
        """Name of the model in fingerprints and records."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        on_text: TextListener | None = None,
        on_thinking: TextListener | None = None,
    ) -> Completion:
        """Make one call, accounted by ``meter``, and return its completion.

        Args:
            messages: System and user messages, in order.
            meter: Reserves the call in the budget and keeps its record.
            options: Length, temperature, form and stop texts of the answer.
            on_text: Receives each piece of the answer, without thinking. The text starts over (``Delta.restarted``)
                when a call is retried, and at a ``</think>`` without ``<think>``. All pieces since then are the
                completion's text. An endpoint that does not stream gives one piece.
            on_thinking: Receives each piece of the thinking, which also starts over when reasoning turns out to be the
                answer.

        Raises:
            ModelCallError: The last attempt failed.
            ModelSetupError: The endpoint can serve no request: key, account, model or address are wrong.
            ModelRequestError: The endpoint refused this request for good.
            BudgetSpent: The tree may make no more calls; none was made.
        """
        ...


class ChatWrapper:
    """A chat model that makes its calls through another one and has that one's name."""

    def __init__(self, inner: ChatLLM) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        """Name of the inner model."""
        return self._inner.model

    @property
    def fields(self) -> str:
        """The inner model's settings in fingerprints; ``""`` for a model that its name identifies."""
        return str(getattr(self._inner, "fields", ""))

    @property
    def why_no_thinking(self) -> str:
        """The reason why the inner model's thinking cannot be switched; ``""`` where it may be."""
        return str(getattr(self._inner, "why_no_thinking", ""))

    @property
    def lacks(self) -> frozenset[str]:
        """Options of calls that the inner model does not follow."""
        return lacks_of(self._inner)

    @property
    def temperature(self) -> float:
        """Temperature of the inner model."""
        return temperature_of(self._inner)

    @property
    def thinking(self) -> bool | None:
        """Whether the inner model thinks; None as its endpoint does."""
        return thinking_of(self._inner)


def temperature_of(llm: ChatLLM) -> float:
    """Return the temperature of a model that has one of its own; 0 for any other."""
    return float(getattr(llm, "temperature", 0.0))


def lacks_of(llm: ChatLLM) -> frozenset[str]:
    """Return the options of calls that a model does not follow, by their names in ``CallOptions``."""
    return frozenset(getattr(llm, "lacks", ()))


def thinking_of(llm: ChatLLM) -> bool | None:
    """Return whether the calls of a model switch its thinking on or off; None without a switch."""
    thinking: bool | None = getattr(llm, "thinking", None)
    return thinking if isinstance(thinking, bool) else None


def model_fingerprint(llm: ChatLLM) -> dict[str, str]:
    """Return the name of a model and, of one of LangChain's, class and digest of its settings as ``model_fields``."""
    fields = str(getattr(llm, "fields", ""))
    return {"model": llm.model, **({"model_fields": fields} if fields else {})}


def tuning_fingerprint(llm: ChatLLM) -> dict[str, str]:
    """Return temperature and thinking of a model, as far as they are its own."""
    temperature, thinking = temperature_of(llm), thinking_of(llm)
    told = {} if thinking is None else {"thinking": "on" if thinking else "off"}
    return {**({"temperature": str(temperature)} if temperature else {}), **told}
