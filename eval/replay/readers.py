"""Pays the readers for what replayed search trees show them, each thing once, and scores the answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pandas as pd
from langchain_core.documents import Document

from ...modules.background_loop import blocking
from ...modules.calls.journaled import expected_record
from ...modules.calls.messages import PLAIN_TEXT
from ...modules.calls.prices import FREE, Cost, Prices, load_prices, usage_by_model
from ...modules.calls.prompts import Prompts
from ...modules.calls.record import CallRecord
from ...modules.calls.usage import CallMeter, UsageTotals, total_usage
from ...modules.config.models import CacheMode
from ...modules.config.reading import AnswerStrategy
from ...modules.errors import ModelCallError, RunLimitReached, UserError, ungrouped
from ...modules.llm.contract import ChatLLM
from ...modules.llm.factory import priced_as
from ...modules.llm.tuned import with_sampling
from ...modules.progress import StageProgress
from ...modules.prompts.reading import load_prompts
from ...modules.reader.evidence import render_evidence, split_evidence
from ...modules.reader.prompts import reader_messages
from ...modules.reader.refusals import is_refusal
from ...modules.reader.strategies import read_evidence
from ...modules.settings import Settings
from ..datasets.questions import EvalQuestion
from ..metrics.answers import WRONG, score_answer
from ..runs.limits import Spending
from ..scoring.models import ScoringOptions, open_scoring_model
from .recording import SearchRecording
from .shown import Shown, ShownTrees

logger = logging.getLogger(__name__)
_CALLS: Mapping[AnswerStrategy, Callable[[int], int]] = {
    "stuff": lambda passages: 1,
    "map_reduce": lambda passages: passages + 1 if passages > 1 else 1,
    "refine": lambda passages: max(1, passages),
    "map_rerank": lambda passages: max(1, passages),
}
"""Most calls of a strategy, by the number of passages."""


@dataclass(frozen=True, kw_only=True)
class ReplayReaders:
    """The model that answers from the evidence of replayed trees, and what it may cost.

    >>> ReplayReaders(llm="openai:gpt-4o-mini", max_cost=1.0).strategy
    'stuff'
    """

    llm: str | None = None
    """The model, as in JUDGETREE_LLM; None takes that of the settings."""
    strategy: AnswerStrategy = "stuff"
    thinking: bool | None = None
    cache: CacheMode = "write"
    concurrency: int = 8
    """Questions at once."""
    max_calls: int | None = None
    """Chat calls that may be paid for; None is no limit."""
    max_cost: float | None = None
    """US dollars that may be spent."""


@dataclass(frozen=True, kw_only=True)
class ReadingCost:
    """What readers cost at most; replies in the cache cost nothing."""

    contexts: int
    """Distinct contexts: a query with its evidence and the answers to its sub-questions."""
    trees: int
    """Trees of all questions, policies and budgets."""
    usage: UsageTotals
    """Calls at most, with estimated tokens."""
    cost: Cost = FREE


@dataclass(frozen=True, kw_only=True)
class ReadingSummary:
    """What readers were paid for."""

    calls: int
    cached_calls: int
    tokens: int
    """Prompt and completion tokens of ``calls``."""
    cost: Cost
    failed: int
    """Trees without an answer since the model failed; they count as wrong."""
    unanswered: int
    """Questions that a limit left without answers; they are in no mean."""
    stopped_by: str
    """That limit, as "max_calls=100"; ``""`` if none was reached."""

    def words(self) -> list[str]:
        """Say what was paid, and what is missing."""
        paid = f"Readers: {self.calls:,} calls paid, cost {self.cost}; {self.cached_calls:,} from the cache."
        missing = [
            f"{self.failed:,} trees have no answer, since the model failed or nothing of their question was recorded, "
            "and count as wrong. The same command asks again where the model failed."
        ]
        left = [
            f"{self.unanswered:,} questions are unanswered and in no mean of EM and F1, since the readers reached "
            f"{self.stopped_by}. Run the same command with a higher limit to continue."
        ]
        return [paid, *(missing if self.failed else ()), *(left if self.unanswered else ())]

    def to_document(self) -> dict[str, object]:
        """Return it as plain data for ``json.dumps``."""
        return {**{name: value for name, value in vars(self).items() if name != "cost"}, **self.cost.to_document()}


@dataclass
class ReplayedReading:
    """Answers of the readers of replayed trees."""

    recording: SearchRecording
    trees: Mapping[str, ShownTrees]
    """By question id."""
    options: ReplayReaders
    settings: Settings
    _records: list[CallRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = self.settings.with_models(llm=self.options.llm, thinking=self.options.thinking)
        self._prompts: Prompts = load_prompts(self.settings.prompts)
        self._prices: Prices = load_prices(self.settings.home)

    def cost(self) -> ReadingCost:
        """Return what all answers cost at most; sub-answers in prompts are not counted."""
        model, meter = priced_as(self.settings.llm_spec, self.settings), CallMeter(node="generate")
        records: list[CallRecord] = []
        for each in (shown for trees in self.trees.values() for shown in trees.all):
            chunks = self._chunks(each, {})
            messages = reader_messages(each.query, render_evidence(chunks), self._prompts)
            record = expected_record(messages, PLAIN_TEXT, model=model, meter=meter)
            records += [record] * _CALLS[self.options.strategy](len(chunks))
        return ReadingCost(
            contexts=sum(len(trees.all) for trees in self.trees.values()),
            trees=sum(len(trees.roots) for trees in self.trees.values()),
            usage=total_usage(records),
            cost=self._prices.cost_of(usage_by_model(records)),
        )

    def answer(
        self, *, on_progress: Callable[[int, int], None] | None = None, on_setup: StageProgress | None = None
    ) -> tuple[pd.DataFrame, ReadingSummary]:
        """Answer every tree, or as many questions as the limits allow.

        Returns:
            A row for each question, policy and budget of answered questions (``question``, ``policy``, ``budget``,
            ``answer``, ``em``, ``f1``; both NaN where the gold answer is unknown), and what was paid.

        Raises:
            UserError: A wrong model or key, a ``max_cost`` for a model without a price, or a call that is not in the
                cache while ``cache`` is "replay".
        """
        limits = ScoringOptions(
            cache=self.options.cache, max_calls=self.options.max_calls, max_cost=self.options.max_cost
        )
        spending = Spending(limits, prices=self._prices)
        with ExitStack() as resources:
            model = open_scoring_model(
                self.settings,
                resources,
                options=limits,
                prices=self._prices,
                spending=spending,
                on_progress=on_setup,
            )
            settings = self.settings
            llm = with_sampling(model.llm, temperature=settings.temperature or None, thinking=settings.thinking)
            answers = self._answer_all(llm, on_progress)
        rows, failed = self._scored(answers)
        used, unanswered = total_usage(self._records), len(self.trees) - len(answers)
        summary = ReadingSummary(
            calls=used["llm_calls"],
            cached_calls=sum(record["cached"] for record in self._records),
            tokens=used["prompt_tokens"] + used["completion_tokens"],
            cost=spending.cost,
            failed=failed,
            unanswered=unanswered,
            stopped_by=spending.exhausted if unanswered else "",
        )
        return rows, summary

    @blocking
    async def _answer_all(
        self, llm: ChatLLM, on_progress: Callable[[int, int], None] | None
    ) -> dict[str, list[str | None]]:
        """Return the answers of each question, in the order of what is shown; None where the model failed."""
        answers: dict[str, list[str | None]] = {}
        waiting = iter(self.trees.items())

        async def work() -> None:
            for question, trees in waiting:
                given: list[str | None] = []
                try:
                    for each in trees.all:
                        given.append(await self._answered(each, given, llm))
                except RunLimitReached:
                    return
                answers[question] = given
                if on_progress is not None:
                    on_progress(len(answers), len(self.trees))

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.options.concurrency, len(self.trees))):
                    group.create_task(work())
        return answers

    async def _answered(self, shown: Shown, below: Sequence[str | None], llm: ChatLLM) -> str | None:
        chunks = self._chunks(shown, dict(enumerate(below)))
        evidence = render_evidence(chunks)
        meter = CallMeter(node="generate")
        try:
            passages = split_evidence(evidence, chunks)
            answer = await read_evidence(
                self.options.strategy, llm, shown.query, evidence, passages, meter=meter, prompts=self._prompts
            )
        except ModelCallError as error:
            logger.warning("the reader failed on %r: %s", shown.query, error)
            return None
        finally:
            self._records += meter.records
        return answer.text

    def _chunks(self, shown: Shown, answers: Mapping[int, str | None]) -> list[Document]:
        """Return the chunks as the reader is shown them, with the answers to what they asked."""
        texts = {str(chunk.metadata["chunk_id"]): chunk for chunk, _ in self.recording.hits(shown.query)}
        found = []
        for chunk_id, tries in shown.chunks:
            asked = [
                {"query": question, "answer": (None if place is None else answers.get(place)) or ""}
                for question, place in tries
            ]
            chunk = texts[chunk_id]
            found.append(Document(page_content=chunk.page_content, metadata={**chunk.metadata, "tries": asked}))
        return found

    def _scored(self, answers: Mapping[str, Sequence[str | None]]) -> tuple[pd.DataFrame, int]:
        rows: list[dict[str, object]] = []
        failed = 0
        for key, given in answers.items():
            asked = self.recording.questions[key]
            question = EvalQuestion(
                id=key,
                question=asked.question,
                answers=asked.answers,
                answers_known=asked.answers_known,
                lang=asked.lang,
                folds_letters=asked.folds_letters,
            )
            for (policy, budget), root in self.trees[key].roots.items():
                answer = None if root is None else given[root]
                failed += answer is None
                row: dict[str, object] = {"question": key, "policy": policy, "budget": budget, "answer": answer or ""}
                if question.answers_known:
                    scores = WRONG if answer is None else score_answer(question, answer, refused=is_refusal(answer))
                    row |= {"em": scores.em, "f1": scores.f1}
                rows.append(row)
        return pd.DataFrame(rows, columns=["question", "policy", "budget", "answer", "em", "f1"]), failed
