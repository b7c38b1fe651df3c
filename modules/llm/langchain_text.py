"""Text completion models of LangChain (``BaseLLM``) as its chat models, by the rendering of ``one_prompt``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, LLMResult

from ..background.closing import closing
from .one_prompt import one_prompt

_ROLES = {"human": "user", "ai": "assistant"}


class TextAsChat(BaseChatModel):
    """A chat model that sends the messages as one prompt to a model that completes texts."""

    text_model: BaseLLM

    @property
    def _llm_type(self) -> str:
        return self.text_model._llm_type

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _as_chat_result(self.text_model.generate([_prompt_of(messages)], stop=stop, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _as_chat_result(await self.text_model.agenerate([_prompt_of(messages)], stop=stop, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with closing(self.text_model.astream(_prompt_of(messages), stop=stop, **kwargs)) as pieces:
            async for piece in pieces:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


def _prompt_of(messages: list[BaseMessage]) -> str:
    return one_prompt([(_ROLES.get(message.type, message.type), str(message.text)) for message in messages])


def _as_chat_result(result: LLMResult) -> ChatResult:
    generation = result.generations[0][0]
    message = AIMessage(
        content=generation.text,
        response_metadata=dict(generation.generation_info or {}),
        usage_metadata=_usage_of(result),
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def _usage_of(result: LLMResult) -> UsageMetadata | None:
    counted = (result.llm_output or {}).get("token_usage") or {}
    prompt, written = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(written, int):
        return None
    return UsageMetadata(input_tokens=prompt, output_tokens=written, total_tokens=prompt + written)
