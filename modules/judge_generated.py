"""The judge for strong models: the model writes its whole verdict as JSON."""

from __future__ import annotations

import asyncio
import logging

from langchain_core.documents import Document

from .errors import BudgetSpent, CacheMiss, ModelCallError, ModelSetupError
from .judge import Verdict
from .llm import CallOptions, ChatLLM, Completion, JsonFormat
from .prompts import GENERATED_JUDGE_VERSION, JUDGE_REPAIR, JUDGE_SCHEMA, Message, judge_messages
from .usage import CallMeter
from .verdict_parser import VerdictProblem, parse_verdict

logger = logging.getLogger(__name__)

_WEAKER: dict[JsonFormat, JsonFormat] = {"json_schema": "json_object", "json_object": "text"}
_REFUSED_WHATEVER_THE_FORMAT = {401, 403, 404}


class GeneratedJudge:
    """Asks for a JSON verdict, as constrained as the endpoint allows, and parses it tolerantly.

    The first call probes what the endpoint can do: ``json_schema``, else ``json_object``, else plain text; each step
    down costs one refused call. A reply that cannot be used is asked for again, saying what was wrong.
    """

    def __init__(self, llm: ChatLLM, *, max_repairs: int = 2, max_tokens: int = 2048) -> None:
        """``max_repairs``: further calls after an unusable reply. ``max_tokens``: most tokens of one reply."""
        self._llm = llm
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens
        self._format: JsonFormat = "json_schema"
        self._probed = False
        self._probing = asyncio.Lock()

    def fingerprint(self) -> dict[str, str]:
        """Kind, model, prompt version and the limits of a reply."""
        return {
            "kind": "generated",
            "model": self._llm.model,
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
                completion = await self._ask(messages, meter)
                cut_off = completion.finish_reason == "length"
                verdict = parse_verdict(completion.text, query, expand=expand, cut_off=cut_off)
            except VerdictProblem as error:
                problem = str(error)
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
            messages = [
                *messages,
                ("assistant", completion.text or "(nothing)"),
                ("user", JUDGE_REPAIR.format(problem=problem)),
            ]
        return incomplete or Verdict(status="unknown", problem=problem)

    async def _ask(self, messages: list[Message], meter: CallMeter) -> Completion:
        if self._probed:
            return await self._complete(messages, meter)
        async with self._probing:
            while not self._probed:
                try:
                    completion = await self._complete(messages, meter)
                except (ModelSetupError, CacheMiss) as error:  # of a replayed run, refused calls are not kept
                    weaker = _WEAKER.get(self._format)
                    if weaker is None or getattr(error, "status", None) in _REFUSED_WHATEVER_THE_FORMAT:
                        self._format = "json_schema"  # it was not the format: the next passage probes anew
                        raise
                    logger.info("no %s at this endpoint (%s)", self._format, error)
                    self._format = weaker
                else:
                    self._probed = True
                    return completion
        return await self._complete(messages, meter)

    async def _complete(self, messages: list[Message], meter: CallMeter) -> Completion:
        options = CallOptions(max_tokens=self._max_tokens, json_format=self._format, json_schema=JUDGE_SCHEMA)
        return await self._llm.complete(messages, meter=meter, options=options)
