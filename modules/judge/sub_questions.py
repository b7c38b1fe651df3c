"""Writers of a chunk's further sub-questions, for searches that ask a chunk again after its first found nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..calls.messages import CallOptions
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..errors import NoQuestion
from ..llm.contract import ChatLLM, model_fingerprint
from .contract import sub_question_problem
from .prompts import ASK_AGAIN_PROMPTS, ask_again_messages

if TYPE_CHECKING:
    from langchain_core.documents import Document

_MAX_TOKENS = 2048


class SubQuestionWriter(Protocol):
    """Writes the sub-question of a further try of a chunk."""

    def fingerprint(self) -> dict[str, str]:
        """Return all that changes a question: kind, model, prompt version."""
        ...

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        """Return a question other than those in ``tried``, which brought nothing.

        Raises:
            BudgetSpent: The search tree may make no more model calls.
            NoQuestion: The reply is no question that can be asked, or there is no other one.
            ModelCallError: The call failed.
        """
        ...


class ModelWriter:
    """Lets a model write the questions.

    ::

        writer = ModelWriter(llm)
    """

    def __init__(self, llm: ChatLLM, *, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._llm = llm
        self._prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        """Return kind, model and prompt version."""
        version = self._prompts.version(ASK_AGAIN_PROMPTS)
        return {"kind": "model", **model_fingerprint(self._llm), "prompt": version}

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        """Return another question, in one call."""
        messages = ask_again_messages(query, chunk.page_content, tried, self._prompts)
        options = CallOptions(max_tokens=_MAX_TOKENS)
        question = (await self._llm.complete(messages, meter=meter, options=options)).written.strip()
        problem = sub_question_problem(question, query)
        if not problem and any(question.casefold() == each.casefold() for each in tried):
            problem = "it was asked already"
        if problem:
            raise NoQuestion(f"the model wrote {question!r:.200}: {problem}")
        return question
