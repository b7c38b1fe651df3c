"""Paired comparison of two systems on the same questions: differences, tests, and a verdict in words."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import pandas as pd

from ...modules.errors import SettingsError
from ..metrics.comparison_words import verdict_in_words
from ..metrics.statistics import PairedComparison, PairedTest, adjust_comparisons, compare_paired
from ..rows.store import Completeness, RunStore
from ..runs.manifest import OWN_PROMPT, PROMPT_LIMITS, STRATEGY_PROMPTS, stored_identity
from .failures import completeness_counts
from .loaded_run import load_run, score_rows
from .means import by_question, dialogues_of

RowChoice = Literal["complete", "answered", "all"]
"""complete: rows without damage. answered: degraded ones too. all: also failed ones, which score 0."""
_CHOSEN: Mapping[RowChoice, tuple[Completeness, ...]] = {
    "complete": ("complete",),
    "answered": ("complete", "degraded"),
    "all": ("complete", "degraded", "failed"),
}
_INCOMPLETE: tuple[Completeness, ...] = ("failed", "degraded")
METRICS = ("em", "f1")
ALL_PAIRS = "all"
USUAL_BASELINE = "naive"
MIN_COMMON = 2
"""Fewest questions that both systems must have a score on."""
SHARED = (
    "dataset_digest",
    "corpus_digest",
    "corpus",
    "embeddings",
    "topk",
    "search_type",
    "ranker_type",
    "ranker_params",
    "retriever",
    "retriever_source",
    "llm",
    "temperature",
    "strategy",
    *STRATEGY_PROMPTS,
    "history",
    "conversation",
    *PROMPT_LIMITS,
)
"""Keys of a run's identity that must agree for a difference to be due to the systems: data, retriever, reader."""
SHARED_PROMPTS = ("reader_prompt", "closed_book_prompt", "conversation_prompt")
"""Prompts that must agree if both runs have systems that use them."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One system of one run."""

    run: Path
    system: str
    scores: Mapping[str, Mapping[str, float]]
    """Scores of the chosen rows by metric and question; the mean of a question's repeats."""
    counts: Mapping[Completeness, int]
    """Numbers of all rows."""
    dialogues: Mapping[str, Hashable] | None
    """Dialogue of each question; None if all stand alone."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two contenders by one metric."""

    a: str
    b: str
    paired: PairedComparison
    """The paired test; its p value is adjusted over all comparisons made together (Holm)."""
    left_out: int
    """Number of questions with a chosen row of only one of them."""
    rows: RowChoice = "complete"
    """Which rows were compared."""
    rows_a: Mapping[Completeness, int] = field(default_factory=dict)
    """Numbers of all rows of ``a``, compared or not."""
    rows_b: Mapping[Completeness, int] = field(default_factory=dict)
    prompts: tuple[str, ...] = ()
    """Names of the prompts of one's own that differ between the two runs."""

    @property
    def verdict(self) -> str:
        """The outcome in a sentence, with further ones about left-out questions, incomplete rows and own prompts."""
        said = (verdict_in_words(self.paired, a=self.a, b=self.b), self._unshared, self.note, self._other_prompts)
        return " ".join(filter(None, said))

    @property
    def _other_prompts(self) -> str:
        return f"The prompts differ: {', '.join(self.prompts)}." if self.prompts else ""

    @property
    def _unshared(self) -> str:
        if not self.left_out:
            return ""
        questions = "1 question is" if self.left_out == 1 else f"{self.left_out:,} questions are"
        return f"{questions} left out, since only one of the two has a score there."

    @property
    def note(self) -> str:
        """How many incomplete rows were left out, and how many count; ``""`` if all rows are complete."""
        both = [(self.a, self.rows_a), (self.b, self.rows_b)]
        left = _row_words(both, [kind for kind in _INCOMPLETE if kind not in _CHOSEN[self.rows]])
        counted = _row_words(both, [kind for kind in _INCOMPLETE if kind in _CHOSEN[self.rows]])
        said = [f"left out: {left}"] if left else []
        said += [f"counted: {counted}"] if counted else []
        return f"Rows compared: {self.rows}; {'; '.join(said)}." if said else ""


