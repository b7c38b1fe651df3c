"""The judge for small models: it reads the probability of a yes, since the verdicts that they write are unreliable."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.documents import Document

from ..calls.completion import TokenLogprob
from ..calls.messages import CallOptions, Message
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..errors import ModelCallError, ModelRequestError, ModelSetupError
from ..llm.contract import ChatLLM, model_fingerprint
from ..llm.wire.error_words import is_about_one_prompt
from .asker import AROUND_A_WORD, SubQuestionAsker
from .contract import Judge, Verdict
from .prompts import LOGPROB_JUDGE, alone_messages, needed_messages
from .thresholds import LogprobThresholds, thresholds_for

logger = logging.getLogger(__name__)

TOP_LOGPROBS = 20
"""Alternatives requested: the most that OpenAI and vLLM give, and enough for every spelling of both words."""

YES_WORDS = frozenset({"yes", "是", "是的", "有", "能", "可以"})
NO_WORDS = frozenset({"no", "否", "不", "不是", "没有", "不能"})
_NO_LOGPROBS = "The endpoint gives no log probabilities"
_NOT_ALLOWED = 403
_ONE_WORD = CallOptions(max_tokens=1, top_logprobs=TOP_LOGPROBS)


def yes_probability(alternatives: Sequence[TokenLogprob]) -> float | None:
    """Return P(yes) against P(no), each summed over its spellings (case, blanks, English, Chinese), in [0, 1].

    None if neither word is among the alternatives; a missing word has probability 0.

    >>> yes_probability([TokenLogprob(token=" Yes", logprob=-0.7), TokenLogprob(token="no", logprob=-0.7)])
    0.5
    """
    yes = _mass(alternatives, YES_WORDS)
    no = _mass(alternatives, NO_WORDS)
    return yes / (yes + no) if yes + no > 0.0 else None


def _mass(alternatives: Sequence[TokenLogprob], words: frozenset[str]) -> float:
    return math.fsum(
        math.exp(each.logprob) for each in alternatives if each.token.strip(AROUND_A_WORD).casefold() in words
    )


class LogprobJudge:
    """Asks a yes-or-no question and scores a chunk by the probability of yes.

    A 0 takes one call of one token; a 1 takes one or two more for its sub-question, and one more where the thresholds
    allow a 2. All calls about a chunk share their prefix, which providers and llama.cpp reuse.

    ::

        judge = LogprobJudge(llm, thresholds=LogprobThresholds(needed=0.4, alone=0.9))
    """

    def __init__(
        self,
        llm: ChatLLM,
        *,
        thresholds: LogprobThresholds | None = None,
        fallback: Judge | None = None,
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        """Judge by ``thresholds`` (None: the model's), or by ``fallback`` where there are no log probabilities."""
        self._llm = llm
        self._prompts = prompts
        self._asker = SubQuestionAsker(llm, prompts=prompts)
        self._thresholds = thresholds or thresholds_for(llm.model, prompts)
        self._fallback = fallback
        self._gives_logprobs: bool | None = None  # decided by the first reply
        self._deciding = asyncio.Lock()

    def fingerprint(self) -> dict[str, str]:
        """Return kind, model, prompt version and thresholds, with those of the fallback as ``fallback_…``."""
        alone = self._thresholds.alone
        own = {
            "kind": "logprob",
            **model_fingerprint(self._llm),
            "prompt": self._prompts.version(LOGPROB_JUDGE),
            "threshold_needed": str(self._thresholds.needed),
            "threshold_alone": "" if alone is None else str(alone),
        }
        inner = self._fallback.fingerprint() if self._fallback is not None else {}
        return own | {f"fallback_{name}": value for name, value in inner.items()}

    def expected_calls(self, chunks: int) -> int:
        """Return two calls a chunk: about half of them get a sub-question."""
        return 2 * chunks

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Return one verdict, in 1 to 4 calls.

        ``confidence`` is 1 - P(needed) for a 0, P(needed) for a 1, P(alone) for a 2.
        """
        try:
            verdict = await self._score(query, chunk.page_content, meter)
        except _WithoutLogprobs:
            return await self._fall_back(query, chunk, meter, expand)
        except ModelSetupError:
            raise
        except ModelCallError as error:
            return Verdict(status="unknown", problem=str(error))
        if verdict.score == 1 and expand:
            return await self._asker.asking(verdict, query, chunk.page_content, meter=meter)
        return verdict

    async def probabilities(
        self, query: str, passage: str, *, meter: CallMeter, alone: bool
    ) -> tuple[float | None, float | None]:
        """Return P(needed) and, if ``alone``, P(alone), one call each, without thresholds and fallback.

        None if neither yes nor no was among the likeliest replies; P(alone) is also None if not requested.

        Raises:
            ModelSetupError: The endpoint gives no log probabilities, or can serve no request.
            ModelCallError: The endpoint failed after the last attempt.
        """
        try:
            needed = await self._probability(needed_messages(query, passage, self._prompts), meter)
            if not alone:
                return needed, None
            return needed, await self._probability(alone_messages(query, passage, self._prompts), meter)
        except _WithoutLogprobs as error:
            raise ModelSetupError(self._without_logprobs()) from error

    async def _score(self, query: str, passage: str, meter: CallMeter) -> Verdict:
        needed = await self._probability(needed_messages(query, passage, self._prompts), meter)
        if needed is None:
            return _unknown("needed")
        reason = f"p(needed)={needed:.2f}"
        if needed < self._thresholds.needed:
            return Verdict(status="judged", score=0, confidence=1.0 - needed, p_needed=needed, reason=reason)
        if self._thresholds.alone is None:
            return Verdict(status="judged", score=1, confidence=needed, p_needed=needed, reason=reason)
        alone = await self._probability(alone_messages(query, passage, self._prompts), meter)
        if alone is None:
            return _unknown("alone")
        reason = f"{reason}, p(alone)={alone:.2f}"
        if alone >= self._thresholds.alone:
            return Verdict(status="judged", score=2, confidence=alone, p_needed=needed, reason=reason)
        return Verdict(status="judged", score=1, confidence=needed, p_needed=needed, reason=reason)

    async def _probability(self, messages: Sequence[Message], meter: CallMeter) -> float | None:
        """Return P(yes), None if neither word is likely. Calls before the first reply wait for it."""
        if self._gives_logprobs is None:
            async with self._deciding:
                if self._gives_logprobs is None:
                    return yes_probability(await self._first_reply(messages, meter))
        if not self._gives_logprobs:
            raise _WithoutLogprobs
        completion = await self._llm.complete(messages, meter=meter, options=_ONE_WORD)
        return yes_probability(completion.first_token)

    async def _first_reply(self, messages: Sequence[Message], meter: CallMeter) -> tuple[TokenLogprob, ...]:
        try:
            first_token = (await self._llm.complete(messages, meter=meter, options=_ONE_WORD)).first_token
        except ModelCallError as error:
            is_refusal = isinstance(error, ModelRequestError) or error.status == _NOT_ALLOWED
            is_of_a_prompt = is_about_one_prompt(error.__cause__ or error)
            if not is_refusal or is_of_a_prompt or "logprob" not in str(error).casefold():
                raise
            first_token = ()  # some endpoints refuse the parameter instead of ignoring it
        self._gives_logprobs = bool(first_token)
        if not first_token:
            logger.warning("%s of model %r", _NO_LOGPROBS, self._llm.model)
            raise _WithoutLogprobs
        return first_token

    async def _fall_back(self, query: str, chunk: Document, meter: CallMeter, expand: bool) -> Verdict:
        if self._fallback is None:
            return Verdict(status="unknown", problem=self._without_logprobs())
        verdict = await self._fallback.judge(query, chunk, meter=meter, expand=expand)
        if verdict.status == "unknown":
            return replace(verdict, problem=f"{_NO_LOGPROBS}; the fallback judge: {verdict.problem}")
        return replace(verdict, reason=f"{verdict.reason} [{_NO_LOGPROBS.lower()}]")

    def _without_logprobs(self) -> str:
        return f"{_NO_LOGPROBS} of model {self._llm.model!r}; use the judge 'generated' with it."


class _WithoutLogprobs(Exception):
    """The endpoint gives no log probabilities."""


def _unknown(question: str) -> Verdict:
    problem = f"Neither yes nor no was among the {TOP_LOGPROBS} likeliest replies to the question {question!r}."
    return Verdict(status="unknown", problem=problem)
