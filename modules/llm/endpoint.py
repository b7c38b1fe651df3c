"""Chat models behind OpenAI-compatible endpoints: retries, streaming, and the usage of each call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import httpx
import httpx2
import openai
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ..addresses import OPENAI_BASE_URL, Address, endpoint_name
from ..calls.completion import (
    Completion,
    PackedReply,
    ReplyTooLong,
    StreamedMessage,
    completion_of,
    refuse_too_long,
)
from ..calls.growing_text import Listeners
from ..calls.journaled import JournaledLLM
from ..calls.messages import CallOptions, Message
from ..calls.reported_usage import telling, usage_told
from ..calls.usage import CallMeter
from ..errors import ModelCallError
from .attempts import Attempts, EndpointFailure, endpoint_failure, redacted_line, retry_after_s, spread_s
from .call_gate import CallGate
from .openai_client import ReasoningChatOpenAI, starts_over, was_not_streamed
from .rate_limit import RateLimit, estimated_tokens
from .request_params import LEAVE_OUT_THINKING, must_stream, request_params, with_hints
from .stop_texts import StopTexts

logger = logging.getLogger(__name__)


_CLIENT_ERRORS = (ModelError, openai.OpenAIError, httpx.HTTPError, httpx2.HTTPError, TimeoutError)
_MALFORMED_REPLY = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""Errors of langchain-openai on a reply that is not a chat completion."""

_NO_STREAM_STATUS = frozenset({400, 404, 405, 422, 501})
"""HTTP statuses that may refuse the stream rather than the call."""


class _CutOff(ValueError):
    """Every token went into thinking; a repeated call would fail too."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What all attempts of one call send."""

    prompt: list[Message]
    params: dict[str, Any]
    stop: tuple[str, ...]
    is_streamed: bool


