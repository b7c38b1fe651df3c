"""One request to a chat endpoint: streamed, and with stop texts, where the model takes that."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import openai
from langchain_core.messages import AIMessage

from ..background.closing import closing
from ..calls.completion import StreamedMessage, check_length
from ..calls.growing_text import Listeners
from ..calls.messages import Message
from ..calls.reported_usage import NO_TOKENS, attach_usage, attached_usage
from .openai_client import ReasoningChatOpenAI
from .wire.chat_reply import starts_over, was_not_streamed
from .wire.error_words import is_about_one_prompt
from .wire.refusals import STREAM, STREAM_KEY, WHOLE, Refused, failed_json_in, refused_by
from .wire.stop_texts import NoAnswer, StopTexts

logger = logging.getLogger(__name__)

_NO_STREAM_STATUS = frozenset({400, 404, 405, 422, 501})
"""HTTP statuses that may refuse the stream rather than the call."""


@dataclass(frozen=True, kw_only=True)
class CallRequest:
    """What all attempts of one call send."""

    prompt: list[Message]
    params: dict[str, Any]
    stop: tuple[str, ...]
    is_streamed: bool
    refused: Refused = field(default_factory=dict)
    """What the endpoint has refused this call by name, with what is sent in its place."""
    repeats: NoAnswer | None = None
    """The failure of the request with stop texts that is repeated without them."""


class Sender:
    """Sends requests to one model, in the way that its endpoint has turned out to take."""

    def __init__(self, chat: ReasoningChatOpenAI, where: str) -> None:
        """Send by ``chat``, the client of the model that ``where`` names."""
        self._chat = chat
        self._where = where
        self._streams = True  # until the endpoint refuses a stream
        self._stop_texts = StopTexts(where)

    async def reply(self, request: CallRequest, listeners: Listeners) -> AIMessage:
        """Return the reply to a request, whose pieces the listeners hear where it is streamed.

        A reply that the endpoint refuses since it is no valid JSON is one all the same.

        Raises:
            NoAnswer: It ends at a stop text before it answers.
            ValueError: The reply cannot be used.
            openai.OpenAIError: The endpoint refused the request, or failed.
        """

        async def send(stop: tuple[str, ...]) -> AIMessage:
            return await self._send(
                request, {**request.params, "stop": list(stop)} if stop else request.params, listeners
            )

        return await self._stop_texts.message(send, request.stop, repeats=request.repeats)

    async def _send(self, request: CallRequest, params: dict[str, Any], listeners: Listeners) -> AIMessage:
        try:
            return await self._sent(request, params, listeners)
        except openai.APIError as error:
            if (written := failed_json_in(error)) is None:
                raise
            used = attached_usage(error)
            if not written:
                with attach_usage(used or NO_TOKENS):
                    raise ValueError("the model wrote no valid JSON, and its endpoint refuses that") from error
            is_counted = used is not None and used["total_tokens"]
            ended = {"finish_reason": "json_validate_failed"}
            return AIMessage(content=written, response_metadata=ended, usage_metadata=used if is_counted else None)

    async def _sent(self, request: CallRequest, params: dict[str, Any], listeners: Listeners) -> AIMessage:
        message: AIMessage
        chat = self._chat
        if request.refused:
            chat = chat.model_copy(update={"adaptations": chat.adaptations.besides(request.refused)})
        refused = chat.adaptations.changes
        takes_streams = self._streams and not refused(STREAM) and not refused(STREAM_KEY)
        streams = (request.is_streamed or refused(WHOLE)) and takes_streams
        if streams:
            try:
                message = await self._stream(chat, request, params, listeners)
            except openai.APIStatusError as error:
                is_of_the_stream = error.status_code in _NO_STREAM_STATUS and failed_json_in(error) is None
                if refused_by(error) or is_about_one_prompt(error) or not is_of_the_stream:
                    raise
            else:
                if was_not_streamed(message):
                    self._stop_streaming()
                return message
        message = await chat.reply_to(request.prompt, **params)
        if streams:  # the stream was refused and the call was not
            self._stop_streaming()
        with attach_usage(message.usage_metadata):
            check_length(message, chat.max_reply_bytes)
        return message

    async def _stream(
        self, chat: ReasoningChatOpenAI, request: CallRequest, params: dict[str, Any], listeners: Listeners
    ) -> AIMessage:
        streamed, is_whole = StreamedMessage(chat.max_reply_bytes, request.stop), False
        has_come = False
        try:
            async with closing(chat.pieces_of_reply(request.prompt, **params)) as pieces:
                async for piece in pieces:
                    has_come = True
                    if starts_over(piece):
                        listeners.start_over()
                        streamed = StreamedMessage(chat.max_reply_bytes, request.stop)
                    with attach_usage(piece.usage_metadata):
                        streamed.feed(piece)
                    is_whole = is_whole or was_not_streamed(piece)
                    if not is_whole:
                        listeners.add(text=streamed.new_text(), thinking=streamed.new_thinking())
        except Exception as error:
            is_told = attached_usage(error) is not None or not has_come
            with attach_usage(None if is_told else streamed.message().usage_metadata or NO_TOKENS):
                raise
        return streamed.whole_message()

    def _stop_streaming(self) -> None:
        if self._streams:
            logger.info("%s does not stream; further calls do not ask for it", self._where)
        self._streams = False
