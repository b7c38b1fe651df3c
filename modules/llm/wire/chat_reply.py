"""Replies of chat endpoints, whole or in pieces, as messages of LangChain with their reasoning and refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ...calls.reported_usage import NO_TOKENS, attach_usage, sanitize_usage, usage_in
from .error_words import ReportedError, error_in

_WHOLE = "was_not_streamed"
"""Metadata key of a message that was sent whole although a stream was requested."""
_STARTS_OVER = "starts_over"
"""Metadata key of a piece of a stream that makes all earlier ones void."""


def result_of(reply: Any) -> ChatResult:
    """Return a whole reply, whose usage ``sanitize_usage`` has read; of several choices it is one.

    Raises:
        ReportedError: The endpoint reports an error in place of a reply.
        LookupError: It has no choice, or a choice neither message nor reason for its end.
        TypeError: It is no JSON object.
    """
    if not isinstance(reply, dict):
        raise TypeError(f"it is {reply!r:.100}, no JSON object")
    _check_no_error(reply)
    if not reply.get("choices"):
        raise LookupError(f"it has no choices, only {', '.join(map(repr, reply))[:100] or 'nothing'}")
    choice = _one_choice(reply["choices"])
    _check_no_error(choice)
    sent = choice.get("message") or {}
    if not (sent or choice.get("finish_reason")):
        raise LookupError("its choice has no message")
    message = AIMessage(
        content=sent.get("content") or "",
        additional_kwargs=_besides(sent),
        response_metadata={
            "finish_reason": choice.get("finish_reason"),
            "logprobs": choice.get("logprobs"),
            "model_name": reply.get("model"),
        },
        usage_metadata=usage_in(reply),
    )
    output = {"token_usage": reply.get("usage"), "model_name": reply.get("model")}
    return ChatResult(generations=[ChatGeneration(message=message)], llm_output=output)


def as_chunk(result: ChatResult) -> ChatGenerationChunk:
    """Return a whole reply as the one piece of a stream; ``was_not_streamed`` detects it."""
    message = result.generations[0].message
    chunk = AIMessageChunk(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        response_metadata={**message.response_metadata, _WHOLE: True},
        usage_metadata=message.usage_metadata if isinstance(message, AIMessage) else None,
    )
    return ChatGenerationChunk(message=chunk)


class ChoiceOfStream:
    """The choice of a stream that is its answer: that of index 0 or, until it comes, the first that came."""

    def __init__(self) -> None:
        self._index: object = None
        self._has_piece = self._has_finished = False

    def chunk_of(self, event: Any) -> ChatGenerationChunk | None:
        """Return what an event of the stream adds; None for nothing.

        Raises:
            ReportedError: It reports an error.
            AttributeError: It is no JSON object.
        """
        piece, is_new = self._narrow(event)
        sanitize_usage(piece)
        usage = usage_in(piece)
        _check_no_error(piece)
        if not piece.get("choices"):
            self._has_piece = True
            return ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))
        choice = piece["choices"][0]
        _check_no_error(choice)
        sent = choice.get("delta") or choice.get("message") or {}
        if not (sent or choice.get("finish_reason") or usage):
            return None
        self._has_piece = True
        metadata: dict[str, Any] = {_STARTS_OVER: True} if is_new else {}
        if choice.get("finish_reason"):
            self._has_finished = True
            metadata |= {"finish_reason": choice["finish_reason"], "model_name": piece.get("model")}
        if choice.get("logprobs"):
            metadata["logprobs"] = choice["logprobs"]
        message = AIMessageChunk(
            content=sent.get("content") or "",
            additional_kwargs=_besides(sent),
            response_metadata=metadata,
            usage_metadata=usage,
        )
        return ChatGenerationChunk(message=message)

    def missing_end(self, *, is_done: bool) -> ChatGenerationChunk | None:
        """Return the piece that ends a stream that ``is_done`` but gave no finish reason; None where none is missing.

        Raises:
            ValueError: The stream had no piece of an answer.
        """
        if not self._has_piece:
            with attach_usage(NO_TOKENS):
                raise ValueError("its stream has no piece of an answer")
        if self._has_finished or not is_done:
            return None
        return ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata={"finish_reason": "stop"}))

    def _narrow(self, piece: Any) -> tuple[Any, bool]:
        """Return a piece of the stream with this choice alone, and whether it makes all earlier pieces void."""
        choices = piece.get("choices")
        if not choices:
            return piece, False
        known, chosen = self._index, _one_choice(choices)
        if known is not None and _index(chosen):
            own = [choice for choice in choices if _index(choice) == known]
            return {**piece, "choices": own[:1]}, False
        self._index = _index(chosen)
        return {**piece, "choices": [chosen]}, bool(known)


def was_not_streamed(message: AIMessage) -> bool:
    """Return whether the endpoint sent this message whole although a stream was requested."""
    return _WHOLE in message.response_metadata


def starts_over(piece: AIMessage) -> bool:
    """Return whether a piece of a stream begins another choice, which makes all earlier pieces void."""
    return _STARTS_OVER in piece.response_metadata


def _check_no_error(part: Mapping[str, Any]) -> None:
    if error := error_in(part):
        raise ReportedError(error)


def _one_choice(choices: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the choice of index 0, which is also that of a choice without one; else the first.

    Some endpoints send several, though none were asked for.
    """
    return next((choice for choice in choices if not _index(choice)), choices[0])


def _index(choice: Mapping[str, Any]) -> object:
    return choice.get("index") or 0


def _thought_in(content: object) -> str:
    """Return the thinking among the parts of a content, as Mistral sends it."""
    parts = content if isinstance(content, list) else ()
    thoughts = [part.get("thinking") for part in parts if isinstance(part, Mapping) and part.get("type") == "thinking"]
    texts = [each for thought in thoughts for each in (thought if isinstance(thought, list) else [thought])]
    return "".join(str(each.get("text") or "") if isinstance(each, Mapping) else str(each or "") for each in texts)


def _besides(message: Mapping[str, object]) -> dict[str, object]:
    """Return the reasoning of a message or delta, under whatever name, and its refusal, as far as it has them."""
    reasoning = message.get("reasoning_content") or message.get("reasoning") or _thought_in(message.get("content"))
    besides = {"reasoning": reasoning} if reasoning else {}
    return besides | ({"refusal": message["refusal"]} if message.get("refusal") else {})
