"""Graphs of a collection as ``judgetree index --graph`` makes them; a model is asked once its cost is confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...graphs.drawing.words import count_of
from ...modules.calls.prices import load_prices
from ...modules.errors import SettingsError
from ...modules.extraction.extraction import ExtractionReport, build_triple_graph, extract_triples
from ...modules.extraction.plan import ExtractionPlan, TripleModel, plan_extraction
from ...modules.index.factory import open_index
from ...modules.index.writer_lock import WAIT_S
from ...modules.llm.call_gate import CallGate
from ...modules.llm.factory import create_llm
from ...modules.prompts.reading import load_prompts
from ...modules.settings import Settings, load_settings
from ...modules.structure import triples
from ...modules.structure.building import GraphReport, build_graph
from ...modules.structure.graph_files import GraphFiles
from ...modules.structure.passages import passages_of
from .terminal import agrees, busy, progress_bar, resumable, say

_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is said about the model that draws triples."""

    llm: str | None = None
    prompts: Path | None = None
    max_passages: int | None = None
    max_cost_usd: float | None = None
    is_confirmed: bool = False
    wait_s: float = WAIT_S
    """Most seconds to wait for another process that makes the same graph."""


@dataclass(frozen=True, kw_only=True)
class MadeGraph:
    """A graph that was made, and the extraction that it is made of; None for a graph without a model."""

    graph: GraphReport
    model: str = ""
    extraction: ExtractionReport | None = None

    @property
    def failed(self) -> int:
        """Number of passages whose triples could not be had."""
        return len(self.extraction.failed) if self.extraction else 0

    def to_document(self) -> dict[str, object]:
        """Return both as plain data for ``json.dumps``."""
        if self.extraction is None:
            return asdict(self.graph)
        return {**asdict(self.graph), "extraction": {"model": self.model, **self.extraction.to_document()}}

    def lines(self) -> Iterator[str]:
        """Yield lines of text."""
        report = self.graph
        edges = ", ".join(f"{count:,} {name}" for name, count in sorted(report.edges.items()))
        yield (
            f"graph {report.kind}: {count_of(report.passages, 'passage')}, {count_of(report.phrases, 'phrase')}, "
            f"edges {edges}; "
            f"{report.bytes / 1e6:.1f} MB, {report.seconds:.1f} s"
        )
        if (drawn := self.extraction) is None:
            return
        number = sum(map(len, drawn.triples.values()))
        yield (
            f"triples: {count_of(number, 'triple')} of {count_of(len(drawn.triples), 'passage')} by {self.model}, "
            f"{count_of(drawn.dropped, 'entry')} dropped; {count_of(drawn.calls, 'call')} paid, {drawn.cost}, "
            f"{drawn.seconds:.1f} s"
        )
        for failed in drawn.failed[:_NAMED]:
            yield f"no triples of {failed.source or failed.chunk_id}: {failed.problem}"
        if len(drawn.failed) > _NAMED:
            yield f"and {len(drawn.failed) - _NAMED} more without triples; --json names all"
        if missing := drawn.left + len(drawn.failed):
            yield f"{count_of(missing, 'passage')} left without triples; the same command asks about them"


def make_graphs(collection: str, kinds: Sequence[str], options: ModelOptions) -> Iterator[MadeGraph]:
    """Make graphs of a collection, and yield each once it is kept.

    The collection is closed while a model is asked, so that others can use it.

    Raises:
        SettingsError: The cost was not confirmed, or the model's settings are wrong.
        UserError: As ``build_graph`` and ``extract_triples``.
    """
    settings = load_settings()
    for kind in kinds:
        if kind == triples.KIND:
            yield _triple_graph(collection, options)
            continue
        with progress_bar() as on_progress, open_index(collection, settings) as index:
            graph = build_graph(index, kind, settings.home, on_progress)
        yield MadeGraph(graph=graph)


def _triple_graph(collection: str, options: ModelOptions) -> MadeGraph:
    settings = load_settings(llm=options.llm, prompts=options.prompts)
    with busy("opening the collection"), open_index(collection, settings) as index:
        files = GraphFiles.of(index, settings.home)
    # The collection is closed, so that the other process can read it to the end.
    with files.making(triples.KIND, wait_s=options.wait_s, on_wait=_say_waiting):
        return _made_alone(collection, settings, options)


def _say_waiting(maker: str) -> None:
    say(f"Waiting for {maker}, which draws triples of the same collection: what it pays for is not paid again.")


def _made_alone(collection: str, settings: Settings, options: ModelOptions) -> MadeGraph:
    with progress_bar() as on_progress:
        llm = create_llm(settings.llm_spec, settings, CallGate(settings.max_concurrency), on_progress=on_progress)
        model = TripleModel(
            llm=llm,
            home=settings.home,
            prompts=load_prompts(settings.prompts),
            prices=load_prices(settings.home),
            at_once=settings.max_concurrency,
        )
        with open_index(collection, settings) as index:
            plan = plan_extraction(passages_of(index), model)
    _confirm(plan, settings, options)
    with resumable(lambda: "The triples so far are kept"), progress_bar() as on_progress:
        report = extract_triples(
            plan,
            model,
            max_passages=options.max_passages,
            max_cost_usd=options.max_cost_usd,
            on_progress=on_progress,
        )
    with progress_bar() as on_progress, open_index(collection, settings) as index:
        graph = build_triple_graph(index, report, settings.home, on_progress)
    return MadeGraph(graph=graph, model=plan.model, extraction=report)


def _confirm(plan: ExtractionPlan, settings: Settings, options: ModelOptions) -> None:
    say(
        f"triples: {count_of(plan.passages, 'passage')}, {len(plan.kept):,} drawn already; "
        f"{count_of(plan.calls, 'call')} to {plan.model}, about {plan.prompt_tokens:,} tokens of prompts "
        f"and {plan.reply_tokens:,} of replies, "
        f"cost {plan.cost}"
    )
    limits = [
        f"{name} {value:g}"
        for name, value in (("--max-passages", options.max_passages), ("--max-cost", options.max_cost_usd))
        if value is not None
    ]
    if limits:
        say(f"At most {', '.join(limits)} of it now.")
    if (
        plan.calls
        and not options.is_confirmed
        and not agrees(f"Ask {plan.model} about {count_of(plan.calls, 'passage')}?")
    ):
        raise SettingsError("Nothing was asked. The collection and earlier graphs are as they were.")
