"""When order matters: policies under judges and writers of chosen quality, on recorded searches of two data sets.

``python -m benchmarks.order OUT`` writes ``order.csv`` and a picture for each data set and way of judging. No model is
called; every distinct query is searched once and kept beside the collections.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.replay.recording import Hits, Recording
from judgetree.evaluation.replay.replays import replay
from judgetree.evaluation.replay.simulated import SimulatedWorld
from judgetree.evaluation.replay.summary import summarize
from judgetree.evaluation.replay.world import NotRecorded
from judgetree.evaluation.runs.gold_table import gold_table
from judgetree.evaluation.runs.services import open_corpus
from judgetree.graphs.threads.context import Limits
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.gold import GoldTable
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import NoisyWriter, noisy_judge
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

VARIABLES = {"hotpotqa": "JUDGETREE_BENCH_HOTPOTQA", "musique": "JUDGETREE_BENCH_MUSIQUE"}
EMBEDDINGS = "local:minilm"
TOPK, DEPTH, WIDTH = 5, 3, 1
AUCS = (1.0, 0.95, 0.9, 0.8, 0.7)
WRITERS = (1.0, 0.75, 0.5)
SCALES = (0.5, 2.0)
SCALED_AUC = 0.8
BUDGETS = (8, 16, 32, 60)
POLICIES = (
    "breadth",
    "best_first",
    "best_first:rank_weight=0",
    "best_first:rank_weight=1",
    "value_cost",
    "wider",
    "mcts",
    "mcts:backup=mean",
    "random",
    "oracle_order",
)
# As in the package's noise: shares of needed chunks and of sufficient sets on the training questions.
BASES = {"hotpotqa": (0.3, 0.5), "musique": (0.22, 0.15)}
_SHOWN = ("breadth", "best_first", "wider", "mcts", "random", "oracle_order")
_COLOURS = ("#000000", "#0072B2", "#009E73", "#D55E00", "#999999", "#CC79A7")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of a judge and a writer."""

    noise: Noise

    @property
    def names(self) -> dict[str, object]:
        """Columns that name the cell."""
        return {
            "judging": "batched" if self.noise.batched else "per chunk",
            "auc": self.noise.auc,
            "writer": self.noise.writer,
            "scale": self.noise.scale,
        }


def cells(dataset: str) -> Iterator[Cell]:
    """Yield all combinations, miscalibrated ones at one AUC."""
    base, set_base = BASES[dataset]
    for is_batched in (True, False):
        of = functools.partial(Noise, base=base, set_base=set_base, batched=is_batched)
        for auc, writer in itertools.product(AUCS, WRITERS):
            yield Cell(noise=of(auc=auc, writer=writer))
        for scale, writer in itertools.product(SCALES, WRITERS):
            yield Cell(noise=of(auc=SCALED_AUC, writer=writer, scale=scale))


def measure_cell(cell: Cell, dataset: Dataset, table: GoldTable, search: Searching) -> pd.DataFrame:
    """Play all policies and budgets in one cell and summarize them."""
    judge, writer = noisy_judge(table, cell.noise), NoisyWriter(table, cell.noise)
    worlds = {
        each.id: SimulatedWorld(each.question, frozenset(each.supporting), search, judge, writer, dataset.key_field)
        for each in dataset.questions
        if each.supporting
    }
    rows = replay(
        worlds,
        policies=POLICIES,
        budgets=BUDGETS,
        limits=Limits(max_rec_depth=DEPTH, width=WIDTH),
    )
    return summarize(rows).assign(**cell.names)


class Searching:
    """Searches each query once, and from the recording ever after."""

    def __init__(self, recording: Recording, retriever: Retriever) -> None:
        self._recording = recording
        self._retriever = retriever

    def __call__(self, query: str) -> Hits:
        """Return what a query finds."""
        try:
            return self._recording.hits(query)
        except NotRecorded:
            return background_loop().run(self._recording.search(query, self._ask))

    async def _ask(self, query: str) -> Hits:
        return await self._retriever.asearch(query, meter=CallMeter(node="record"))


def measure(name: str, file: str, home: Path) -> pd.DataFrame:
    """Measure all cells of a data set; says its progress on standard error."""
    settings = load_settings(home=home, embeddings=EMBEDDINGS, checkpoints="memory:")
    dataset = load_dataset(f"{name}:{file}")
    table = gold_table(dataset)
    tables: list[pd.DataFrame] = []
    with open_corpus(dataset, settings) as index:
        retriever = Retriever(index, topk=TOPK, search_type="hybrid")
        of = {**retriever.fingerprint(), "tries": "1"}
        search = Searching(Recording(home / f"{name}.jsonl", of=of), retriever)
        for cell in cells(name):
            started = time.perf_counter()
            tables.append(
                measure_cell(cell, dataset, table, search).assign(dataset=name, questions=len(dataset.questions))
            )
            print(name, cell.names, f"{time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return pd.concat(tables)


def draw(rows: pd.DataFrame, title: str) -> Figure:
    """Draw evidence complete by budget: a panel for each AUC and writer, a line for each policy."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    panels = figure.subplots(len(WRITERS), len(AUCS), sharex=True, sharey=True)
    for row, writer in enumerate(WRITERS):
        for column, auc in enumerate(AUCS):
            axes = panels[row][column]
            here = rows[(rows["auc"] == auc) & (rows["writer"] == writer) & (rows["scale"] == 1.0)]
            for policy, colour in zip(_SHOWN, _COLOURS, strict=True):
                line = here[here["policy"] == policy]
                axes.plot(line["budget"], line["complete"], color=colour, marker="o", markersize=2.5, label=policy)
            axes.set_title(f"judge AUC {auc}, writer {writer}", fontsize=8)
            axes.set_xticks(BUDGETS)
            axes.grid(visible=True, alpha=0.3)
    figure.supxlabel("model calls a question")
    figure.supylabel("evidence complete")
    figure.suptitle(title)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the data sets that the environment names, and write table and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path, default=Path.home() / ".cache" / "judgetree-order")
    given = parser.parse_args(arguments)
    files = {name: os.environ[variable] for name, variable in VARIABLES.items() if os.environ.get(variable)}
    if not files:
        sys.exit(f"Nothing to measure: {' and '.join(VARIABLES.values())} name the files of the data sets.")
    given.out.mkdir(parents=True, exist_ok=True)
    rows = pd.concat([measure(name, file, given.home) for name, file in files.items()])
    rows.round(4).to_csv(given.out / "order.csv", index=False)
    mpl.rcParams["svg.hashsalt"] = "judgetree"
    for (name, judging), part in rows.groupby(["dataset", "judging"]):
        title = f"{name}, {judging}: {part['questions'].iloc[0]} questions, topk {TOPK}, depth {DEPTH}"
        picture = given.out / f"order-{name}-{str(judging).replace(' ', '-')}.svg"
        draw(part, title).savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
