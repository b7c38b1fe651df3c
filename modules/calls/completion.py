"""The completion of a model call: answer, thinking and first-token alternatives, with a limit on its bytes."""

from __future__ import annotations

import asyncio
import math
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx2
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from ..background.closing import closing
from ..caveats.endings import BROKEN_OFF, FILTERED, LENGTH, usual_reason
from ..caveats.kinds import CaveatKind
from ..reading.thinking_forms import without_end_marks
from ..storage.texts import storable
from .growing_text import Delta
from .reported_usage import NO_TOKENS, attach_usage
from .thinking import ThinkingText, whole_text

BYTES_A_BYTE_WHOLE = 10
"""Bytes on the wire for a byte of text in a reply that is sent at once: escapes and log probabilities."""
BYTES_A_BYTE_STREAMED = 100
"""Bytes on the wire for a byte of text in a stream, where 300 bytes carry one token."""
_BYTE_ORDER_MARK = "\ufeff"
"""Not text where a reply begins with it."""
LONGEST_ERROR = 64_000
"""Bytes of an error's body that are read."""
TURN_BYTES = 16_384
"""Bytes after which the event loop gets a turn; a read of the HTTP client has as many at most."""


class ReplyTooLong(ValueError):
    """A reply is longer than the setting allows; a repeated call would fail too."""

    def __init__(self, max_bytes: int, *, end: str = ". To allow more: JUDGETREE_MAX_REPLY_BYTES") -> None:
        super().__init__(f"its reply is longer than {max_bytes:,} bytes{end}")


class PackedReply(ValueError):
    """A reply is packed, though an unpacked one was asked for; a repeated call would get the same."""

    def __init__(self, packing: str) -> None:
        super().__init__(
            f"its reply is packed ({packing:.40}), which the header Accept-Encoding: identity forbids. Switch the "
            "compression of the endpoint, or of a proxy before it, off"
        )


class CappedStream(httpx2.AsyncByteStream):
    """A response's bytes up to a limit, read in turns with everything else on the event loop."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, limit: int, max_bytes: int) -> None:
        """Yield at most ``limit`` bytes.

        Args:
            inner: The bytes.
            limit: Most bytes.
            max_bytes: What ``ReplyTooLong`` names, which is raised beyond the limit; 0 to end there without an error.
        """
        self._inner = inner
        self._limit = limit
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, unbroken = self._limit, 0
        async with closing(_without_mark(aiter(self._inner))) as chunks:
            async for chunk in chunks:
                yield chunk[:left]
                left -= len(chunk)
                if left < 0:
                    if self._max_bytes:
                        raise ReplyTooLong(self._max_bytes)
                    return
                # Bytes that are there already come without a wait: a flood of tiny events would hold the loop for
                # seconds.
                unbroken += len(chunk)
                if unbroken >= TURN_BYTES:
                    unbroken = 0
                    await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close the response."""
        await self._inner.aclose()


