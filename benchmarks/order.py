"""When order matters: policies under judges and writers of chosen quality, on recorded searches of two data sets.

``python -m benchmarks.order OUT`` writes ``order.csv``, ``order-calibration.csv`` and a picture for each data set and
way of judging. No model is called; every distinct query is searched once and kept beside the collections.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.many_means import means_of, sign_flip_p_values
from judgetree.evaluation.metrics.statistics import holm
from judgetree.evaluation.replay.recording import Hits, SearchRecording
from judgetree.evaluation.replay.replays import replay
from judgetree.evaluation.replay.simulated import SimulatedWorld
from judgetree.evaluation.replay.world import NotRecorded
from judgetree.evaluation.runs.gold import gold_table
from judgetree.evaluation.runs.services import open_corpus
from judgetree.graphs.config.limits import Limits
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
SEEING_AUCS = (1.0, 0.9, 0.8)
BUDGETS = {"batched": (8, 16, 60), "per chunk": (16, 32, 60)}
POLICIES = (
    "breadth",
    "best_first",
    "best_first:rank_weight=0",
    "value_cost",
    "wider",
    "mcts",
    "random",
    "oracle_order",
)
BASELINE = "breadth"
SEEDS = {"hotpotqa": 5, "musique": 8}
# As in the package's noise: shares of needed chunks and of sufficient sets on the training questions.
BASES = {"hotpotqa": (0.3, 0.5), "musique": (0.22, 0.15)}
_SHOWN = ("breadth", "best_first", "wider", "mcts", "random", "oracle_order")
_NAMES = ("dataset", "questions", "seeds", "judging", "auc", "writer", "scale", "sees_wrong")
_COLOURS = ("#000000", "#0072B2", "#009E73", "#D55E00", "#999999", "#CC79A7")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of a judge and a writer."""

    noise: Noise

    @property
    def judging(self) -> str:
        """How chunks are judged."""
        return "batched" if self.noise.batched else "per chunk"

    @property
    def names(self) -> dict[str, object]:
        """Columns that name the cell."""
        return {
            "judging": self.judging,
            "auc": self.noise.auc,
            "writer": self.noise.writer,
            "scale": self.noise.scale,
            "sees_wrong": self.noise.sees_wrong_questions,
        }


def cells(dataset: str) -> Iterator[Cell]:
    """Yield all combinations; judges of other scales, and those that see wrong questions, with one writer each."""
    base, set_base = BASES[dataset]
    for is_batched in (True, False):
        of = functools.partial(Noise, base=base, set_base=set_base, batched=is_batched)
        for auc, writer in itertools.product(AUCS, WRITERS):
            yield Cell(noise=of(auc=auc, writer=writer))
        for scale in SCALES:
            yield Cell(noise=of(auc=SCALED_AUC, scale=scale))
        for auc in SEEING_AUCS:
            yield Cell(noise=of(auc=auc, writer=min(WRITERS), sees_wrong_questions=True))


