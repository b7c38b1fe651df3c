"""The judge for strong models: the model writes its whole verdict as JSON."""

from __future__ import annotations

from typing import Annotated

from langchain_core.documents import Document
from pydantic import BaseModel, BeforeValidator

from ..calls.completion import Completion
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..llm.contract import ChatLLM, model_fingerprint
from ..llm.json_reply import JsonChat, ask_for_best, parse_json_reply
from ..storage.texts import storable
from .contract import Score, Verdict, usable_question
from .prompts import GENERATED_JUDGE, JUDGE_SCHEMA, judge_messages


def _whole_number(value: object) -> object:
    """Convert "1" to 1 and leave the rest to the schema, which also accepts 1.0."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2"}:
        return int(value)
    if isinstance(value, bool):
        return None  # True would pass as 1
    return value


def _text(value: object) -> object:
    return storable(value) if isinstance(value, str) else "" if value is None else value


TextInReply = Annotated[str, BeforeValidator(_text)]
ScoreInReply = Annotated[Score, BeforeValidator(_whole_number)]
"""As models write them: the text may be null, the number a text."""


class _Reply(BaseModel):
    reason: TextInReply = ""
    score: ScoreInReply
    next_query: TextInReply = ""


def parse_verdict(reply: str, query: str, *, expand: bool = True, cut_off: bool = False) -> Verdict:
    """Parse the verdict in a reply.

    Only a 1 keeps its ``next_query``; if that cannot be asked, the verdict has a ``problem`` in its place. With
    ``expand=False`` no question is needed. A ``cut_off`` reply is repaired, but its question may be incomplete.

    Raises:
        ReplyProblem: The reply holds no verdict.
    """
    parsed = parse_json_reply(reply, _Reply)
    question = problem = ""
    if parsed.score == 1 and expand:
        question, problem = usable_question(parsed.next_query, query, cut_off=cut_off)
    return Verdict(
        status="judged",
        score=parsed.score,
        reason=parsed.reason.strip(),
        next_query=question,
        problem=problem,
    )


class GeneratedJudge:
    """Asks the model for a JSON verdict, in the strictest form that the endpoint takes, and reads it tolerantly.

    After an unusable reply the model is called again with the problem.

    ::

        judge = GeneratedJudge(llm, max_repairs=1)
    """

    def __init__(
        self, llm: ChatLLM, *, max_repairs: int = 2, max_tokens: int = 2048, prompts: Prompts = DEFAULT_PROMPTS
    ) -> None:
        """Allow ``max_repairs`` further calls after an unusable reply, each of at most ``max_tokens`` tokens."""
        self._llm = llm
        self._chat = JsonChat(llm, max_tokens=max_tokens)
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens
        self._prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        """Return kind, model, prompt version and the limits of a reply."""
        return {
            "kind": "generated",
            **model_fingerprint(self._llm),
            "prompt": self._prompts.version(GENERATED_JUDGE),
            "max_repairs": str(self._max_repairs),
            "max_tokens": str(self._max_tokens),
        }

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Return one verdict, in 1 to ``1 + max_repairs`` calls."""

        def read(completion: Completion, earlier: Verdict | None) -> tuple[Verdict, str]:
            cut_off = completion.is_cut_off
            verdict = parse_verdict(completion.text, query, expand=expand, cut_off=cut_off)
            return verdict, verdict.problem

        messages = judge_messages(query, chunk.page_content, self._prompts)
        verdict, problem = await ask_for_best(
            self._chat, messages, JUDGE_SCHEMA, read, meter=meter, max_repairs=self._max_repairs
        )
        return verdict or Verdict(status="unknown", problem=problem)