def compare_runs(
    a: Path,
    b: Path | None = None,
    *,
    baseline: str | None = None,
    force: bool = False,
    rows: RowChoice = "complete",
) -> list[Comparison]:
    """Compare the systems of one run with a baseline, or each system of ``a`` with that of the same name in ``b``.

    Two runs may differ in prompts of one's own, which the comparison then names.
    If two runs have no system in common, each system of ``a`` is compared with each of ``b``. EM is tested by McNemar's
    exact test, or by the permutation test if questions were repeated or belong to dialogues; F1 by the permutation
    test. p values are corrected for the number of comparisons, so fewer comparisons find more.

    ::

        for comparison in compare_runs(Path("runs/a"), baseline="naive"):
            print(comparison.verdict)

    Args:
        a: A run directory.
        b: Another one; None compares the systems of ``a``.
        baseline: The system to compare with, one of ``b``, or of ``a`` without ``b``; "all" for every pair. None takes
            the experiment's baseline, else "naive" if the run has it, else the first system.
        force: Compare runs that differ in more than the system.
        rows: Which rows count. A question without such a row in one of the two is left out of their comparison.

    Raises:
        SettingsError: The runs differ in data, retriever or reader without ``force``, share no question, or have no
            such baseline or no two systems, or ``rows`` is unknown.
        UserError: A run or its data set cannot be loaded.
    """
    if b is not None and not force:
        _refuse_unlike(a, b)
    if rows not in _CHOSEN:
        raise SettingsError(f"rows={rows!r} is not allowed. Allowed: {', '.join(get_args(RowChoice))}.")
    if b is not None:
        pairs = _across(a, b, baseline, rows)
    else:
        run = load_run(a)
        pairs = _against(_contenders(a, score_rows(run), rows), baseline or run.baseline)
    if not pairs:
        raise SettingsError(f"{a} holds one system. Name a second run, or run another system into it.")
    compared = _compare_all([(one, two, metric) for one, two in pairs for metric in METRICS], b, rows)
    prompts = _other_prompts(a, b) if b is not None else ()
    return [replace(each, prompts=prompts) for each in compared]


def compare_systems(run: Path, frame: pd.DataFrame, *, baseline: str | None = None) -> list[Comparison]:
    """Compare the complete rows of the systems of one scored run with a baseline; empty for a run of one system.

    Pairs of systems with fewer than two common questions are left out.

    Args:
        run: The run directory, for messages.
        frame: The result of ``frames.question_frame``.
        baseline: The system to compare with; "all" for every pair; None as in ``compare_runs``.

    Raises:
        SettingsError: There is no such baseline.
    """
    pairs = _against(_contenders(run, frame, "complete"), baseline)
    meetings = [(one, two, metric) for one, two in pairs for metric in METRICS]
    return _compare_all([meeting for meeting in meetings if len(_common(*meeting)) >= MIN_COMMON], None, "complete")


def _row_words(parts: Iterable[tuple[str, Mapping[Completeness, int]]], kinds: Sequence[Completeness]) -> str:
    """Describe counts as "3 failed and 1 degraded of judge, 1 degraded of naive"; ``""`` without any."""
    words = [(name, [f"{counts[kind]:,} {kind}" for kind in kinds if counts.get(kind)]) for name, counts in parts]
    return ", ".join(f"{' and '.join(each)} of {name}" for name, each in words if each)


def _compare_all(
    meetings: Sequence[tuple[Contender, Contender, str]], second_run: Path | None, rows: RowChoice
) -> list[Comparison]:
    adjusted = adjust_comparisons([_compare(*meeting) for meeting in meetings])
    return [
        Comparison(
            a=_name(one, second_run),
            b=_name(two, second_run),
            paired=paired,
            rows=rows,
            rows_a=one.counts,
            rows_b=two.counts,
            left_out=len(one.scores[metric].keys() ^ two.scores[metric].keys()),
        )
        for (one, two, metric), paired in zip(meetings, adjusted, strict=True)
    ]


def _against(contenders: Sequence[Contender], baseline: str | None) -> list[tuple[Contender, Contender]]:
    """Pair each contender with the baseline, or all contenders for "all"."""
    if baseline == ALL_PAIRS:
        return list(itertools.combinations(contenders, 2))
    systems = [contender.system for contender in contenders]
    chosen = baseline or (USUAL_BASELINE if USUAL_BASELINE in systems else systems[0])
    _refuse_unknown(chosen, systems)
    other = contenders[systems.index(chosen)]
    return [(contender, other) for contender in contenders if contender is not other]


