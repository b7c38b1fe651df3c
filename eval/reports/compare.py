"""Two systems on the same questions: paired differences, their tests, and a verdict in words."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...modules.errors import SettingsError
from ..metrics.statistics import PairedComparison, adjust_comparisons, compare_paired, verdict_in_words
from ..runs.manifest import PROMPT_LIMITS, STRATEGY_PROMPTS, stored_identity
from ..runs.store import RunStore
from .loaded_run import load_run, score_rows

METRICS = ("em", "f1")
MIN_COMMON = 2
"""Questions that both must have a score on."""
SHARED = (
    "dataset",
    "dataset_digest",
    "corpus_digest",
    "corpus",
    "embeddings",
    "topk",
    "search_type",
    "ranker_type",
    "ranker_params",
    "llm",
    "strategy",
    *STRATEGY_PROMPTS,
    "history",
    "conversation",
    *PROMPT_LIMITS,
)
"""What two runs must have in common, for their difference to be that of the systems: data, retriever and reader."""
SHARED_PROMPTS = ("reader_prompt", "closed_book_prompt", "conversation_prompt")
"""Likewise, where both have systems that use them."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One system of one run."""

    run: Path
    system: str
    scores: Mapping[str, Mapping[str, float]]
    """By metric, then by question; repeats of a question are its mean."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two contenders by one metric."""

    a: str
    b: str
    paired: PairedComparison
    """p values are adjusted over all comparisons made together (Holm)."""

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        return verdict_in_words(self.paired, a=self.a, b=self.b)


def compare_runs(a: Path, b: Path | None = None, *, force: bool = False) -> list[Comparison]:
    """Compare the systems of one run with each other, or each system of ``a`` with that of the same name in ``b``.

    Where two runs have no system in common, each of ``a`` meets each of ``b``. EM is tested by McNemar's exact test (by
    sign flips where questions were repeated), F1 by sign flips, p values adjusted together.

    Raises:
        SettingsError: The runs differ in data, retriever or reader and ``force`` is not set, they share no question,
            or there are no two systems.
        UserError: See ``loaded_run.load_run``.
    """
    if b is not None and not force:
        _refuse_unlike(a, b)
    pairs = list(itertools.combinations(_contenders(a), 2)) if b is None else _across(a, b)
    if not pairs:
        raise SettingsError(f"{a} holds one system. Name a second run, or run another system into it.")
    return _compare_all([(one, two, metric) for one, two in pairs for metric in METRICS], b)


def compare_systems(run: Path, frame: pd.DataFrame) -> list[Comparison]:
    """``compare_runs`` for the systems of one run that is scored already, wherever two can be compared.

    Systems that share fewer than two questions with a score are not; a run of one system has no comparison.

    Args:
        run: Its directory, to be named.
        frame: As from ``frames.question_frame``.
    """
    pairs = itertools.combinations(_contenders_in(run, frame), 2)
    meetings = [(one, two, metric) for one, two in pairs for metric in METRICS]
    return _compare_all([meeting for meeting in meetings if len(_common(*meeting)) >= MIN_COMMON], None)


def _compare_all(meetings: Sequence[tuple[Contender, Contender, str]], second_run: Path | None) -> list[Comparison]:
    adjusted = adjust_comparisons([_compare(*meeting) for meeting in meetings])
    return [
        Comparison(a=_name(one, second_run), b=_name(two, second_run), paired=paired)
        for (one, two, _), paired in zip(meetings, adjusted, strict=True)
    ]


def _across(a: Path, b: Path) -> list[tuple[Contender, Contender]]:
    pairs = list(itertools.product(_contenders(a), _contenders(b)))
    return [(one, two) for one, two in pairs if one.system == two.system] or pairs


def _name(contender: Contender, second_run: Path | None) -> str:
    return contender.system if second_run is None else f"{contender.run}:{contender.system}"


def _contenders(run: Path) -> list[Contender]:
    return _contenders_in(run, score_rows(load_run(run)))


def _contenders_in(run: Path, frame: pd.DataFrame) -> list[Contender]:
    return [
        Contender(run=run, system=str(system), scores={metric: _by_question(part, metric) for metric in METRICS})
        for system, part in frame.groupby("system", sort=False)
    ]


def _by_question(part: pd.DataFrame, metric: str) -> dict[str, float]:
    means = part.groupby("question_id", sort=False)[metric].mean().dropna()
    return {str(question): float(value) for question, value in means.items()}


def _compare(one: Contender, two: Contender, metric: str) -> PairedComparison:
    mine, other = one.scores[metric], two.scores[metric]
    common = _common(one, two, metric)
    if len(common) < MIN_COMMON:
        raise SettingsError(
            f"{one.run}:{one.system} and {two.run}:{two.system} share {len(common)} questions that have {metric}. "
            f"At least {MIN_COMMON} are needed."
        )
    scores_a, scores_b = [mine[question] for question in common], [other[question] for question in common]
    binary = metric == "em" and _are_binary(scores_a) and _are_binary(scores_b)
    return compare_paired(scores_a, scores_b, metric=metric, test="mcnemar" if binary else "permutation")


def _common(one: Contender, two: Contender, metric: str) -> list[str]:
    return [question for question in one.scores[metric] if question in two.scores[metric]]


def _are_binary(scores: Sequence[float]) -> bool:
    return set(scores) <= {0.0, 1.0}


def _refuse_unlike(a: Path, b: Path) -> None:
    one, two = (_identity(run) for run in (a, b))
    both = (name for name in SHARED_PROMPTS if name in one and name in two)
    unlike = [name for name in (*SHARED, *both) if one.get(name) != two.get(name)]
    if unlike:
        differences = "; ".join(f"{name}: {one.get(name)!r} and {two.get(name)!r}" for name in unlike)
        raise SettingsError(
            f"{a} and {b} differ in more than the system ({differences}), so a difference could come from that. "
            "Run them alike, or insist with --force."
        )


def _identity(run: Path) -> Mapping[str, object]:
    return stored_identity(RunStore(run).read_manifest() or {})