class EndpointLLM(JournaledLLM):
    """A chat model behind an OpenAI-compatible endpoint, with judgetree's retries around every call.

    ``complete`` is as ``ChatLLM`` says, and journaled. An empty answer counts as a failed attempt, unless
    ``top_logprobs`` are requested or it begins with a stop text.
    """

    def __init__(
        self,
        chat: ReasoningChatOpenAI,
        *,
        gate: CallGate,
        endpoint: str = "",
        rates: RateLimit | None = None,
        retries: int = 3,
        backoff_s: float = 0.5,
        secrets: Sequence[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Wrap a client.

        Args:
            chat: The client, made with ``max_retries=0``.
            gate: Cap on simultaneous calls; a call that waits for its next attempt, or for its rate, does not count.
            endpoint: Its name in caches; ``""`` for host, port and path of its address.
            rates: The endpoint's limits a minute, shared by all its callers; None for none.
            retries: Further attempts after a failed one.
            backoff_s: Mean seconds before the second attempt; doubled with each further one. Retry-After overrides it.
            secrets: Keys and passwords, which are starred out of error messages.
            sleep: Waits the given seconds.
        """
        self._chat = chat
        self._endpoint = endpoint
        self._gate = gate
        self._rates = rates or RateLimit()
        self._attempts = retries + 1
        self._backoff_s = backoff_s
        self._secrets = (*secrets, *_secrets_of(chat))
        self._sleep = sleep
        self._streams = True  # until the endpoint refuses a stream
        self._stop_texts = StopTexts(f"Model {self.model!r} at {self.base_url}")

    @property
    def model(self) -> str:
        """Name of the model at its endpoint."""
        return str(self._chat.model_name)

    @property
    def base_url(self) -> str:
        """Address of the endpoint, without user and password."""
        return Address(self._chat.openai_api_base or OPENAI_BASE_URL)

    @property
    def endpoint(self) -> str:
        """Name of the endpoint in caches: host, port and path, or a name of its own, without user and key."""
        name = self._endpoint or endpoint_name(self.base_url)
        return f"{name} {self._chat.style}" if self._chat.style else name

    @property
    def fields(self) -> str:
        """How the model is asked, in fingerprints; ``""`` for a chat."""
        return self._chat.style

    @property
    def why_no_thinking(self) -> str:
        """The reason why thinking cannot be switched; ``""`` where it may be."""
        return (
            f"The model {self.model!r} completes texts, so there is no thinking to switch. {LEAVE_OUT_THINKING}"
            if self._chat.style
            else ""
        )

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        base_url = self.base_url
        request = _Request(
            prompt=list(messages),
            params=request_params(options, base_url),
            stop=(*self._chat.own_stops, *options.stop),
            is_streamed=listeners.present or must_stream(options, base_url),
        )
        tokens = estimated_tokens(messages, options.max_tokens) if self._rates.counts_tokens else 0
        started, used = 0.0, None
        attempts = Attempts(self._attempts, backoff_s=self._backoff_s)
        while True:
            try:
                async with self._rates.admitted(self._gate, tokens) as correct:
                    started = started or time.perf_counter()
                    await meter.about_to_send()
                    async with asyncio.timeout(self._chat.call_timeout_s):
                        message = await self._reply(request, listeners)
                    if message.usage_metadata is not None:
                        correct(message.usage_metadata["total_tokens"])
                used = add_usage(used, message.usage_metadata)
                completion = completion_of(message, request.stop, is_json=options.json_format is not None)
                listeners.settle(text=completion.text, thinking=completion.thinking)
                if not completion.text and options.top_logprobs is None:
                    _refuse_empty(completion_of(message))  # an answer that begins with a stop text is empty
                break
            except (*_CLIENT_ERRORS, *_MALFORMED_REPLY) as error:
                used = add_usage(used, usage_told(error))
                failure = await self._back_off(error, attempts, options)
                if failure is not None:
                    self._record(meter, started, attempts.made, used, error=str(failure))
                    raise failure from error
                listeners.start_over()
        is_cut_off = completion.is_cut_off and options.top_logprobs is None  # its one word is complete
        self._record(meter, started, attempts.made, used, cut_off=is_cut_off)
        return completion

    async def _back_off(self, error: Exception, attempts: Attempts, options: CallOptions) -> ModelCallError | None:
        """Wait before the next attempt; return the error to raise if there is none."""
        found = with_hints(endpoint_failure(error), options, is_chat=not self._chat.style)
        asked_s = retry_after_s(error)
        would_repeat = isinstance(error, _CutOff | PackedReply | ReplyTooLong)
        wait_s = attempts.wait_s(replace(found, is_final=found.is_final or would_repeat), asked_s=asked_s)
        failure = self._failure(error, found, attempts)
        if wait_s is None:
            return failure
        logger.info("%s; the next attempt follows in %.1f s", failure, wait_s)
        # A wait that the endpoint asks of one call holds for all calls.
        with self._rates.paused(for_s=wait_s, spread_s=spread_s(asked_s)) if asked_s else nullcontext():
            await self._sleep(wait_s)
        return None

    def _record(
        self,
        meter: CallMeter,
        started: float,
        attempts: int,
        used: UsageMetadata | None,
        *,
        cut_off: bool = False,
        error: str = "",
    ) -> None:
        meter.record(
            kind="chat",
            model=self.model,
            started=started,
            prompt_tokens=used["input_tokens"] if used else 0,
            completion_tokens=used["output_tokens"] if used else 0,
            attempts=attempts,
            cut_off=cut_off,
            error=error[:300],
        )

    async def _reply(self, request: _Request, listeners: Listeners) -> AIMessage:
        async def send(stop: tuple[str, ...]) -> AIMessage:
            return await self._send(
                request, {**request.params, "stop": list(stop)} if stop else request.params, listeners
            )

        return await self._stop_texts.message(send, request.stop, listeners)

    async def _send(self, request: _Request, params: dict[str, Any], listeners: Listeners) -> AIMessage:
        message: AIMessage
        streams = request.is_streamed and self._streams
        if streams:
            try:
                message = await self._stream(request, params, listeners)
            except openai.APIStatusError as error:
                if error.status_code not in _NO_STREAM_STATUS:
                    raise
            else:
                if was_not_streamed(message):
                    self._stop_streaming()
                return message
        message = await self._chat.ainvoke(request.prompt, **params)
        if streams:  # the stream was refused and the call was not
            self._stop_streaming()
        with telling(message.usage_metadata):
            refuse_too_long(message, self._chat.max_reply_bytes)
        return message

    async def _stream(self, request: _Request, params: dict[str, Any], listeners: Listeners) -> AIMessage:
        streamed, is_whole = StreamedMessage(self._chat.max_reply_bytes, request.stop), False
        async for piece in self._chat.astream(request.prompt, stream_usage=True, **params):
            if starts_over(piece):
                listeners.start_over()
                streamed = StreamedMessage(self._chat.max_reply_bytes, request.stop)
            with telling(piece.usage_metadata):
                streamed.feed(piece)
            is_whole = is_whole or was_not_streamed(piece)
            if not is_whole:
                listeners.add(text=streamed.new_text(), thinking=streamed.new_thinking())
        message = streamed.message()
        if not message.response_metadata.get("finish_reason"):
            with telling(message.usage_metadata):
                raise ValueError("the stream broke off before the answer's end")
        return message

    def _stop_streaming(self) -> None:
        if self._streams:
            logger.info("Model %r at %s does not stream; further calls do not ask for it", self.model, self.base_url)
        self._streams = False

    def _failure(self, error: Exception, found: EndpointFailure, attempts: Attempts) -> ModelCallError:
        where = f"Model {self.model!r} at {self.base_url}"
        said = redacted_line(error, self._secrets)
        if isinstance(error, _MALFORMED_REPLY) and not isinstance(error, ValueError):
            said = f"its reply is no chat completion ({type(error).__name__}: {said})"
        if found.is_final and found.status is not None:
            what = f"refused the call (HTTP {found.status}): {said}"
        elif found.what:
            what = f"cannot be reached: {found.what} ({attempts.in_words})"
        elif isinstance(error, TimeoutError | openai.APITimeoutError):
            allowed = f"{self._chat.call_timeout_s:g} s. To allow more: JUDGETREE_TIMEOUT_S"
            what = f"failed in {attempts.in_words}: no whole reply came within {allowed}"
        else:
            what = f"failed in {attempts.in_words}: {said}"
        return found.error_class(f"{where} {what}{found.to_do}", status=found.status)


def _secrets_of(chat: ChatOpenAI) -> tuple[str, ...]:
    key = chat.openai_api_key.get_secret_value() if isinstance(chat.openai_api_key, SecretStr) else ""
    return key, *Address(chat.openai_api_base or "").secrets()


def _refuse_empty(completion: Completion) -> None:
    if completion.text:
        return
    if completion.finish_reason == "length":
        raise _CutOff("it used up its tokens before it answered. Allow more (max_tokens), or switch its thinking off")
    raise ValueError("the answer is empty")
