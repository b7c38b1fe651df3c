"""The triples of the passages of a collection, drawn by a model."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..background_loop import async_twin, blocking
from ..calls.budget import TreeBudget
from ..calls.completion import Completion
from ..calls.ledger import SpendLimits
from ..calls.prices import Cost, Prices, usage_by_model
from ..calls.record import CallRecord
from ..calls.usage import CallMeter
from ..errors import (
    BudgetSpent,
    CollectionError,
    ModelCallError,
    ModelRequestError,
    SettingsError,
    UserError,
    ungrouped,
)
from ..index.index import Index
from ..llm.cache import CachedLLM, CompletionCache
from ..llm.json_reply import JsonChat, ReplyProblem, ask_until_usable
from ..progress import StageProgress
from ..structure.building import GraphReport, build_graph
from ..structure.triples import KIND, Triple, triple_graph
from .cache import FILE_NAME, KeptTriples, TripleCache
from .plan import ExtractionJob, ExtractionPlan, TripleModel, prices_of
from .prompts import MOST_REPLY_TOKENS, TRIPLES_SCHEMA, triples_messages
from .replies import Extracted, parse_triples

STAGE = "triples"
MOST_FAILURES = 20
"""So many failed calls in a row end an extraction; once a call has succeeded, those refused for good do not count."""
_NODE = "extract_triples"
_REPAIRS = 1
_NO_LIMIT = 10**9


@dataclass(frozen=True, kw_only=True)
class FailedPassage:
    """A passage whose triples could not be had."""

    chunk_id: str
    source: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class ExtractionReport:
    """The result of an extraction."""

    triples: Mapping[str, tuple[Triple, ...]] = field(repr=False)
    """By chunk id, the kept ones included; a chunk that is missing was not asked about, or failed."""
    made_by: str
    """SHA-256 of model, endpoint and prompt."""
    passages: int
    calls: int
    """Calls that were paid for."""
    cached_calls: int
    """Calls that the cache of model calls answered."""
    prompt_tokens: int
    completion_tokens: int
    cost: Cost
    """Cost of ``calls``."""
    dropped: int
    """Entries of all replies, the kept ones included, that were no usable triple."""
    failed: tuple[FailedPassage, ...]
    left: int
    """Passages that were not asked about, for a limit."""
    seconds: float

    def to_document(self) -> dict[str, object]:
        """Return the figures as plain data for ``json.dumps``."""
        given = {name: value for name, value in vars(self).items() if name not in ("triples", "cost", "failed")}
        return {
            **given,
            "triples": sum(map(len, self.triples.values())),
            "cost_usd": self.cost.usd,
            "failed": [vars(each) for each in self.failed],
        }


@blocking
async def extract_triples(
    plan: ExtractionPlan,
    model: TripleModel,
    *,
    max_passages: int | None = None,
    max_cost_usd: float | None = None,
    on_progress: StageProgress | None = None,
) -> ExtractionReport:
    """Ask the model about the texts of a plan, several at once, and keep each reply as soon as it is read.

    A passage whose reply cannot be had or read is named in the report, and the others go on. What was read is kept
    when the work is cancelled or killed: a new plan asks only about the rest. Two extractions at once pay twice for
    what neither has kept; ``judgetree index --graph triples`` waits for another one.

    ::

        model = TripleModel(llm=llm, home=settings.home)
        with open_index("papers", settings) as index:
            plan = plan_extraction(passages_of(index), model)
        print(plan.calls, plan.cost)
        report = extract_triples(plan, model)

    Args:
        plan: What ``plan_extraction`` returned.
        model: The model of the plan.
        max_passages: Most texts to ask about; None for all.
        max_cost_usd: Most US dollars to spend; None for no limit. Calls in flight may exceed it by what they use beyond
            their estimates.
        on_progress: Called on judgetree's background thread with (done, total, stage) after each text.

    Raises:
        SettingsError: ``max_cost_usd`` is given, and the price of the model is unknown.
        ModelSetupError: The endpoint can serve no request.
        ModelCallError: The first 20 calls all failed.
    """
    prices = prices_of(model)
    if max_cost_usd is not None and prices.of(model.llm.model) is None:
        raise SettingsError(
            f"A limit of ${max_cost_usd:g} cannot be kept, since the price of {model.llm.model!r} is unknown. Write it "
            "into prices.toml in the data folder, or leave the limit out."
        )
    budget = TreeBudget(limit=_NO_LIMIT, ledger=SpendLimits(max_tree_cost_usd=max_cost_usd, prices=prices))
    with TripleCache(model.home / FILE_NAME) as kept, CompletionCache(model.home / "completions.sqlite") as calls:
        llm = CachedLLM(model.llm, calls, endpoint=model.llm.endpoint)
        work = _Extraction(plan=plan, model=model, llm=llm, cache=kept, budget=budget, report=on_progress)
        started = time.monotonic()
        await work.run(plan.asked[:max_passages])
    return work.outcome(prices, time.monotonic() - started)


aextract_triples = async_twin(extract_triples)


class _Extraction:
    """One extraction. Use it on judgetree's background loop."""

    def __init__(
        self,
        *,
        plan: ExtractionPlan,
        model: TripleModel,
        llm: CachedLLM,
        cache: TripleCache,
        budget: TreeBudget,
        report: StageProgress | None,
    ) -> None:
        self._plan, self._model, self._cache, self._budget = plan, model, cache, budget
        self._chat = JsonChat(llm, max_tokens=MOST_REPLY_TOKENS)
        self._report = report or (lambda done, total, stage: None)
        self._found: dict[str, Extracted] = dict(plan.kept)
        self._records: list[CallRecord] = []
        self._failed: list[FailedPassage] = []
        self._done = 0
        self._has_succeeded = False
        self._failed_in_a_row = 0
        self._is_spent = False

    async def run(self, asked: Sequence[ExtractionJob]) -> None:
        """Ask about the texts; ends early once the money is spent."""
        waiting, total = iter(asked), len(asked)
        self._report(0, total, STAGE)
        with ungrouped(UserError), ungrouped(ModelCallError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._model.at_once, total)):
                    group.create_task(self._work_through(waiting, total))

    async def _work_through(self, waiting: Iterator[ExtractionJob], total: int) -> None:
        for asked in waiting:
            if self._is_spent:
                return
            try:
                await self._ask(asked)
            except BudgetSpent:
                self._is_spent = True
                return
            self._done += 1
            self._report(self._done, total, STAGE)

    async def _ask(self, asked: ExtractionJob) -> None:
        meter = CallMeter(node=_NODE, chunk_id=asked.chunk_ids[0], budget=self._budget)
        messages = triples_messages(asked.text, self._model.prompts)
        try:
            extracted = await ask_until_usable(
                self._chat, messages, TRIPLES_SCHEMA, _read, meter=meter, max_repairs=_REPAIRS
            )
        except UserError:
            raise
        except (ModelCallError, ReplyProblem) as error:
            self._fail(asked, error)
            return
        finally:
            self._records += meter.records
        self._note_success()
        tokens = sum(each["completion_tokens"] for each in meter.records[-1:])
        kept = KeptTriples(extracted=extracted, reply_tokens=tokens)
        await asyncio.to_thread(self._cache.put, asked.key, kept)
        self._found |= dict.fromkeys(asked.chunk_ids, extracted)

    def _fail(self, asked: ExtractionJob, error: Exception) -> None:
        problem = " ".join(str(error).split())[:300]
        self._failed += (FailedPassage(chunk_id=each, source=asked.source, problem=problem) for each in asked.chunk_ids)
        if isinstance(error, ReplyProblem):
            self._note_success()  # the endpoint answers
            return
        self._failed_in_a_row += not (self._has_succeeded and isinstance(error, ModelRequestError))
        if self._failed_in_a_row >= MOST_FAILURES:
            raise error

    def _note_success(self) -> None:
        self._has_succeeded, self._failed_in_a_row = True, 0

    def outcome(self, prices: Prices, seconds: float) -> ExtractionReport:
        """Return the report of what was done."""
        paid = [each for each in self._records if not each["cached"]]
        return ExtractionReport(
            triples={chunk_id: each.triples for chunk_id, each in self._found.items()},
            made_by=self._plan.made_by,
            passages=self._plan.passages,
            calls=len(paid),
            cached_calls=len(self._records) - len(paid),
            prompt_tokens=sum(each["prompt_tokens"] for each in paid),
            completion_tokens=sum(each["completion_tokens"] for each in paid),
            cost=prices.cost_of(usage_by_model(paid)),
            dropped=sum(each.dropped for each in self._found.values()),
            failed=tuple(self._failed),
            left=self._plan.passages - len(self._found) - len(self._failed),
            seconds=round(seconds, 2),
        )


def _read(completion: Completion) -> Extracted:
    return parse_triples(completion.text, cut_off=completion.is_cut_off)


def build_triple_graph(
    index: Index, report: ExtractionReport, home: Path, on_progress: StageProgress | None = None
) -> GraphReport:
    """Make the graph of triples of a collection, and keep it below ``home``, the data folder.

    A passage that the report has no triples of is in the graph without edges.

    ::

        model = TripleModel(llm=llm, home=settings.home)
        with open_index("papers", settings) as index:
            report = extract_triples(plan_extraction(passages_of(index), model), model)
            print(build_triple_graph(index, report, settings.home).edges)

    Raises:
        CollectionError: All passages that were asked about failed, so that there is no triple; there is no such
            collection; or it was written to meanwhile.
        WritingError: The graph could not be written.
    """
    if report.failed and not report.triples:
        first = report.failed[0]
        raise CollectionError(
            f"There is no triple to make a graph of: all {len(report.failed):,} passages that were asked about failed, "
            f"the first of them, of {first.source or first.chunk_id}, with: {first.problem} An earlier graph stays as "
            "it was."
        )
    make = functools.partial(triple_graph, triples=report.triples, made_by=report.made_by)
    return build_graph(index, KIND, home, on_progress, make=make)
