"""The judge for strong models: the model writes its whole verdict as JSON."""

from __future__ import annotations

from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..errors import BudgetSpent, ModelCallError, ModelSetupError
from ..llm.endpoint import ChatLLM
from ..llm.json_reply import JsonChat, ReplyProblem, asked_again
from .contract import Verdict
from .prompts import GENERATED_JUDGE_VERSION, JUDGE_SCHEMA, judge_messages
from .verdict_parser import parse_verdict


class GeneratedJudge:
    """Asks for a JSON verdict, as constrained as the endpoint allows (see ``JsonChat``), and parses it tolerantly.

    A reply that cannot be used is asked for again, saying what was wrong.
    """

    def __init__(self, llm: ChatLLM, *, max_repairs: int = 2, max_tokens: int = 2048) -> None:
        """``max_repairs``: further calls after an unusable reply. ``max_tokens``: most tokens of one reply."""
        self._chat = JsonChat(llm, max_tokens=max_tokens)
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens

    def fingerprint(self) -> dict[str, str]:
        """Kind, model, prompt version and the limits of a reply."""
        return {
            "kind": "generated",
            "model": self._chat.model,
            "prompt": GENERATED_JUDGE_VERSION,
            "max_repairs": str(self._max_repairs),
            "max_tokens": str(self._max_tokens),
        }

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """One verdict, in 1 to ``1 + max_repairs`` calls; see ``judge.Judge.judge``."""
        messages = judge_messages(query, chunk.page_content)
        incomplete: Verdict | None = None
        problem = ""
        for _ in range(1 + self._max_repairs):
            try:
                completion = await self._chat.complete(messages, JUDGE_SCHEMA, meter=meter)
                cut_off = completion.finish_reason == "length"
                verdict = parse_verdict(completion.text, query, expand=expand, cut_off=cut_off)
            except ReplyProblem as error:
                problem = str(error)
            except ModelSetupError:
                raise
            except ModelCallError as error:
                problem = str(error)
                break
            except BudgetSpent:
                if not problem:
                    raise
                break
            else:
                if not verdict.problem:
                    return verdict
                incomplete, problem = verdict, verdict.problem
            messages = asked_again(messages, completion, problem)
        return incomplete or Verdict(status="unknown", problem=problem)
