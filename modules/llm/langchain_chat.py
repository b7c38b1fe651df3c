"""Chat models of LangChain as models of judges and readers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from ..background.closing import closing
from ..calls.completion import Completion, StreamedMessage, check_length, completion_of
from ..calls.growing_text import Listeners
from ..calls.journaled import JournaledLLM, expected_usage
from ..calls.messages import CallOptions, Message
from ..calls.reported_usage import NO_TOKENS, attach_usage, attached_usage, cached_tokens_in, possible_usage
from ..calls.usage import CallMeter
from ..caveats.endings import BROKEN_OFF, FILTERED, BrokenOff, Withheld
from ..errors import JudgetreeError, ModelCallError, NoFailure, SettingsError
from ..parts import digest_of_fields
from .attempts import endpoint_failure, may_be_billed, redacted_line
from .call_gate import CallGate
from .contract import ChatLLM, model_fingerprint
from .langchain_text import TextAsChat
from .one_prompt import TURN_STOPS
from .request_params import LEAVE_OUT_THINKING
from .wire.stop_texts import NoAnswer, StopTexts

LangChainModel = BaseChatModel | BaseLLM
"""A model of LangChain, for chats or texts."""
_CALLS_AT_ONCE = 8
_MAX_REPLY_BYTES = 200_000
_ENDINGS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Names of the reason for a reply's end: at OpenAI, Anthropic, Bedrock and Ollama."""
_UNSUPPORTED = (ValueError, TypeError, NotImplementedError)
"""Errors of models that take no stop texts."""


@dataclass
class _Request:
    """What one call sends."""

    messages: list[Message]
    options: CallOptions
    params: dict[str, Any]
    stop: tuple[str, ...]
    repeats: NoAnswer | None = None
    """The failure of the request with stop texts that is repeated without them."""
    started: float = 0.0


