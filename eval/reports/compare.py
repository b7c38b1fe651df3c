"""Paired comparison of two systems on the same questions: differences, tests, and a verdict in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, get_args

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.errors import SettingsError, did_you_mean
from ..metrics.comparison_words import format_equivalence, format_gains, format_score, format_verdict
from ..metrics.gain_per_cost import COSTS, GainPerCost, gain_per_cost
from ..metrics.outcomes import OUTCOMES, PRIMARY, Family, measure_of
from ..metrics.statistics import PairedComparison, PairedTest, adjust_comparisons, compare_paired, equivalence_of
from ..rows.cautions import simulated_judge, simulation_words
from ..rows.store import INCOMPLETE, Completeness, RunStore
from ..runs.manifest import OWN_PROMPT, differences_beside_systems, stored_identity
from .contenders import (
    ALL_PAIRS,
    CHOSEN,
    Contender,
    RowChoice,
    against,
    baseline_of,
    check_baseline,
    contenders_of,
    format_row,
    format_unusable,
    format_unused,
    in_both,
)
from .loaded_run import check_exists, load_run, score_rows
from .means import splits_of
from .own_scores import LOWER_IS_BETTER

MIN_COMMON = 2
"""Fewest questions that both systems must have a score on."""
_OF_SPLITS = ("em", "f1")
_FAMILY_WORDS: Mapping[Family, str] = {"": "", "primary": "by the primary outcome", "secondary": "by other outcomes"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two contenders by one metric."""

    a: str
    b: str
    paired: PairedComparison
    """The paired test; its p value is adjusted over all comparisons of its family (Holm)."""
    family: Family = ""
    """The comparisons that its p value is corrected with."""
    left_out: int
    """Number of questions with a chosen row of only one of them."""
    usable: PairedComparison | None = None
    """The same on the answers whose replies could all be used, with a p value of its own; None if all are such, or too
    few; see ``usable_n``."""
    rows: RowChoice = "complete"
    """Which rows were compared."""
    rows_a: Mapping[Completeness, int] = field(default_factory=dict)
    """Numbers of all rows of ``a``, compared or not."""
    rows_b: Mapping[Completeness, int] = field(default_factory=dict)
    unusable: tuple[tuple[str, int], ...] = ()
    """Numbers of chosen rows with replies that could not be used, by name."""
    prompts: tuple[str, ...] = ()
    """Names of the prompts of one's own that differ between the two runs."""
    gains: tuple[GainPerCost, ...] = ()
    """Of comparisons by the primary outcome that show a difference: what is gained for each further cost."""
    simulated: str = ""
    """A judge of one of the two that sees the gold documents; ``""`` without one."""
    split: str = ""
    """"type", "hops" or "recursion" for a comparison on one kind of question; ``""`` for one on all."""
    part: str = ""
    """The kind of question, such as "bridge"."""

    @property
    def verdict(self) -> str:
        """The outcome in a sentence, with further ones about left-out questions, incomplete rows and own prompts."""
        where = f"{self.split} {self.part}:" if self.split else ""
        outcome = format_verdict(self.paired, a=self.a, b=self.b)
        equal = format_equivalence(self.paired)
        return " ".join(
            filter(
                None,
                (
                    where,
                    outcome,
                    equal,
                    format_gains(self.paired, self.gains),
                    self._usable,
                    self._unshared,
                    self.note,
                    *self._conditions,
                ),
            )
        )

    @property
    def _conditions(self) -> tuple[str, str]:
        return (
            f"The prompts differ: {', '.join(self.prompts)}." if self.prompts else "",
            simulation_words(self.simulated) if self.simulated else "",
        )

    @property
    def _usable(self) -> str:
        unusable = format_unusable(self.unusable)
        if not unusable or self.rows == "usable":
            return ""
        if self.usable is None:
            return f"Some replies in {unusable} could not be used; too few questions are without such."
        return (
            f"Without {unusable} with replies that could not be used, it is "
            f"{format_score(self.usable, self.usable.difference.mean, signed=True)} over "
            f"{count_of(self.usable.difference.n, 'question')}."
        )

    @property
    def usable_n(self) -> int:
        """Number of questions with answers of both whose replies could all be used; 0 for too few to compare."""
        if self.usable is not None:
            return self.usable.difference.n
        is_whole = self.rows == "usable" or not any(count for _, count in self.unusable)
        return self.paired.difference.n if is_whole else 0

    @property
    def _unshared(self) -> str:
        if not self.left_out:
            return ""
        questions = "1 question is" if self.left_out == 1 else f"{self.left_out:,} questions are"
        return f"{questions} left out: only one of the two has a row of them that counts."

    @property
    def note(self) -> str:
        """How many incomplete rows were left out, and how many count; ``""`` if all rows are complete."""
        both = [(self.a, self.rows_a), (self.b, self.rows_b)]
        left = format_row(both, [kind for kind in INCOMPLETE if kind not in CHOSEN[self.rows]])
        counted = format_row(both, [kind for kind in INCOMPLETE if kind in CHOSEN[self.rows]])
        if self.rows == "usable":
            unusable = format_unusable(self.unusable)
            left = ", ".join(filter(None, (left, f"{unusable} with unusable replies" if unusable else "")))
        said = [f"left out: {left}"] if left else []
        said += [f"counted: {counted}"] if counted else []
        return f"Rows compared: {self.rows}; {'; '.join(said)}." if said else ""