async def _without_mark(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield bytes without the byte order mark that they may begin with, which readers of events do not expect."""
    head: bytes | None = b""
    async with closing(chunks):
        async for chunk in chunks:
            if head is None:
                yield chunk
                continue
            head += chunk
            if len(head) < len(BOM_UTF8) and BOM_UTF8.startswith(head):
                continue
            yield head.removeprefix(BOM_UTF8)
            head = None
    if head:
        yield head


def cap_reply(response: httpx2.Response, *, limit: int, max_bytes: int) -> None:
    """Limit a response to ``limit`` bytes, as ``CappedStream`` does; nothing of a packed one is read.

    Raises:
        PackedReply: It is packed, and ``max_bytes`` is not 0.
    """
    packing = response.headers.pop("content-encoding", "identity")  # few packed bytes may unpack to many
    if packing.strip().lower() != "identity":
        if max_bytes:
            raise PackedReply(packing)
        limit = 0
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = CappedStream(response.stream, limit=limit, max_bytes=max_bytes)


async def cut_error_short(response: httpx2.Response) -> None:
    """End the body of an error response after ``LONGEST_ERROR`` bytes; a response hook of the HTTP client."""
    if response.is_error:
        cap_reply(response, limit=LONGEST_ERROR, max_bytes=0)


@dataclass(frozen=True, kw_only=True)
class TokenLogprob:
    """One alternative for a token, with its natural log probability."""

    token: str
    logprob: float


_CUT = frozenset({LENGTH, FILTERED, BROKEN_OFF})


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A model's reply, split into answer and thinking.

    >>> Completion(text="VG 68", thinking="", finish_reason="stop").text
    'VG 68'
    """

    text: str
    """The answer, without its thinking, stripped."""
    thinking: str = ""
    """Text in ``<think>`` or in a reasoning field, without tags, stripped; ``""`` if there is none."""
    finish_reason: str
    """"stop", "length" (cut off), "content_filter", "broken_off" or another reason given by the endpoint."""
    first_token: tuple[TokenLogprob, ...] = ()
    """Likeliest alternatives of the first token, requested by ``top_logprobs``; empty if the endpoint gives none."""
    refusal: str = ""
    """What a model that declined to answer gave as its reason; also ``text`` where it wrote nothing else."""
    is_from_thinking: bool = False
    """Whether the reply was thinking alone, out of which the answer was read."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the endpoint ended the reply before the model did, for its length, by a filter or a fault."""
        return usual_reason(self.finish_reason) in _CUT

    @property
    def written(self) -> str:
        """The answer as text to work with; ``""`` where the model declined or a filter cut the reply.

        Of a model that declined, ``text`` may be the reason.
        """
        return "" if self.refusal or self._is_filtered else self.text

    @property
    def caveats(self) -> tuple[CaveatKind, ...]:
        """What the reply itself shows to be worse than it looks, besides its length."""
        found: dict[CaveatKind, bool] = {
            "filtered": self._is_filtered,
            "declined": bool(self.refusal),
            "only_thinking": self.is_from_thinking,
        }
        return tuple(kind for kind, is_so in found.items() if is_so)

    @property
    def _is_filtered(self) -> bool:
        return usual_reason(self.finish_reason) == FILTERED

    def to_document(self) -> dict[str, object]:
        """Return the completion as plain data for JSON."""
        return {**vars(self), "first_token": [vars(each) for each in self.first_token]}  # asdict takes 20 times as long

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Return the completion that ``to_document`` was called on."""
        first_token = tuple(TokenLogprob(**token) for token in document["first_token"])
        return cls(**{**document, "first_token": first_token})


def completion_of(message: AIMessage, stop: tuple[str, ...] = (), *, is_json: bool = False) -> Completion:
    """Return the completion that a message holds; its answer ends before the first text of ``stop``.

    Where JSON was asked for, tags of thinking inside its object are text.

    A server's reasoning parser may move the whole answer into the reasoning (``additional_kwargs["reasoning"]``). Where
    a message without text ended by itself, the reasoning is therefore the answer; cut-off reasoning stays thinking. So
    is an answer that begins with a tag of thinking, other than ``<think>``, which nothing closes: it is about it. A
    refusal (``additional_kwargs["refusal"]``) is the answer of a message that has no other text.
    """
    finish_reason = usual_reason(str(message.response_metadata.get("finish_reason") or ""))
    refusal = storable(_refusal_in(message)).strip()
    sent, reasoned = (storable(text).removeprefix(_BYTE_ORDER_MARK) for text in _sent_texts(message))
    content, reasoning = (whole_text(text, stop, is_json=is_json) for text in (sent, reasoned))
    said, thinking = content, reasoning.everything or content.thinking
    is_ended = finish_reason not in _CUT and not content.is_stopped and not refusal
    is_from_thinking = bool(is_ended and reasoning.answer and not content.answer)
    if is_ended and reasoning.everything and not content.answer:
        said, thinking = reasoning, reasoning.thinking
    answer = said.answer
    if is_ended and not answer and said.may_be_about_tags:
        answer, thinking = (reasoned if said is reasoning else sent).strip(), ""
    return Completion(
        text=without_end_marks(answer) or refusal,
        thinking=thinking,
        finish_reason="stop" if said.is_stopped else finish_reason,
        first_token=_first_token(message.response_metadata.get("logprobs")),
        refusal=refusal,
        is_from_thinking=is_from_thinking,
    )


class _Halves:
    """Joins the halves of surrogate pairs that JSON writes into two pieces of a stream."""

    def __init__(self) -> None:
        self.left = ""
        """The half that the newest piece ended with; ``""`` without."""

    def joined(self, text: str) -> str:
        """Return the next piece, with the half that the one before ended with and without its own."""
        if not text or (text.isascii() and not self.left):
            return text
        text = self.left + text
        self.left = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        whole = text[: len(text) - len(self.left)]
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class StreamedMessage:
    """A message built from the pieces of its stream, in linear time, with the text that each piece adds.

    Reasoning counts as thinking until ``completion_of`` is given the whole message.
    """

    def __init__(self, max_bytes: int, stop: tuple[str, ...] = ()) -> None:
        """Limit content and reasoning together to ``max_bytes`` of UTF-8; the answer ends before a text of ``stop``."""
        self._max_bytes = self._bytes_left = max_bytes
        self._contents: list[str] = []
        self._reasonings: list[str] = []
        self._refusals: list[str] = []
        self._metadata: dict[str, object] = {}
        self._usage: UsageMetadata | None = None
        self._content = ThinkingText(stop)
        self._reasoning = ThinkingText()
        self._has_reasoned = False
        self._content_halves, self._reasoning_halves = _Halves(), _Halves()

    def feed(self, piece: AIMessage) -> None:
        """Take the next piece.

        Raises:
            ReplyTooLong: All pieces together have too many bytes.
        """
        content, reasoning = _sent_texts(piece)
        refusal = _refusal_in(piece)
        self._refusals.append(refusal)
        self._bytes_left -= _size(content) + _size(reasoning) + _size(refusal)
        if self._bytes_left < 0:
            raise ReplyTooLong(self._max_bytes)
        for sent, halves, texts, growing in (
            (content, self._content_halves, self._contents, self._content),
            (reasoning, self._reasoning_halves, self._reasonings, self._reasoning),
        ):
            if text := halves.joined(sent):
                text = text if texts else text.removeprefix(_BYTE_ORDER_MARK)
                texts.append(text)
                growing.feed(storable(text))
        known = {key: value for key, value in piece.response_metadata.items() if value}
        if "logprobs" in self._metadata:  # the first token's are kept
            known.pop("logprobs", None)
        self._metadata |= known
        self._usage = piece.usage_metadata or self._usage

    def new_text(self) -> Delta:
        """Return what the answer has gained since the last call."""
        return self._content.new_answer()

    def new_thinking(self) -> Delta:
        """Return what the thinking has gained since the last call; it restarts where reasoning follows thinking."""
        reasoned = self._reasoning.new_everything()
        if not reasoned.text:
            return Delta("") if self._has_reasoned else self._content.new_thinking()
        is_first, self._has_reasoned = not self._has_reasoned, True
        return Delta(reasoned.text, restarted=is_first)

    def whole_message(self) -> AIMessage:
        """Return the message of a stream that has ended.

        Raises:
            ValueError: It broke off; the usage that it reported is attached.
        """
        message = self.message()
        if not message.response_metadata.get("finish_reason"):
            with attach_usage(message.usage_metadata or NO_TOKENS):
                raise ValueError("the stream broke off before the answer's end")
        return message

    def message(self) -> AIMessage:
        """Return the message; its metadata has no ``finish_reason`` where the stream broke off."""
        besides = {"reasoning": "".join(self._reasonings), "refusal": "".join(self._refusals)}
        return AIMessage(
            content="".join(self._contents) + self._content_halves.left,
            additional_kwargs={name: text for name, text in besides.items() if text},
            response_metadata=self._metadata,
            usage_metadata=self._usage,
        )


def check_length(message: AIMessage, max_bytes: int) -> None:
    """Check the length of a message that was not streamed.

    Raises:
        ReplyTooLong: Its content and reasoning have more than ``max_bytes`` bytes.
    """
    if sum(map(_size, (*_sent_texts(message), _refusal_in(message)))) > max_bytes:
        raise ReplyTooLong(max_bytes)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _sent_texts(message: AIMessage) -> tuple[str, str]:
    return str(message.text), str(message.additional_kwargs.get("reasoning", ""))


def _refusal_in(message: AIMessage) -> str:
    return str(message.additional_kwargs.get("refusal") or "")


def _first_token(logprobs: object) -> tuple[TokenLogprob, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not content:
        return ()
    alternatives = content[0].get("top_logprobs") or [content[0]]
    read = [TokenLogprob(token=str(item["token"]), logprob=min(float(item["logprob"]), 0.0)) for item in alternatives]
    return tuple(each for each in read if not math.isnan(each.logprob))