class LangChainChat(JournaledLLM):
    """A model of LangChain, for chats or texts, which keeps its own temperature, retries and time-outs.

    Its calls are journaled, metered and counted like any other, each as one attempt of ours; tokens that it does not
    report are estimated. Of a call's options it gets ``stop``, and ``max_tokens`` and ``top_logprobs`` where it has
    fields of these names. JSON is asked for in the prompt alone. An empty answer is an error, unless ``top_logprobs``
    are requested; options that say whether to think are a ``SettingsError``.
    """

    def __init__(self, chat: LangChainModel, *, version: str = "", gate: CallGate | None = None) -> None:
        """Wrap a model; ``from_langchain`` explains the arguments."""
        is_text = isinstance(chat, BaseLLM)
        self._chat: BaseChatModel = TextAsChat(text_model=chat) if isinstance(chat, BaseLLM) else chat
        self._own_stops = TURN_STOPS if is_text else ()
        self._gate = gate or CallGate(_CALLS_AT_ONCE)
        self._taken = _field_names(chat)
        self._name = _name_of(chat)
        self._stop_texts = StopTexts(f"Model {self.model!r} ({type(chat).__name__})", refusals=_UNSUPPORTED)
        self.temperature = float(getattr(chat, "temperature", None) or 0.0)
        kind = type(chat)
        base = BaseLLM if is_text else BaseChatModel  # whose metadata name the versions of libraries
        digest = digest_of_fields(chat, besides=base)
        self.fields = " ".join(filter(None, (f"{kind.__module__}.{kind.__qualname__}", digest, version)))
        """Class, digest of the settings and version, for fingerprints."""

    @property
    def model(self) -> str:
        """Name of the model at its provider, else of its class."""
        return self._name

    @property
    def endpoint(self) -> str:
        """Its name in caches, by class and settings."""
        return f"langchain:{self.fields}"

    @property
    def lacks(self) -> frozenset[str]:
        """Options of calls that are the model's own here."""
        return frozenset({"temperature", "seed", "max_tokens"}) - (self._taken & {"max_tokens"})

    @property
    def why_no_thinking(self) -> str:
        """The reason why thinking cannot be switched here."""
        return (
            f"The model {self.model!r} is one of LangChain, which keeps its own settings: switch its thinking where it "
            f"is made, such as ChatAnthropic(thinking=…). {LEAVE_OUT_THINKING}"
        )

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        if options.thinking is not None:
            raise SettingsError(self.why_no_thinking)
        request = _Request(list(messages), options, self._params(options), (*self._own_stops, *options.stop))
        while True:
            try:
                async with self._gate.slot():
                    request.started = time.perf_counter()
                    await meter.about_to_send()
                    message = await self._message(request, listeners)
                    completion = _read(message, request.stop, options)
                break
            except Exception as error:
                if isinstance(error, NoFailure | JudgetreeError):
                    raise
                failure = self._failure(error)
                await self._book(meter, request, error, failure)
                if not isinstance(error, NoAnswer):
                    raise failure from error
                request.repeats = error
            await meter.admit_again()
            listeners.start_over()
        listeners.settle(text=completion.text, thinking=completion.thinking)
        is_cut_off = completion.is_cut_off and options.top_logprobs is None
        self._record(meter, request, message.usage_metadata, cut_off=is_cut_off)
        return completion

    def _record(
        self,
        meter: CallMeter,
        request: _Request,
        used: UsageMetadata | None,
        *,
        error: str = "",
        cut_off: bool = False,
    ) -> None:
        meter.record(
            kind="chat",
            model=self.model,
            started=request.started,
            prompt_tokens=used["input_tokens"] if used else 0,
            completion_tokens=used["output_tokens"] if used else 0,
            cached_prompt_tokens=cached_tokens_in(used),
            error=error,
            cut_off=cut_off,
        )

    async def _book(self, meter: CallMeter, request: _Request, error: Exception, failure: ModelCallError) -> None:
        """Record a request that failed, and book it at once if it may be billed."""
        if may_be_billed(error):
            used, is_estimated = expected_usage(attached_usage(error), request.messages, request.options)
            self._record(meter, request, used, error=str(failure)[:300])
            if endpoint_failure(error).is_filtered:
                meter.records[-1]["caveats"] = ["filtered"]
            await meter.book_failed(estimated=is_estimated)
        else:
            self._record(meter, request, None, error=str(failure)[:300])

    async def _message(self, request: _Request, listeners: Listeners) -> AIMessage:
        async def send(stop: tuple[str, ...]) -> AIMessage:
            params = {**request.params, "stop": list(stop)} if stop else request.params
            return await self._send(request.messages, params, listeners, request.stop)

        return await self._stop_texts.message(send, request.stop, repeats=request.repeats)

    async def _send(
        self, messages: list[Message], params: dict[str, Any], listeners: Listeners, stop: tuple[str, ...]
    ) -> AIMessage:
        if listeners.present:
            return await self._streamed(messages, params, listeners, stop)
        message = _normal(await self._chat.ainvoke(messages, **params))
        with attach_usage(message.usage_metadata or NO_TOKENS):
            check_length(message, _MAX_REPLY_BYTES)
        return message

    async def _streamed(
        self, messages: list[Message], params: dict[str, Any], listeners: Listeners, stop: tuple[str, ...]
    ) -> AIMessage:
        if "stream_usage" in self._taken:
            params = {**params, "stream_usage": True}
        streamed = StreamedMessage(_MAX_REPLY_BYTES, stop)
        used: UsageMetadata | None = None
        has_come = False
        try:
            async with closing(self._chat.astream(messages, **params)) as pieces:
                async for piece in pieces:
                    has_come = True
                    used = add_usage(used, piece.usage_metadata) if piece.usage_metadata else used
                    streamed.feed(_normal(piece))
                    listeners.add(text=streamed.new_text(), thinking=streamed.new_thinking())
        except Exception:
            with attach_usage(used or NO_TOKENS if has_come else None):
                raise
        message = streamed.message()
        message.usage_metadata = used  # pieces count what they add
        return message

    def _params(self, options: CallOptions) -> dict[str, Any]:
        params: dict[str, Any] = {}
        if options.max_tokens is not None and "max_tokens" in self._taken:
            params["max_tokens"] = options.max_tokens
        if options.top_logprobs is not None and "top_logprobs" in self._taken:
            params |= {"logprobs": True, "top_logprobs": options.top_logprobs}
        return params

    def _failure(self, error: Exception) -> ModelCallError:
        found = endpoint_failure(error)
        what = found.what or redacted_line(error, ())
        where = f"Model {self.model!r} ({type(self._chat).__name__})"
        return found.error_class(f"{where} failed: {what}{found.to_do}", status=found.status)