def compare_runs(
    a: Path | str,
    b: Path | str | None = None,
    *,
    baseline: str | None = None,
    force: bool = False,
    rows: RowChoice = "complete",
    primary: str | None = None,
    margin: float | None = None,
) -> list[Comparison]:
    """Compare the systems of one run with a baseline, or each system of ``a`` with that of the same name in ``b``.

    Two runs may differ in prompts of one's own, which the comparison then names.
    If two runs have no system in common, each system of ``a`` is compared with each of ``b``. All of ``OUTCOMES`` that
    both have are compared, and scores of metrics of one's own where the same version gave them. Scores of 0 and 1 are
    tested by McNemar's exact test, others by the permutation test, and so are all if questions were repeated or depend
    on each other. p values are corrected in two families: comparisons by the primary outcome, and all others.

    ::

        for comparison in compare_runs("runs/a", baseline="naive"):
            print(comparison.verdict)

    Args:
        a: A run directory.
        b: Another one; None compares the systems of ``a``.
        baseline: The system to compare with, one of ``b``, or of ``a`` without ``b``; "all" for every pair. None takes
            the experiment's baseline, else "naive" if the run has it, else the first system.
        force: Compare runs that differ in more than the system.
        rows: Which rows count. A question without such a row in one of the two is left out of their comparison.
        primary: The primary outcome, a column such as ``f1``; None takes the experiment's, which is ``em`` unless set.
        margin: The least difference of the primary outcome that matters, in points for EM and other shares, else in its
            unit: tests whether systems are equivalent within it. None leaves that test out.

    Returns:
        The comparisons by the primary outcome, then the others.

    Raises:
        SettingsError: The runs differ in data, retriever or reader without ``force``, share no question, or have no
            such baseline, primary outcome or no two systems, or ``rows`` or ``margin`` is not allowed.
        UserError: A run or its data set cannot be loaded.
    """
    a, b = Path(a), None if b is None else Path(b)
    for folder in filter(None, (a, b)):
        check_exists(folder)
    if b is not None and not force:
        _check_alike(a, b)
    if rows not in CHOSEN:
        raise SettingsError(f"rows={rows!r} is not allowed. Allowed: {', '.join(get_args(RowChoice))}.")
    if margin is not None and not (margin > 0 and math.isfinite(margin)):
        raise SettingsError(f"margin={margin:g} is not allowed. Give a number above 0, such as 5 for 5 points of EM.")
    run = load_run(a)
    chosen = primary or run.experiment.primary
    mine = contenders_of(a, score_rows(run), rows, primary=chosen)
    if b is None:
        pairs = against(mine, baseline or run.baseline)
    else:
        pairs = _across(mine, contenders_of(b, score_rows(load_run(b)), rows, primary=chosen), baseline)
    if not pairs:
        raise SettingsError(f"{a} holds one system. Name a second run, or run another system into it.")
    _check_primary(chosen, pairs)
    wanted = [each for each in _every(pairs) if each[2] == chosen or len(in_both(*each)) >= MIN_COMMON]
    prompts = _other_prompts(a, b) if b is not None else ()
    return [replace(each, prompts=prompts) for each in _compare_all(wanted, b, rows, primary=chosen, margin=margin)]


def compare_systems(
    run: Path, frame: pd.DataFrame, *, baseline: str | None = None, primary: str = PRIMARY
) -> list[Comparison]:
    """Compare the complete rows of the systems of one scored run with a baseline; empty for a run of one system.

    Pairs of systems with fewer than two common questions are left out.

    Args:
        run: The run directory, for messages.
        frame: The result of ``frames.question_frame``.
        baseline: The system to compare with; "all" for every pair; None as in ``compare_runs``.
        primary: The primary outcome.

    Raises:
        SettingsError: There is no such baseline.
    """
    contenders = contenders_of(run, frame, "complete", primary=primary)
    return compare_pairs(against(contenders, baseline), primary=primary)


