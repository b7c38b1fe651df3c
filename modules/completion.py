"""What a model answered: the text apart from the thinking, whole and while it grows, and the likeliest first tokens."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.messages import AIMessage

from .thinking import ThinkingText, whole_text


@dataclass(frozen=True, kw_only=True)
class TokenLogprob:
    """One alternative for a token, with its natural log probability."""

    token: str
    logprob: float


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What a model answered."""

    text: str
    """The answer, without its thinking, stripped."""
    thinking: str
    """What stood in ``<think>`` or came in a reasoning field, without its tags, stripped; ``""`` if nothing did."""
    finish_reason: str
    """"stop", "length" (cut off) or what else the endpoint said."""
    first_token: tuple[TokenLogprob, ...] = ()
    """Likeliest alternatives of the first token, as asked for by ``top_logprobs``; empty if the endpoint gives none."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the endpoint ended the reply before the model did, for its length or by a filter."""
        return self.finish_reason in ("length", "content_filter")


def completion_of(message: AIMessage) -> Completion:
    """The completion that a message holds.

    A reasoning parser may swallow the whole answer: where a message that ended by itself has no text, its reasoning
    (``additional_kwargs["reasoning"]``) is the answer. Where it was cut off, it had not come to one.
    """
    finish_reason = str(message.response_metadata.get("finish_reason") or "")
    content, reasoning = whole_text(_content(message)), whole_text(_reasoning(message))
    if reasoning.everything and not content.answer and finish_reason != "length":
        text, thinking = reasoning.answer, reasoning.thinking
    else:
        text, thinking = content.answer, reasoning.everything or content.thinking
    return Completion(
        text=text,
        thinking=thinking,
        finish_reason=finish_reason,
        first_token=_first_token(message.response_metadata.get("logprobs")),
    )


class GrowingCompletion:
    """What is known of a completion while its message is being streamed; ``completion_of`` the whole has the last word.

    Reasoning counts as thinking until then.
    """

    def __init__(self) -> None:
        self._content = ThinkingText()
        self._reasoning = ThinkingText()

    def feed(self, piece: AIMessage) -> None:
        """Take the next piece of the message."""
        self._content.feed(_content(piece))
        self._reasoning.feed(_reasoning(piece))

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._content.answer

    @property
    def thinking(self) -> str:
        """The thinking so far."""
        return self._reasoning.everything or self._content.thinking


def storable(text: str) -> str:
    """The text without what checkpoint stores refuse: NUL characters, and halves of surrogate pairs, as ``?``."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _content(message: AIMessage) -> str:
    return storable(str(message.text))


def _reasoning(message: AIMessage) -> str:
    return storable(str(message.additional_kwargs.get("reasoning", "")))


def _first_token(logprobs: object) -> tuple[TokenLogprob, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not content:
        return ()
    alternatives = content[0].get("top_logprobs") or [content[0]]
    return tuple(TokenLogprob(token=str(item["token"]), logprob=float(item["logprob"])) for item in alternatives)
