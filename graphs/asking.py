"""Answers one question, with services from the settings that are closed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.types import Command

from ..modules.background_loop import async_twin, blocking
from ..modules.config.completion import completes
from .config.rag_config import RagConfig
from .rag.result import RagResult
from .session import RagSession
from .threads.context import RunEvent


@blocking
@completes(RagConfig)
async def ask(
    question: str | Command[Any] | None = None,
    *,
    collection: str = "",
    thread_id: str | None = None,
    resume: bool = False,
    on_event: Callable[[RunEvent], None] | None = None,
    **options: Any,
) -> RagResult:
    """Answer one question and close all services again; use a ``RagSession`` for several questions.

    Arguments and errors: see ``RagSession`` and ``RagSession.ask``.

    ::

        result = ask("How long is the pressure held?", collection="standards", system="naive")
        print(result.answer, result.usage["llm_calls"])
    """
    session = RagSession(collection, **options)
    try:
        return await session.aask(question, thread_id=thread_id, resume=resume, on_event=on_event)
    finally:
        await session.aclose()


aask = async_twin(ask)