def compare_pairs(pairs: Sequence[tuple[Contender, Contender]], *, primary: str = PRIMARY) -> list[Comparison]:
    """Compare the complete rows of pairs of contenders by every outcome that both have, in two families.

    Pairs with fewer than two common questions are left out.
    """
    return _compare_all(_meetings(pairs), None, "complete", primary=primary)


def compare_splits(run: Path, frame: pd.DataFrame, *, baseline: str | None = None) -> list[Comparison]:
    """Compare the complete rows of the systems of one scored run on each kind of question, by EM, F1 and own metrics.

    The splits are those of ``means.split_frame``. All p values are corrected together, for the number of comparisons in
    all splits. Pairs of systems with fewer than two common questions of a kind are left out.

    Args:
        run: The run directory, for messages.
        frame: The result of ``frames.question_frame``.
        baseline: The system to compare with; "all" for every pair; None as in ``compare_runs``.

    Raises:
        SettingsError: There is no such baseline.
    """
    chosen = baseline_of(list(dict.fromkeys(map(str, frame["system"]))), baseline)
    meetings, places = [], []
    for split, parts in splits_of(frame):
        for part, rows in frame.groupby(parts, sort=True):
            contenders = contenders_of(run, rows, "complete")
            if chosen != ALL_PAIRS and chosen not in {each.system for each in contenders}:
                continue
            here = [each for each in _meetings(against(contenders, chosen)) if _is_of_splits(each[2])]
            meetings += here
            places += [(split, str(part))] * len(here)
    compared = _compare_all(meetings, None, "complete", primary=None)
    return [replace(each, split=split, part=part) for each, (split, part) in zip(compared, places, strict=True)]


def _meetings(pairs: Sequence[tuple[Contender, Contender]]) -> list[tuple[Contender, Contender, str]]:
    return [meeting for meeting in _every(pairs) if len(in_both(*meeting)) >= MIN_COMMON]


def _every(pairs: Sequence[tuple[Contender, Contender]]) -> list[tuple[Contender, Contender, str]]:
    return [
        (one, two, metric)
        for one, two in pairs
        for metric in one.scores
        if metric in two.scores and one.scored_by.get(metric) == two.scored_by.get(metric)
    ]


def _is_of_splits(metric: str) -> bool:
    return metric in _OF_SPLITS or metric not in OUTCOMES


def _check_primary(primary: str, pairs: Sequence[tuple[Contender, Contender]]) -> None:
    there = list(dict.fromkeys(metric for *_, metric in _every(pairs)))
    if primary not in there:
        raise SettingsError(
            f"The primary outcome {primary!r} is none that the systems have.{did_you_mean(primary, there)} They have: "
            f"{', '.join(there)}."
        )


def _compare_all(
    meetings: Sequence[tuple[Contender, Contender, str]],
    second_run: Path | None,
    rows: RowChoice,
    *,
    primary: str | None,
    margin: float | None = None,
) -> list[Comparison]:
    """Compare all, those by the primary outcome first; None corrects all of them together."""
    first = [each for each in meetings if each[2] == primary]
    others = [each for each in meetings if each[2] != primary]
    within = None if margin is None else _Margin(margin, len(first))
    families: tuple[tuple[Family, list[PairedComparison]], ...] = (
        ("primary", [_compare(*each, within=within) for each in first]),
        ("" if primary is None else "secondary", [_compare(*each) for each in others]),
    )
    adjusted = [
        (family, paired)
        for family, compared in families
        for paired in adjust_comparisons(compared, family=_FAMILY_WORDS[family])
    ]
    runs = {each.run for one, two, _ in meetings for each in (one, two)}
    manifests = {run: RunStore(run).read_manifest() or {} for run in runs}
    return [
        Comparison(
            a=_name(one, second_run),
            b=_name(two, second_run),
            paired=paired,
            family=family,
            rows=rows,
            rows_a=one.counts,
            rows_b=two.counts,
            left_out=len(one.scores[metric].keys() ^ two.scores[metric].keys()),
            gains=_gains(one, two, metric) if family == "primary" and paired.is_shown else (),
            usable=None if rows == "usable" else _usable(one, two, metric),
            unusable=tuple((_name(each, second_run), each.unusable) for each in (one, two)),
            simulated=next(
                filter(None, (simulated_judge(manifests[each.run], each.row_system) for each in (one, two))), ""
            ),
        )
        for (one, two, metric), (family, paired) in zip([*first, *others], adjusted, strict=True)
    ]


