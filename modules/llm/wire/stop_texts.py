"""Stop texts on the way to a model: sent where the model takes them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from langchain_core.messages import AIMessage

from ...calls.completion import completion_of
from ...calls.reported_usage import NO_TOKENS, attach_usage
from .error_words import is_about_one_prompt
from .refusals import refused_by

_log = logging.getLogger(__name__)

_MOST_SENT = 4
"""Stop texts that OpenAI takes in one request; answers are cut at the others when they have come."""
_STATUSES = frozenset({400, 422})
"""HTTP statuses that may refuse the stop texts rather than the call."""


class NoAnswer(ValueError):
    """A reply to a request with stop texts holds no answer, so that the request is repeated without them."""

    def __init__(self, *, has_text: bool) -> None:
        """Create an error; ``has_text`` says whether the reply holds thinking, which a stop text may have ended."""
        super().__init__("its reply ends at a stop text before it answers")
        self.has_text = has_text


class StopTexts:
    """Sends stop texts to one model, until the model refuses them or ends its thinking at one."""

    def __init__(self, model: str, *, refusals: tuple[type[Exception], ...] = ()) -> None:
        """Send them to ``model``, a name for the log; errors of ``refusals`` without an HTTP status may refuse them."""
        self._model = model
        self._refusals = refusals
        self._are_sent = True

    async def message(
        self,
        send: Callable[[tuple[str, ...]], Awaitable[AIMessage]],
        stop: tuple[str, ...],
        *,
        repeats: NoAnswer | None = None,
    ) -> AIMessage:
        """Return the reply to one request, which may go beyond the stop texts.

        The request is repeated without stop texts where the model refuses it with them; the caller repeats it where
        its reply holds no answer: reasoning models refuse stop texts, or end at those that they think of. What works
        without them is sent without them from then on.

        Args:
            send: Sends the request with these stop texts, none for ``()``.
            stop: The stop texts of the call.
            repeats: The error of an earlier request of the call; it is sent without them.

        Raises:
            NoAnswer: The reply with stop texts holds no answer; its usage is noted (``attached_usage``).
        """
        if not stop or not self._are_sent:
            return await send(())
        if repeats is not None:
            second = await send(())
            if repeats.has_text:
                self._send_no_more("may end its thinking at a stop text")
            return second
        try:
            first = await send(stop[:_MOST_SENT])
        except Exception as error:
            if not self._may_refuse(error):
                raise
            second = await send(())
            self._send_no_more("refuses stop texts")
            return second
        if _has_answer(first):
            return first
        with attach_usage(first.usage_metadata or NO_TOKENS):
            raise NoAnswer(has_text=bool(first.text or first.additional_kwargs.get("reasoning")))

    def _send_no_more(self, why: str) -> None:
        if self._are_sent:
            _log.info("%s %s; further calls do not send them, and its answers are cut at them", self._model, why)
        self._are_sent = False

    def _may_refuse(self, error: Exception) -> bool:
        if refused_by(error) or is_about_one_prompt(error):  # the caller changes what is named
            return False
        statuses = (getattr(error, name, None) for name in ("status_code", "code"))  # Google's have a code
        status = next((each for each in statuses if isinstance(each, int)), None)
        return isinstance(error, self._refusals) if status is None else status in _STATUSES


def _has_answer(message: AIMessage) -> bool:
    """Return whether a reply has an answer, or was cut off before it had one."""
    visible = AIMessage(content=message.content, response_metadata=message.response_metadata)
    completion = completion_of(visible)
    return bool(completion.text) or completion.is_cut_off