def _refuse_unknown(baseline: str, systems: Sequence[str]) -> None:
    if baseline not in systems:
        raise SettingsError(
            f"The baseline {baseline!r} is not a system of the run. Allowed: {', '.join(systems)}, or {ALL_PAIRS} for "
            "every pair."
        )


def _across(a: Path, b: Path, baseline: str | None, rows: RowChoice) -> list[tuple[Contender, Contender]]:
    mine, others = (_contenders(run, score_rows(load_run(run)), rows) for run in (a, b))
    if baseline not in (None, ALL_PAIRS):
        _refuse_unknown(str(baseline), [other.system for other in others])
        others = [other for other in others if other.system == baseline]
        return list(itertools.product(mine, others))
    pairs = list(itertools.product(mine, others))
    if baseline == ALL_PAIRS:
        return pairs
    return [(one, two) for one, two in pairs if one.system == two.system] or pairs


def _name(contender: Contender, second_run: Path | None) -> str:
    return contender.system if second_run is None else f"{contender.run}:{contender.system}"


def _contenders(run: Path, frame: pd.DataFrame, rows: RowChoice) -> list[Contender]:
    counts = completeness_counts(frame)
    contenders = []
    for system, part in frame.groupby("system", sort=False):
        chosen = part[part["completeness"].isin(_CHOSEN[rows])]
        contender = Contender(
            run=run,
            system=str(system),
            scores={metric: by_question(chosen, metric) for metric in METRICS},
            counts=counts[str(system)],
            dialogues=_dialogues(chosen),
        )
        contenders.append(contender)
    return contenders


def _dialogues(part: pd.DataFrame) -> dict[str, Hashable] | None:
    questions = [str(question) for question in part["question_id"].unique()]
    dialogues = dialogues_of(part, questions)
    return None if dialogues is None else dict(zip(questions, dialogues, strict=True))


def _compare(one: Contender, two: Contender, metric: str) -> PairedComparison:
    mine, other = one.scores[metric], two.scores[metric]
    common = _common(one, two, metric)
    if len(common) < MIN_COMMON:
        raise SettingsError(
            f"{one.run}:{one.system} and {two.run}:{two.system} share {len(common)} questions that have {metric}. "
            f"At least {MIN_COMMON} are needed{_unused(one, two)}."
        )
    scores_a, scores_b = [mine[question] for question in common], [other[question] for question in common]
    dialogues = None if one.dialogues is None else [one.dialogues[question] for question in common]
    binary = metric == "em" and dialogues is None and {*scores_a, *scores_b} <= {0.0, 1.0}
    test: PairedTest = "mcnemar" if binary else "permutation"
    return compare_paired(scores_a, scores_b, metric=metric, test=test, dialogues=dialogues)


def _unused(one: Contender, two: Contender) -> str:
    words = _row_words([(each.system, each.counts) for each in (one, two)], _INCOMPLETE)
    return f" ({words}: ask them again with `eval run --retry incomplete`, or count them with --rows)" if words else ""


def _common(one: Contender, two: Contender, metric: str) -> list[str]:
    return [question for question in one.scores[metric] if question in two.scores[metric]]


def _other_prompts(a: Path, b: Path) -> tuple[str, ...]:
    one, two = (stored_identity(RunStore(run).read_manifest() or {}) for run in (a, b))
    names = sorted(name for name in one.keys() | two.keys() if name.startswith(OWN_PROMPT))
    return tuple(name.removeprefix(OWN_PROMPT) for name in names if one.get(name) != two.get(name))


def _refuse_unlike(a: Path, b: Path) -> None:
    one, two = (stored_identity(RunStore(run).read_manifest() or {}) for run in (a, b))
    both = (name for name in SHARED_PROMPTS if name in one and name in two)
    unlike = [name for name in (*SHARED, *both) if one.get(name) != two.get(name)]
    if unlike:
        differences = "; ".join(f"{name}: {one.get(name)!r} and {two.get(name)!r}" for name in unlike)
        raise SettingsError(
            f"{a} and {b} differ in more than the system ({differences}), which may explain a difference in scores. "
            "Run them with the same settings, or compare with --force."
        )