def _across(
    mine: Sequence[Contender], others: Sequence[Contender], baseline: str | None
) -> list[tuple[Contender, Contender]]:
    if baseline not in (None, ALL_PAIRS):
        check_baseline(str(baseline), [other.system for other in others])
        others = [other for other in others if other.system == baseline]
        return list(itertools.product(mine, others))
    pairs = list(itertools.product(mine, others))
    if baseline == ALL_PAIRS:
        return pairs
    return [(one, two) for one, two in pairs if one.system == two.system] or pairs


def _name(contender: Contender, second_run: Path | None) -> str:
    return contender.system if second_run is None else f"{contender.run}:{contender.system}"


class _Margin(NamedTuple):
    margin: float
    comparisons: int
    """How many comparisons are corrected together."""


def _compare(one: Contender, two: Contender, metric: str, *, within: _Margin | None = None) -> PairedComparison:
    mine, other = one.scores[metric], two.scores[metric]
    common = in_both(one, two, metric)
    if len(common) < MIN_COMMON:
        raise SettingsError(
            f"{one.run}:{one.system} and {two.run}:{two.system} share {len(common)} questions that have {metric}. "
            f"At least {MIN_COMMON} are needed{format_unused(one, two)}."
        )
    scores_a, scores_b = [mine[question] for question in common], [other[question] for question in common]
    groups = _groups_of(one, common)
    measure = measure_of(metric)
    is_binary = measure.unit in ("points", "score") and {*scores_a, *scores_b} <= {0.0, 1.0}
    test: PairedTest = "mcnemar" if is_binary and metric != "f1" and groups is None else "permutation"
    compared = compare_paired(scores_a, scores_b, metric=metric, test=test, groups=groups)
    better = "lower" if one.scored_by.get(metric, "").endswith(LOWER_IS_BETTER) else measure.better
    if within is not None:
        least = within.margin / 100 if measure.unit == "points" else within.margin
        found = equivalence_of(
            scores_a, scores_b, margin=least, test=test, groups=groups, comparisons=within.comparisons
        )
        compared = replace(compared, equivalence=found)
    return replace(compared, unit=measure.unit, title=measure.title, better=better)


def _gains(one: Contender, two: Contender, metric: str) -> tuple[GainPerCost, ...]:
    """Return what the one that takes more gains for each cost; nothing by an outcome whose lower values are better."""
    measure = measure_of(metric)
    is_lower_better = one.scored_by.get(metric, "").endswith(LOWER_IS_BETTER) or measure.better == "lower"
    if is_lower_better or measure.unit not in ("points", "score"):
        return ()
    found = []
    for cost in COSTS:
        if not (cost in one.scores and cost in two.scores):
            continue
        there = set(in_both(one, two, cost))
        common = [question for question in in_both(one, two, metric) if question in there]
        if len(common) < MIN_COMMON:
            continue
        gains, further = (
            [one.scores[name][question] - two.scores[name][question] for question in common] for name in (metric, cost)
        )
        found.append(gain_per_cost(gains, further, cost=cost, groups=_groups_of(one, common)))
    return tuple(each for each in found if each is not None)


def _groups_of(one: Contender, questions: Sequence[str]) -> list[Hashable] | None:
    return None if one.groups is None else [one.groups[question] for question in questions]


def _usable(one: Contender, two: Contender, metric: str) -> PairedComparison | None:
    """Compare the answers whose replies could all be used; None if all are such, or too few."""
    if not one.unusable and not two.unusable:
        return None
    one, two = (replace(each, scores=each.usable) for each in (one, two))
    return _compare(one, two, metric) if len(in_both(one, two, metric)) >= MIN_COMMON else None


def _other_prompts(a: Path, b: Path) -> tuple[str, ...]:
    one, two = (stored_identity(RunStore(run).read_manifest() or {}) for run in (a, b))
    names = sorted(name for name in one.keys() | two.keys() if name.startswith(OWN_PROMPT))
    return tuple(name.removeprefix(OWN_PROMPT) for name in names if one.get(name) != two.get(name))


def _check_alike(a: Path, b: Path) -> None:
    one, two = (RunStore(run).read_manifest() or {} for run in (a, b))
    if unlike := list(differences_beside_systems(one, two)):
        raise SettingsError(
            f"{a} and {b} differ in more than the system ({'; '.join(unlike)}), which may explain a difference in "
            "scores. Run them with the same settings, or compare with --force, in Python with force=True."
        )
