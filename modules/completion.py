"""What a model answered: the text apart from the thinking, and the likeliest first tokens."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.messages import AIMessage

_OPENING, _CLOSING = "<think>", "</think>"


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
    """What stood in ``<think>`` or came in a reasoning field; ``""`` if nothing did."""
    finish_reason: str
    """"stop", "length" (cut off) or what else the endpoint said."""
    first_token: tuple[TokenLogprob, ...] = ()
    """Likeliest alternatives of the first token, as asked for by ``top_logprobs``; empty if the endpoint gives none."""


def completion_of(message: AIMessage) -> Completion:
    """The completion that a message holds.

    A reasoning parser may swallow the whole answer: where a message that ended by itself has no text, its reasoning
    (``additional_kwargs["reasoning"]``) is the answer. Where it was cut off, it had not come to one.
    """
    finish_reason = str(message.response_metadata.get("finish_reason") or "")
    text, thinking = split_thinking(storable(str(message.text)))
    reasoning = storable(str(message.additional_kwargs.get("reasoning", "")))
    if reasoning and not text and finish_reason != "length":
        text, thinking = split_thinking(reasoning)
    elif reasoning:
        thinking = reasoning
    return Completion(
        text=text,
        thinking=thinking,
        finish_reason=finish_reason,
        first_token=_first_token(message.response_metadata.get("logprobs")),
    )


def split_thinking(text: str) -> tuple[str, str]:
    """(answer, thinking) of a text: what follows the last ``</think>``, and what stands before it.

    Models may leave out the opening tag; a text that opens one and never closes it is all thinking.

    >>> split_thinking("<think>six by nine</think> 42")
    ('42', 'six by nine')
    """
    before, tag, after = text.rpartition(_CLOSING)
    if tag:
        return after.strip(), before.replace(_OPENING, "").strip()
    answer, tag, unclosed = text.partition(_OPENING)
    return answer.strip(), unclosed.strip()


def growing_answer(text: str) -> str:
    """The answer in a text that is still being written; the beginning of a tag at its end is held back.

    >>> growing_answer("<think>six by nine</think> 42 is <thi")
    '42 is'
    """
    answer, _ = split_thinking(text)
    for tag in (_OPENING, _CLOSING):
        for length in range(len(tag) - 1, 0, -1):
            if answer.endswith(tag[:length]):
                return answer[:-length].rstrip()
    return answer


def storable(text: str) -> str:
    """The text without what checkpoint stores refuse: NUL characters, and halves of surrogate pairs, as ``?``."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _first_token(logprobs: object) -> tuple[TokenLogprob, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not content:
        return ()
    alternatives = content[0].get("top_logprobs") or [content[0]]
    return tuple(TokenLogprob(token=str(item["token"]), logprob=float(item["logprob"])) for item in alternatives)