def _read(message: AIMessage, stop: tuple[str, ...], options: CallOptions) -> Completion:
    """Return the completion of a message.

    Raises:
        ValueError: It has no answer, or was broken off.
    """
    with attach_usage(message.usage_metadata or NO_TOKENS):
        completion = completion_of(message, stop, is_json=options.json_format is not None)
        if completion.finish_reason == BROKEN_OFF:
            raise BrokenOff(message.response_metadata.get("finish_reason"))
        if not completion.text and not completion_of(message).text and options.top_logprobs is None:
            raise Withheld if completion.finish_reason == FILTERED else ValueError("the answer is empty")
    return completion


def as_chat_llm(given: ChatLLM | LangChainModel) -> ChatLLM:
    """Return a model as a ``ChatLLM``, which one of LangChain becomes.

    Raises:
        SettingsError: It is neither.
    """
    if isinstance(given, BaseChatModel | BaseLLM):
        return LangChainChat(given)
    if isinstance(given, type) or not callable(getattr(given, "complete", None)) or not hasattr(given, "model"):
        raise SettingsError(
            f"llm={given!r:.100} is no chat model. Give a ChatLLM, or a model of LangChain: not its class, and "
            "without bind(), with_retry() or a chain around it. A spec is given by settings=load_settings(llm=…)."
        )
    return given


def name_of_llm(given: ChatLLM | LangChainModel) -> str:
    """Return what tells a model from others: its name and, of one of LangChain's, its class and settings.

    Raises:
        SettingsError: It is no chat model.
    """
    return " ".join(model_fingerprint(as_chat_llm(given)).values())


def _name_of(chat: LangChainModel) -> str:
    names = (getattr(chat, field, None) for field in ("model_name", "model", "model_id", "deployment_name"))
    return next((name for name in names if isinstance(name, str) and name), type(chat).__name__)


def _field_names(chat: LangChainModel) -> frozenset[str]:
    fields = type(chat).model_fields
    return frozenset(fields) | {field.alias for field in fields.values() if field.alias}


def _normal(message: AIMessage) -> AIMessage:
    """Return a message with possible usage, and its reasoning and reason for its end under OpenAI's names."""
    metadata, extra = message.response_metadata, message.additional_kwargs
    ended = next(filter(None, map(metadata.get, _ENDINGS)), None)
    if not ended and metadata.get("status") == "incomplete":  # of OpenAI's Responses API
        ended = (metadata.get("incomplete_details") or {}).get("reason") or "incomplete"
    reasoning = extra.get("reasoning_content") or "".join(
        str(block.get("reasoning", ""))
        for block in (message.content_blocks if isinstance(message.content, list) else ())
        if block["type"] == "reasoning"
    )
    update: dict[str, Any] = {}
    if ended and ended != metadata.get("finish_reason"):
        update["response_metadata"] = {**metadata, "finish_reason": ended}
    if reasoning and "reasoning" not in extra:
        update["additional_kwargs"] = {**extra, "reasoning": reasoning}
    if message.usage_metadata is not None:
        update["usage_metadata"] = possible_usage(message.usage_metadata)
    return message.model_copy(update=update) if update else message
