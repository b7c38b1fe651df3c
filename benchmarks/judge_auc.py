"""How well a judge separates the paragraphs that a question needs from similar ones.

    python -m benchmarks.judge_auc --data hotpotqa_500.json --n 50 --llm local: --json figures.json
    python -m benchmarks.judge_auc --data hotpotqa_train_100.json --n 100 --methods logprob --tune

Each question of a HotpotQA file gives its two gold paragraphs and, of its other paragraphs, the two that BM25 finds
most like the question. A method rates the four; its AUC within the question is the share of the gold-distractor pairs
in which the gold paragraph is rated higher. Reported are the mean over questions, a bootstrap interval over questions,
the time of a call, and how often each verdict was given. ``--tune`` prints the threshold that the ratings suggest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from langchain_core.documents import Document

from judgetree.evaluation.calibration.data import DISTRACTORS, Bm25, Case
from judgetree.evaluation.calibration.judge_figures import auc
from judgetree.evaluation.metrics.intervals import mean_interval
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.judge.contract import Judge, Verdict
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.judge.logprob import LogprobJudge
from judgetree.modules.judge.thresholds import thresholds_for
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.contract import ChatLLM
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import load_settings

PASSAGE_CHARACTERS = 700
METHODS = ("embedding", "logprob", "generated")


# --- the pairs ---


def case_of(question: str, paragraphs: Sequence[tuple[str, Sequence[str]]], gold_titles: Iterable[str]) -> Case:
    """Make the case of a HotpotQA question; ``paragraphs`` are (title, sentences)."""
    titles = set(gold_titles)
    passages = [f"{title}. {''.join(sentences).strip()}"[:PASSAGE_CHARACTERS] for title, sentences in paragraphs]
    is_gold = [title in titles for title, _ in paragraphs]
    gold_places = [at for at, gold in enumerate(is_gold) if gold]
    others = Bm25(passages).likeliest(question, DISTRACTORS, without=gold_places)
    return Case(
        question=question,
        gold=tuple(passage for passage, gold in zip(passages, is_gold, strict=True) if gold),
        distractors=tuple(passages[at] for at in others),
    )


def load_cases(path: Path, n: int) -> list[Case]:
    """Load the cases of the first ``n`` questions of a HotpotQA file."""
    rows = json.loads(path.read_text(encoding="utf-8"))[:n]
    return [case_of(row["question"], row["context"], (title for title, _ in row["supporting_facts"])) for row in rows]


# --- the threshold ---


def best_threshold(gold: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return (threshold, balanced accuracy) of the best cut, the middle one of a tie; gold is at or above the cut."""
    rated = sorted({*gold, *others})
    cuts = [rated[0], *((low + high) / 2 for low, high in itertools.pairwise(rated))]
    accuracies = [
        (np.mean([rating >= cut for rating in gold]) + np.mean([rating < cut for rating in others])) / 2 for cut in cuts
    ]
    best = [cut for cut, accuracy in zip(cuts, accuracies, strict=True) if accuracy >= max(accuracies) - 1e-12]
    return best[len(best) // 2], float(max(accuracies))


# --- methods ---


@dataclass(frozen=True, kw_only=True)
class Rating:
    """Rating of one passage by a method."""

    value: float | None
    """Higher is more needed; None where the method failed."""
    verdict: str
    """"0", "1", "2" or "unknown"; "" for a method that gives none."""
    seconds: float


Rate = Callable[[str, str], Awaitable[Rating]]


def by_embedding(embedder: Embedder) -> Rate:
    """Rate by the cosine similarity of question and passage."""

    async def rate(question: str, passage: str) -> Rating:
        started = time.perf_counter()
        one, other = (np.asarray(vector) for vector in await embedder.aembed_documents([question, passage]))
        cosine = float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
        return Rating(value=cosine, verdict="", seconds=time.perf_counter() - started)

    return rate


def by_logprob(llm: ChatLLM) -> Rate:
    """Rate by P(needed), with the verdict of the model's first threshold."""
    judge = LogprobJudge(llm, thresholds=replace(thresholds_for(llm.model), alone=None))

    async def rate(question: str, passage: str) -> Rating:
        verdict, seconds = await _judged(judge, question, passage)
        confidence = verdict.confidence
        needed = None if confidence is None else confidence if verdict.score == 1 else 1.0 - confidence
        return Rating(value=needed, verdict=_name_of(verdict), seconds=seconds)

    return rate


def by_generation(llm: ChatLLM) -> Rate:
    """Rate by the score that the model writes, repairs included."""
    judge = GeneratedJudge(llm)

    async def rate(question: str, passage: str) -> Rating:
        verdict, seconds = await _judged(judge, question, passage, expand=True)
        return Rating(value=verdict.score, verdict=_name_of(verdict), seconds=seconds)

    return rate


async def _judged(judge: Judge, question: str, passage: str, *, expand: bool = False) -> tuple[Verdict, float]:
    started = time.perf_counter()
    chunk = Document(page_content=passage)
    verdict = await judge.judge(question, chunk, meter=CallMeter(node="judge"), expand=expand)
    return verdict, time.perf_counter() - started


def _name_of(verdict: Verdict) -> str:
    return "unknown" if verdict.score is None else str(verdict.score)


# --- the table ---


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures of a method."""

    method: str
    questions: int
    auc: float
    """Mean over questions of the AUC within each."""
    low: float
    high: float
    median_s: float
    p90_s: float
    verdicts: dict[str, float]
    """Share of each verdict; empty for a method that gives none."""


Ratings = tuple[list[Rating], list[Rating]]
"""Of one question: its gold paragraphs and its distractors."""


def figures_of(method: str, ratings: Sequence[Ratings], *, seed: int) -> Figures:
    """Compute the figures of a method."""
    within = [auc([each.value for each in gold], [each.value for each in others]) for gold, others in ratings]
    every = [rating for gold, others in ratings for rating in (*gold, *others)]
    interval = mean_interval(within, scale="amount", seed=seed)
    seconds = [rating.seconds for rating in every]
    counts = Counter(rating.verdict for rating in every if rating.verdict)
    return Figures(
        method=method,
        questions=len(ratings),
        auc=interval.mean,
        low=interval.mean if interval.low is None else interval.low,
        high=interval.mean if interval.high is None else interval.high,
        median_s=float(np.median(seconds)),
        p90_s=float(np.quantile(seconds, 0.9)),
        verdicts={name: count / len(every) for name, count in sorted(counts.items())},
    )


def as_table(rows: Sequence[Figures]) -> str:
    """Format the figures as a Markdown table."""
    lines = ["| method | AUC within the question | 95 % | median s | p90 s | verdicts |", "|---|---|---|---|---|---|"]
    for row in rows:
        shares = ", ".join(f"{name}: {share:.0%}" for name, share in row.verdicts.items())
        lines.append(
            f"| {row.method} | {row.auc:.3f} | {row.low:.3f} to {row.high:.3f} "
            f"| {row.median_s:.2f} | {row.p90_s:.2f} | {shares} |"
        )
    return "\n".join(lines)


# --- the command ---


async def rate_all(rate: Rate, cases: Sequence[Case]) -> list[Ratings]:
    """Rate all cases, one call after the other: an embedded model has one slot."""
    return [
        (
            [await rate(case.question, passage) for passage in case.gold],
            [await rate(case.question, passage) for passage in case.distractors],
        )
        for case in cases
    ]


def _rate_of(method: str, llm_spec: str) -> Rate:
    settings = load_settings()
    if method == "embedding":
        return by_embedding(create_embeddings("local:minilm", settings, cache=False))
    llm = create_llm(llm_spec, settings, CallGate(1))
    return by_logprob(llm) if method == "logprob" else by_generation(llm)


def _tuned(ratings: Sequence[Ratings]) -> str:
    gold, others = ([each.value for row in ratings for each in row[at] if each.value is not None] for at in (0, 1))
    threshold, accuracy = best_threshold(gold, others)
    return f"threshold {threshold:.4f}: balanced accuracy {accuracy:.3f}, AUC over all pairs {auc(gold, others):.3f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the methods and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a HotpotQA file")
    parser.add_argument("--n", type=int, default=50, help="how many of its questions, from the first (50)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--llm", default="local:", help="model as in JUDGETREE_LLM, or URL#MODEL (local:)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (0)")
    parser.add_argument("--tune", action="store_true", help="also print the threshold of the best balanced accuracy")
    parser.add_argument("--json", type=Path, help="write the rows, and every rating, to this file")
    options = parser.parse_args(arguments)
    cases = load_cases(options.data, options.n)
    rows, kept = [], {}
    for method in options.methods:
        ratings = background_loop().run(rate_all(_rate_of(method, options.llm), cases))
        rows.append(figures_of(method, ratings, seed=options.seed))
        kept[method] = [[[asdict(each) for each in side] for side in row] for row in ratings]
        if options.tune:
            print(f"{method}: {_tuned(ratings)}", flush=True)
    print(as_table(rows), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows], "ratings": kept}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