def measure_cell(
    cell: Cell, dataset: Dataset, table: GoldTable, search: Searching, seeds: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Play all policies and budgets in one cell, once with each seed; returns what was found, and P(needed)."""
    played, rated = [], []
    for seed in range(seeds):
        noise = replace(cell.noise, seed=seed)
        judge, writer = noisy_judge(table, noise), NoisyWriter(table, noise)
        worlds = {
            each.id: SimulatedWorld(each.question, frozenset(each.supporting), search, judge, writer, dataset.key_field)
            for each in dataset.questions
            if each.supporting
        }
        rows = replay(
            worlds,
            policies=POLICIES,
            budgets=BUDGETS[cell.judging],
            limits=Limits(max_rec_depth=DEPTH, width=WIDTH),
        )
        played.append(rows)
        rated += [rating for world in worlds.values() for rating in ratings(world, table)]
    return averaged(pd.concat(played)).assign(**cell.names), calibration(rated).assign(**cell.names)


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Average each question over seeds, then over questions, and compare each policy with breadth on the same ones.

    Returns:
        A row for each budget and policy: ``complete`` with ``low`` and ``high``, ``recall``, ``calls``, and ``gain``
        with ``gain_low``, ``gain_high`` and ``p``. Intervals are 95 % bootstraps over questions, p values of
        permutations, adjusted by Holm over the policies of the budget.
    """
    by = ["budget", "policy"]
    scores = rows.pivot_table(index="question", columns=by, values="complete", aggfunc="mean", sort=False)
    means = means_of(scores.to_numpy())
    table = pd.DataFrame({"complete": means.mean, "low": means.low, "high": means.high}, index=scores.columns)
    table[["recall", "calls"]] = rows.groupby(by)[["recall", "calls"]].mean()
    others = [cell for cell in scores if cell[1] != BASELINE]
    differences = scores[others].to_numpy() - scores[[(budget, BASELINE) for budget, _ in others]].to_numpy()
    gains = means_of(differences)
    columns = {"gain": gains.mean, "gain_low": gains.low, "gain_high": gains.high, "p": sign_flip_p_values(differences)}
    table = table.join(pd.DataFrame(columns, index=scores[others].columns))
    table["p"] = table["p"].dropna().groupby(level="budget").transform(holm)
    return table.reset_index()


class Rating(NamedTuple):
    """A probability that a judge gave, and what is true."""

    asked_by: str
    """"question" or "sub-question"."""
    p_needed: float
    needed: bool
    """Whether the query needs the chunk."""
    gold: bool
    """Whether the question of the tree needs it."""


def ratings(world: SimulatedWorld, table: GoldTable) -> Iterator[Rating]:
    """Yield P(needed) of all chunks of all queries that any policy asked, with what is true of them."""
    for query, judged in world.queries.items():
        asked_by = "question" if query == world.question else "sub-question"
        needed = frozenset().union(*(need.keys for need in table.needs(query)))
        for chunk in judged.chunks:
            yield Rating(asked_by, chunk.p_needed or 0.0, bool(needed & chunk.keys), bool(world.gold & chunk.keys))


def calibration(rated: Iterable[Rating]) -> pd.DataFrame:
    """Compute mean P(needed) beside the shares of needed and of gold chunks, for questions and sub-questions."""
    by = pd.DataFrame(rated).groupby("asked_by")
    return by.mean().assign(chunks=by.size()).reset_index()


class Searching:
    """Searches each query once, and from the recording ever after."""

    def __init__(self, recording: SearchRecording, retriever: Retriever) -> None:
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


def measure(name: str, file: str, home: Path) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Measure the cells of a data set one by one; says its progress on standard error."""
    settings = load_settings(home=home, embeddings=EMBEDDINGS, checkpoints="memory:")
    dataset = load_dataset(f"{name}:{file}")
    table = gold_table(dataset)
    names = {"dataset": name, "questions": len(dataset.questions), "seeds": SEEDS[name]}
    with open_corpus(dataset, settings) as index:
        retriever = Retriever(index, topk=TOPK, search_type="hybrid")
        of = {**retriever.fingerprint(), "depth": "0", "tries": "1"}
        search = Searching(SearchRecording(home / f"{name}.jsonl", of=of), retriever)
        for cell in cells(name):
            started = time.perf_counter()
            found, rated = measure_cell(cell, dataset, table, search, SEEDS[name])
            print(name, cell.names, f"{time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
            yield found.assign(**names), rated.assign(**names)


def draw(rows: pd.DataFrame, title: str) -> Figure:
    """Draw evidence complete by budget: a panel for each AUC and writer, a line for each policy."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    panels = figure.subplots(len(WRITERS), len(AUCS), sharex=True, sharey=True)
    for row, writer in enumerate(WRITERS):
        for column, auc in enumerate(AUCS):
            axes = panels[row][column]
            here = rows[(rows["auc"] == auc) & (rows["writer"] == writer)]
            for policy, colour in zip(_SHOWN, _COLOURS, strict=True):
                line = here[here["policy"] == policy]
                axes.plot(line["budget"], line["complete"], color=colour, marker="o", markersize=2.5, label=policy)
            axes.set_title(f"judge AUC {auc}, writer {writer}", fontsize=8)
            axes.set_xticks(sorted(set(rows["budget"])))
            axes.grid(visible=True, alpha=0.3)
    figure.supxlabel("model calls a question")
    figure.supylabel("evidence complete")
    figure.suptitle(title)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def draw_all(found: pd.DataFrame, out: Path) -> None:
    """Write a picture for each data set and way of judging, of judges with a scale of 1 that see no wrong question."""
    mpl.rcParams["svg.hashsalt"] = "judgetree"
    plain = found[(found["scale"] == 1.0) & ~found["sees_wrong"]]
    for (name, judging), part in plain.groupby(["dataset", "judging"]):
        of = f"{part['questions'].iloc[0]} questions, {part['seeds'].iloc[0]} seeds, topk {TOPK}, depth {DEPTH}"
        picture = out / f"order-{name}-{str(judging).replace(' ', '-')}.svg"
        draw(part, f"{name}, {judging}: {of}").savefig(picture, metadata={"Date": None})


def _in_columns(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return one table, the columns that name a cell first."""
    table = pd.concat(tables).round(4)
    return table[[*(name for name in _NAMES if name in table), *(name for name in table if name not in _NAMES)]]


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
    measured = [cell for name, file in files.items() for cell in measure(name, file, given.home)]
    found, rated = (_in_columns(tables) for tables in zip(*measured, strict=True))
    found.to_csv(given.out / "order.csv", index=False)
    rated.to_csv(given.out / "order-calibration.csv", index=False)
    draw_all(found, given.out)


if __name__ == "__main__":
    main()
