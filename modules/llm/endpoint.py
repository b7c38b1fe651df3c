"""Chat models behind OpenAI-compatible endpoints: retries, streaming, and the usage of each call."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import httpx
import httpx2
import openai
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ..addresses import LOCAL_ENDPOINT, OPENAI_BASE_URL, Address, endpoint_name
from ..calls.completion import (
    Completion,
    PackedReply,
    ReplyTooLong,
    completion_of,
)
from ..calls.growing_text import Listeners
from ..calls.journaled import JournaledLLM, expected_usage
from ..calls.messages import CallOptions, Message, texts_of
from ..calls.reported_usage import NO_TOKENS, attach_usage, attached_usage, cached_tokens_in
from ..calls.usage import CallMeter
from ..caveats.endings import BROKEN_OFF, FILTERED, LENGTH, BrokenOff, Withheld
from ..caveats.prompt_cuts import least_tokens
from ..errors import BudgetSpent, ModelCallError, ModelRequestError
from ..network.long_waits import LONG_WAITS
from .attempts import (
    MALFORMED_REPLY,
    Attempts,
    EndpointFailure,
    PageReply,
    endpoint_failure,
    may_be_billed,
    redacted_line,
    retry_after_s,
    spread_s,
)
from .call_gate import CallGate
from .openai_client import ReasoningChatOpenAI
from .rate_limit import RateLimit, estimated_tokens
from .request_params import LEAVE_OUT_THINKING, must_stream, request_params, with_hints
from .sending import CallRequest, Sender
from .wire.error_words import is_reported
from .wire.refusals import LOGPROBS, refused_by
from .wire.stop_texts import NoAnswer

logger = logging.getLogger(__name__)


_CLIENT_ERRORS = (ModelError, openai.OpenAIError, httpx.HTTPError, httpx2.HTTPError, TimeoutError, PageReply)

_WITHOUT_LOGPROBS = "use a judge that needs no log probabilities (logprobs), such as generated"


_TOO_MANY_REQUESTS = 429
_MOST_READ = 4_000
_MOST_QUOTED = 80
"""Characters of a reply that is no JSON which an error shows."""


class _CutOff(ValueError):
    """Every token went into thinking; a repeated call would fail too."""


@dataclass(kw_only=True)
class _Tries:
    """The attempts of one call, and what its next record is about."""

    request: CallRequest
    messages: Sequence[Message]
    options: CallOptions
    meter: CallMeter
    attempts: Attempts
    started: float = 0.0
    """Begin of the first attempt since the last record; 0 before it."""


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
        self._where = f"Model {self.model!r} at {self.base_url}"
        self._sender = Sender(chat, self._where)

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
        tries = _Tries(
            request=self._request_of(messages, options, listeners),
            messages=messages,
            options=options,
            meter=meter,
            attempts=Attempts(self._attempts, backoff_s=self._backoff_s),
        )
        self._check_logprobs(tries)
        tokens = estimated_tokens(messages, options.max_tokens) if self._rates.counts_tokens else 0
        least = least_tokens(texts_of(messages)) if tokens else 0
        while True:
            try:
                async with self._rates.admitted(self._gate, tokens) as correct:
                    tries.started = tries.started or time.perf_counter()
                    await meter.about_to_send()
                    async with asyncio.timeout(self._chat.call_timeout_s):
                        message = await self._sender.reply(tries.request, listeners)
                    if message.usage_metadata is not None:
                        correct(max(message.usage_metadata["total_tokens"], least))
                completion = _read(message, tries.request.stop, options, listeners)
                break
            except (*_CLIENT_ERRORS, *MALFORMED_REPLY) as error:
                await self._prepare_another(error, tries)
                listeners.start_over()
        self._chat.adaptations.answered(self._where, tries.request.refused)
        self._chat.adaptations.note_name(self._where, self.model, message.response_metadata.get("model_name"))
        is_cut_off = completion.is_cut_off and options.top_logprobs is None  # its one word is complete
        self._record(tries, message.usage_metadata, number=tries.attempts.made, cut_off=is_cut_off)
        return completion

    def _request_of(self, messages: Sequence[Message], options: CallOptions, listeners: Listeners) -> CallRequest:
        return CallRequest(
            prompt=list(messages),
            params=request_params(options, self.base_url),
            stop=(*self._chat.own_stops, *options.stop),
            is_streamed=listeners.present or must_stream(options, self.base_url),
        )

    async def _prepare_another(self, error: Exception, tries: _Tries) -> None:
        """Book a failed attempt that may be billed, then wait for the next one, and reserve it.

        A request of which the endpoint refuses a part by name is repeated at once, without that part.

        Raises:
            ModelCallError: There is none: all have failed, the error is final, or the limits allow no further one.
        """
        found = with_hints(endpoint_failure(error), tries.options, is_chat=not self._chat.style)
        found, number = self._named(error, found, tries), tries.attempts.made
        wait_s = self._wait_s(error, found, tries.attempts)
        failure = self._failure(error, found, tries.attempts)
        if is_billed := may_be_billed(error):
            used, is_estimated = expected_usage(attached_usage(error), tries.messages, tries.options)
            self._record(tries, used, number=number, error=str(failure))
            if found.is_filtered:
                tries.meter.records[-1]["caveats"] = ["filtered"]
            await tries.meter.book_failed(estimated=is_estimated)
            tries.started = 0.0
        else:
            tries.meter.attempt_refused()
        if wait_s is None:
            if not tries.meter.records:
                self._record(tries, None, number=number, error=str(failure))
            raise failure from error
        if isinstance(error, NoAnswer):
            tries.request = replace(tries.request, repeats=error)
        elif not found.is_adapted:
            await self._back_off(error, failure, wait_s)
        if is_billed:
            try:
                await tries.meter.admit_again()
            except BudgetSpent as spent:
                refused = f"{failure}; no further attempt was made: {spent}"
                raise found.error_class(refused, status=found.status) from error

    def _named(self, error: Exception, found: EndpointFailure, tries: _Tries) -> EndpointFailure:
        """Note what an error refuses by name; log probabilities have no substitute here, whatever the status says."""
        refused, known = refused_by(error), tries.request.refused
        if LOGPROBS in refused:
            self._chat.adaptations.answered(self._where, {LOGPROBS: refused[LOGPROBS]})
            return replace(found, error_class=ModelRequestError, is_final=True, remedy=_WITHOUT_LOGPROBS)
        new = {part: to for part, to in refused.items() if part not in known}
        tries.request = replace(tries.request, refused={**known, **new})
        return replace(found, is_adapted=bool(new))

    def _check_logprobs(self, tries: _Tries) -> None:
        """Refuse a call for log probabilities at a model that has refused them before.

        Raises:
            ModelRequestError: It is such a call.
        """
        if tries.options.top_logprobs is not None and self._chat.adaptations.changes(LOGPROBS):
            refused = f"{self._where} has refused log probabilities before. To do: {_WITHOUT_LOGPROBS}."
            tries.started = time.perf_counter()
            self._record(tries, None, number=1, error=refused)
            raise ModelRequestError(refused)

    def _wait_s(self, error: Exception, found: EndpointFailure, attempts: Attempts) -> float | None:
        """Return the seconds before the next attempt, which is counted; None if there is none."""
        if isinstance(error, NoAnswer):  # the same attempt without stop texts
            return 0.0
        if found.is_adapted:
            attempts.repeats()
            return 0.0
        would_repeat = isinstance(error, _CutOff | Withheld | PackedReply | ReplyTooLong)
        # Nothing lies between a model of this process and its caller that could have been slow but the model itself.
        would_repeat |= self._endpoint == LOCAL_ENDPOINT and isinstance(error, TimeoutError | openai.APITimeoutError)
        return attempts.wait_s(replace(found, is_final=found.is_final or would_repeat), asked_s=retry_after_s(error))

    async def _back_off(self, error: Exception, failure: ModelCallError, wait_s: float) -> None:
        logger.info("%s; the next attempt follows in %.1f s", failure, wait_s)
        if failure.status == _TOO_MANY_REQUESTS:
            self._rates.tell_of_wait(f"Model {self.model!r} at {self.base_url}", wait_s)
        asked_s = retry_after_s(error)
        # A wait that the endpoint asks of one call holds for all calls.
        with self._rates.paused(for_s=wait_s, spread_s=spread_s(asked_s)) if asked_s else nullcontext():
            async with LONG_WAITS.one() if failure.status == _TOO_MANY_REQUESTS or asked_s else nullcontext():
                await self._sleep(wait_s)

    def _record(
        self, tries: _Tries, used: UsageMetadata | None, *, number: int, cut_off: bool = False, error: str = ""
    ) -> None:
        tries.meter.record(
            kind="chat",
            model=self.model,
            started=tries.started,
            prompt_tokens=used["input_tokens"] if used else 0,
            completion_tokens=used["output_tokens"] if used else 0,
            cached_prompt_tokens=cached_tokens_in(used),
            attempts=number,
            cut_off=cut_off,
            error=error[:300],
        )

    def _failure(self, error: Exception, found: EndpointFailure, attempts: Attempts) -> ModelCallError:
        said = redacted_line(error, self._secrets)
        if isinstance(error, json.JSONDecodeError):
            begin = redacted_line(ValueError(error.doc[:_MOST_READ]), self._secrets)[:_MOST_QUOTED]  # no key is halved
            said = f"its reply is no JSON ({said}), and begins {begin!r}" if error.doc.strip() else "its reply is empty"
        elif isinstance(error, MALFORMED_REPLY) and not isinstance(error, ValueError):
            said = f"its reply is no chat completion ({type(error).__name__}: {said})"
        if found.is_final and found.status is not None:
            what = f"refused the call (HTTP {found.status}): {said}"
        elif found.is_final and is_reported(error):
            what = f"refused the call in its reply: {said}"
        elif isinstance(error, NoAnswer):
            what = f"failed: {said}"
        elif found.what and not found.is_reached:
            what = f"cannot be reached: {found.what} ({attempts.in_words})"
        elif found.what:
            what = f"failed in {attempts.in_words}: {found.what}"
        elif isinstance(error, TimeoutError | openai.APITimeoutError):
            allowed = f"{self._chat.call_timeout_s:g} s. To allow more: JUDGETREE_TIMEOUT_S"
            what = f"failed in {attempts.in_words}: no whole reply came within {allowed}"
        else:
            what = f"failed in {attempts.in_words}{found.in_status(said)}: {said}"
        return found.error_class(f"{self._where} {what}{found.to_do}", status=found.status)


def _secrets_of(chat: ChatOpenAI) -> tuple[str, ...]:
    key = chat.openai_api_key.get_secret_value() if isinstance(chat.openai_api_key, SecretStr) else ""
    return key, *Address(chat.openai_api_base or "").secrets()


def _read(message: AIMessage, stop: tuple[str, ...], options: CallOptions, listeners: Listeners) -> Completion:
    """Return the completion of a message, and let the listeners hear it whole.

    Raises:
        ValueError: It has no answer, or was broken off.
    """
    with attach_usage(message.usage_metadata or NO_TOKENS):
        completion = completion_of(message, stop, is_json=options.json_format is not None)
        if completion.finish_reason == BROKEN_OFF:
            raise BrokenOff(message.response_metadata.get("finish_reason"))
        listeners.settle(text=completion.text, thinking=completion.thinking)
        if not completion.text and options.top_logprobs is None:
            _check_has_text(completion_of(message))  # an answer that begins with a stop text is empty
    return completion


def _check_has_text(completion: Completion) -> None:
    if completion.text:
        return
    if completion.finish_reason == LENGTH:
        raise _CutOff("it used up its tokens before it answered. Allow more (max_tokens), or switch its thinking off")
    if completion.finish_reason == FILTERED:
        raise Withheld
    raise ValueError("the answer is empty")
