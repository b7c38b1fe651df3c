"""Asking a needed chunk again whatever came back, against asking more chunks, at equal calls and at equal tokens.

``python -m benchmarks.again OUT`` writes ``again.csv`` from the MuSiQue file that ``JUDGETREE_BENCH_MUSIQUE`` names.
Writers are right half the time; what decides is how often a second question is right where the first was wrong.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.clusters import clusters_of
from judgetree.evaluation.metrics.intervals import mean_interval
from judgetree.evaluation.replay.play import Episode
from judgetree.evaluation.replay.recording import SearchRecording
from judgetree.evaluation.replay.replays import replay
from judgetree.evaluation.replay.simulated import SimulatedWorld
from judgetree.evaluation.runs.gold import gold_table
from judgetree.evaluation.runs.services import open_corpus
from judgetree.graphs.config.limits import Limits
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import NoisyWriter, noisy_judge
from judgetree.modules.judge.prompts import judge_messages
from judgetree.modules.reader.prompts import reader_messages
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

from .order import BASES, DEPTH, EMBEDDINGS, TOPK, WIDTH, Searching

RETRIES = (0.25, 0.5)
"""P(second question right | first wrong)."""
AUC, WRITER, SEEDS = 0.8, 0.5, 4
BUDGETS = (8, 16, 24, 32, 48, 60, 90, 120)
BASELINE, POLICY = "breadth", "again"


def played(dataset: Dataset, search: Searching, retry: float) -> pd.DataFrame:
    """Play both policies; a row for each question, policy and budget, with means over the seeds."""
    table = gold_table(dataset)
    base, set_base = BASES["musique"]
    frames = []
    for seed in range(SEEDS):
        noise = Noise(auc=AUC, writer=WRITER, retry=retry, base=base, set_base=set_base, seed=seed)
        judge, writer = noisy_judge(table, noise), NoisyWriter(table, noise)
        worlds = {
            each.id: SimulatedWorld(each.question, frozenset(each.supporting), search, judge, writer, dataset.key_field)
            for each in dataset.questions
            if each.supporting
        }
        tokens: dict[tuple[str, str, int], int] = {}

        def note(question: str, policy: str, budget: int, episode: Episode) -> None:
            tokens[question, policy, budget] = tokens_of(worlds[question], episode)  # noqa: B023 - called at once

        limits = Limits(max_rec_depth=DEPTH, width=WIDTH)
        rows = replay(worlds, policies=(BASELINE, POLICY), budgets=BUDGETS, limits=limits, on_played=note)
        places = zip(rows["question"], rows["policy"], rows["budget"], strict=True)
        frames.append(rows.assign(tokens=[tokens[place] for place in places]))
    return pd.concat(frames).groupby(["question", "policy", "budget"], sort=False).mean(numeric_only=True).reset_index()


def tokens_of(world: SimulatedWorld, episode: Episode) -> int:
    """Estimate the prompt tokens of a search: its judgements and its answers, with judgetree's prompts."""
    queries = [world.question, *(each.candidate.next_query for each in episode.expansions if each.candidate.next_query)]
    return sum(_tokens(world, query) for query in queries if query in world.queries)


def _tokens(world: SimulatedWorld, query: str) -> int:
    chunks = world.queries[query].chunks
    judging = sum(message_tokens(judge_messages(query, chunk.text)) for chunk in chunks)
    evidence = "\n\n".join(chunk.text for chunk in chunks if chunk.score)
    return judging + message_tokens(reader_messages(query, evidence))


def compared(rows: pd.DataFrame, clusters: dict[str, str]) -> Iterator[dict[str, object]]:
    """Yield how much ``again`` gains over ``breadth`` at as many calls, and tokens, as ``breadth`` takes at most.

    ``breadth`` then has nothing left to ask. ``again`` is the mix of two budgets that spends as much on average; with
    the largest budget it goes on to ``most``.
    """
    wide = rows.pivot(index="question", columns=["policy", "budget"])
    other = wide["complete"][BASELINE][max(BUDGETS)]
    for spent in ("calls", "tokens"):
        spending = wide[spent].mean()
        wanted, there = spending[BASELINE][max(BUDGETS)], spending[POLICY].sort_index()
        own = _mixed(wide["complete"][POLICY], there, wanted)
        difference = own - other
        groups = [clusters[question] for question in difference.index]
        found = mean_interval(difference.tolist(), scale="amount", clusters=groups)
        yield {
            "equal": spent,
            "spent": wanted,
            "again": own.mean(),
            "breadth": other.mean(),
            "gain": found.mean,
            "low": found.low,
            "high": found.high,
            "most": there.max(),
            "again_most": wide["complete"][POLICY][max(BUDGETS)].mean(),
        }


def _mixed(complete: pd.DataFrame, spending: pd.Series, wanted: float) -> pd.Series:
    """Return each question's outcome at a spending between two budgets; that of the largest where it is not reached."""
    budgets = list(spending.index)
    above = next((place for place, budget in enumerate(budgets) if spending[budget] >= wanted), None)
    if above in (None, 0):
        return complete[budgets[-1 if above is None else 0]]
    low, high = budgets[above - 1], budgets[above]
    share = float(np.clip((wanted - spending[low]) / (spending[high] - spending[low]), 0, 1))
    return (1 - share) * complete[low] + share * complete[high]


def main() -> None:
    """Play MuSiQue and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path, default=Path.home() / ".cache" / "judgetree-order")
    given = parser.parse_args()
    settings = load_settings(home=given.home, embeddings=EMBEDDINGS, checkpoints="memory:")
    dataset = load_dataset(f"musique:{os.environ['JUDGETREE_BENCH_MUSIQUE']}")
    clusters = clusters_of({each.id: each.shares for each in dataset.questions})
    found: list[dict[str, object]] = []
    with open_corpus(dataset, settings) as index:
        retriever = Retriever(index, topk=TOPK, search_type="hybrid")
        of = {**retriever.fingerprint(), "depth": "0", "tries": "1"}
        search = Searching(SearchRecording(given.home / "musique.jsonl", of=of), retriever)
        for retry in RETRIES:
            rows = played(dataset, search, retry)
            found += ({"retry": retry, **each} for each in compared(rows, clusters))
    table = pd.DataFrame(found).round(4)
    given.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.out / "again.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
