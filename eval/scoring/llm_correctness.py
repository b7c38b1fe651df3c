"""A model that tells whether an answer says the same as a gold answer."""

from __future__ import annotations

from pydantic import BaseModel

from ...modules.calls.usage import CallMeter
from ...modules.llm.contract import ChatLLM
from .prompts import CORRECTNESS_VERSION, correctness_messages
from .replies import StructuredLLM
from .sample import MetricSample

LLM_CORRECTNESS = "llm_correctness"


class CorrectnessVerdict(BaseModel):
    """The reply."""

    reason: str
    correct: int


class LlmCorrectness:
    """1 for an answer that a model finds correct, else 0; None where the data set has no gold answer.

    One call an answer, up to three where replies are unusable. A refusal costs none: it is right if and only if the
    question cannot be answered.
    """

    range = (0.0, 1.0)

    def __init__(self, llm: ChatLLM) -> None:
        self._llm = StructuredLLM(llm)
        self.version = f"prompt {CORRECTNESS_VERSION}, replies {self._llm.version}"

    async def __call__(self, sample: MetricSample, *, meter: CallMeter) -> float | None:
        """Score one answer.

        Raises:
            ReplyProblem: The last reply is unusable.
            ModelCallError: The endpoint failed after its last attempt.
        """
        if not sample.answers_known:
            return None
        if sample.status == "refused" or not sample.gold_answers:
            return float(sample.status == "refused" and not sample.gold_answers)
        messages = correctness_messages(sample.question, sample.gold_answers, sample.answer)
        verdict = await self._llm.ask_messages(messages, CorrectnessVerdict, meter=meter)
        return float(verdict.correct)
