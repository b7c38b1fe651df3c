"""The report of a sweep: one table with the swept keys as columns, and each combination against the first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pandas as pd

from ...graphs.config.variants import read_variant, system_name
from ...graphs.systems.registry import find_system
from ...modules.calls.prices import FREE, Cost
from ...modules.config.effects import lacking
from ...modules.errors import LoadingError
from ...modules.settings import Settings
from ..metrics.outcomes import PRIMARY
from ..papers.tables import caution_words, groups_of_columns, not_comparable
from ..question_files.kept_questions import with_questions_kept
from ..reports.compare import Comparison, compare_pairs
from ..reports.contenders import Contender, against_named, contenders_of
from ..reports.failures import incomplete_words
from ..reports.frames import common_frame, records_of
from ..reports.report import LACKING_WHY, Report, load_report
from ..reports.system_table import common_blocks, count_remarks, mean_cell, metric_name
from ..reports.verdicts import comparison_blocks, comparison_frame
from ..rows.provenance import Provenance, provenance_of_all, provenance_words
from ..runs.batch_run import RunOptions
from ..runs.experiment import Experiment
from ..runs.runner import Progress
from ..tables.markdown import sections_markdown
from ..tables.table import Block, Cell, Section, Table
from .grid import load_sweep
from .run_sweep import SavedPoint, Watch, run_sweep, saved_points


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """Means of every system at every combination, and what differs from the first combination."""

    folder: Path
    keys: tuple[str, ...]
    """The swept keys, columns of the frames."""
    systems: pd.DataFrame
    """A row for each combination, system and metric: the swept keys, then the columns of ``Report.systems``."""
    questions: pd.DataFrame
    """A row for each combination and row of its run: the swept keys, then the columns of ``Report.questions``."""
    comparisons: tuple[Comparison, ...]
    """The systems of each combination against its baseline, and each system that a swept key changes against itself at
    the first combination; corrected together."""
    primary: str = PRIMARY
    """Primary outcome of the comparisons, that of the first combination."""
    shown: tuple[str, ...]
    """Metrics in the table, in order."""
    paid: Cost
    """Cost of all runs, replaced attempts included."""
    runs: tuple[Path, ...] = ()
    """Run directories of the combinations that have answers."""
    missing: tuple[str, ...] = ()
    """Names of combinations without an answer yet."""
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name of a combination, the experiment's metrics that its run has no scores of."""
    provenance: Provenance = field(default_factory=dict)
    """What the runs have in common; what differs between them varies."""
    cautions: tuple[str, ...] = ()
    """Sentences that bear on figures of some run; see ``run_cautions``."""
    common: pd.DataFrame
    """Means over common questions where combinations differ in theirs; ``system`` is "judge (topk 3)"."""
    missing_answers: int = 0
    """Number of answers that the runs still lack."""
    files: tuple[Path, ...] = ()
    """Files that were written."""

    def to_markdown(self) -> str:
        """Write the report in Markdown."""
        runs = f"Each run: {', '.join(f'[{run.name}]({run.name}/report.html)' for run in self.runs)}."
        sections = [Section(title=self.folder.name, blocks=(*self.means(), runs))]
        if self.comparisons:
            sections.append(
                Section(title="Comparisons", blocks=tuple(comparison_blocks(self.comparisons, self.primary)))
            )
        return sections_markdown(sections)

    def means(self) -> Iterator[Block]:
        """Yield the table of means, with its warnings and what was paid."""
        combinations = _by_combination(self.questions, self.keys)
        yield self._table(self.shown)
        yield from (f"**{each}**" for each in self.cautions)
        yield from incomplete_words(combinations, missing=0)
        yield from count_remarks(combinations, self.missing_answers)
        yield from common_blocks(combinations, self.common, self.shown)
        yield from _lacking_remarks(self.lacking)
        yield f"Means over n questions with 95 % intervals, as in the report of each run. Paid in all: {self.paid}."
        if self.provenance:
            yield provenance_words(self.provenance)
        if self.missing:
            yield f"**Warning: no answer yet at {'; '.join(self.missing)}.**"

    def to_document(self) -> dict[str, object]:
        """Return the report as plain data for ``json.dumps``."""
        return {
            "sweep": str(self.folder),
            "keys": list(self.keys),
            "provenance": dict(self.provenance),
            "systems": records_of(self.systems),
            "comparisons": records_of(comparison_frame(self.comparisons)),
            "cautions": list(self.cautions),
            "missing": list(self.missing),
            "lacking": {name: list(metrics) for name, metrics in self.lacking.items()},
            "paid": self.paid.to_document(),
        }

    def tables(self) -> list[Table]:
        """Return the table for a paper, in parts that fit into the width of a page."""
        unlike = [metric for metric in self.shown if metric in set(self.common["metric"])]
        caption = f"{self.folder.name}: means over n questions with 95 % intervals.{not_comparable(unlike)}"
        caption += caution_words(self.cautions, _by_combination(self.questions, self.keys), self.missing_answers)
        parts = groups_of_columns(self.shown, beside=len(self.keys))
        return [
            replace(self._table(part), name="sweep" if number == 1 else f"sweep-{number}", caption=caption)
            for number, part in enumerate(parts, start=1)
        ]

    def _table(self, metrics: Sequence[str]) -> Table:
        head = [*self.keys, "system", "n", *map(metric_name, metrics)]
        return Table.of(head, self._rows(metrics), texts=len(self.keys) + 1)

    def _rows(self, metrics: Sequence[str]) -> Iterator[list[Cell | str]]:
        places = [*self.keys, "system"]
        for place, means in self.systems.groupby(places, sort=False):
            asked = int(self.questions.groupby(places, sort=False)["question_id"].nunique()[place])
            own = means.set_index("metric")
            cells = (mean_cell(metric, own.loc[metric], asked) if metric in own.index else "" for metric in metrics)
            yield [*map(str, place), f"{asked:,}", *cells]


def load_sweep_report(folder: Path, *, settings: Settings | None = None) -> SweepReport:
    """Score every run of a sweep; writes nothing. Takes seconds a combination.

    Raises:
        UserError: The folder holds no sweep, or a run cannot be read.
    """
    return score_sweep(folder, partial(load_report, settings=settings))


def sweep(
    experiment: Path | str | None = None,
    *,
    out: Path | str,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **keys: object,
) -> SweepReport:
    """Run an experiment for each combination of the keys that list values, and report them together.

    ::

        sweep(dataset="hotpotqa:dev.json", topk=[3, 5, 10], judge=["auto", "logprob"], out="runs/sweep")

    Args:
        experiment: Its YAML file; None takes ``keys`` alone.
        out: The folder of the sweep, a run directory for each combination in it; the same call continues it.
        options: As for ``run``.
        settings: As for ``run``.
        on_progress: As for ``run``.
        keys: Keys of ``Experiment``, one or more of them lists of values; they win over the file's. ``questions`` as
            for ``run``. ``max_calls``, ``max_tokens`` and ``max_cost`` are for the whole sweep.

    Raises:
        UserError: A key is unknown, none lists values, one that does cannot be swept, or a combination cannot be run.
    """
    watch: Watch | None = (lambda point, place, count: (None, on_progress)) if on_progress else None
    path = Path(experiment) if experiment is not None else None
    grid = load_sweep(path, **with_questions_kept(keys, Path(out)))
    run_sweep(grid, Path(out), options=options, settings=settings, watch=watch)
    return load_sweep_report(Path(out), settings=settings)


def score_sweep(folder: Path, report_of: Callable[..., Report]) -> SweepReport:
    """Score every run of a sweep by ``report_of``, such as ``load_report``.

    Each is scored at every swept ``topk`` that it retrieves, so that a column of recall@k has all of them.
    """
    points = saved_points(folder)
    cut_offs = [each for point in points if isinstance(each := point.values.get("topk"), int)]
    reports: list[tuple[SavedPoint, Report]] = []
    missing = []
    for point in points:
        if (point.folder / "rows.jsonl").exists():
            reports.append((point, report_of(point.folder, cut_offs=cut_offs)))
        else:
            missing.append(point.folder.name)
    if not reports:
        raise LoadingError(f"{folder} holds no finished question. Run `judgetree eval run --out {folder} …` first.")
    shown = dict.fromkeys(metric for _, report in reports for metric in report.shown)
    there = {str(metric) for _, report in reports for metric in report.systems["metric"]}
    keys = tuple(points[0].values)
    questions = pd.concat([_with_keys(point, report.questions) for point, report in reports], ignore_index=True)
    return SweepReport(
        folder=folder,
        keys=keys,
        systems=pd.concat([_with_keys(point, report.systems) for point, report in reports], ignore_index=True),
        questions=questions,
        comparisons=tuple(compare_pairs(_pairs(reports), primary=reports[0][1].primary)),
        primary=reports[0][1].primary,
        shown=tuple(metric for metric in shown if metric in there),
        paid=sum((cost for _, report in reports for cost in report.paid.values()), FREE),
        runs=tuple(point.folder for point, _ in reports),
        missing=tuple(missing),
        lacking={point.folder.name: report.lacking for point, report in reports if report.lacking},
        common=common_frame(_by_combination(questions, keys), [metric for metric in shown if metric in there]),
        provenance=provenance_of_all(report.provenance for _, report in reports),
        cautions=tuple(dict.fromkeys(each for _, report in reports for each in report.cautions)),
        missing_answers=sum(report.missing for _, report in reports),
    )


def _lacking_remarks(lacking: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a paragraph on the metrics that some combinations lack."""
    metrics = dict.fromkeys(metric for each in lacking.values() for metric in each)
    if metrics:
        places = {metric: " and ".join(name for name, each in lacking.items() if metric in each) for metric in metrics}
        said = "; ".join(f"{metric} at {place}" for metric, place in places.items())
        yield f"**Some runs lack metrics of the experiment: {said}.** {LACKING_WHY}"


def _with_keys(point: SavedPoint, frame: pd.DataFrame) -> pd.DataFrame:
    keyed = frame.copy()
    for place, (key, value) in enumerate(point.values.items()):
        keyed.insert(place, key, [value] * len(frame))
    return keyed


def _by_combination(questions: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Name each row's system by its combination, as the comparisons do."""
    values = questions[list(keys)].to_dict(orient="records")
    names = [_named(system, each) for system, each in zip(questions["system"], values, strict=True)]
    return questions.assign(system=names)


def _pairs(reports: Sequence[tuple[SavedPoint, Report]]) -> list[tuple[Contender, Contender]]:
    """Pair the systems of each combination with its baseline, and those that the swept keys change with themselves at
    the first one; all are named by their combination."""
    named = [
        {
            each.system: replace(each, system=_named(each.system, point.values))
            for each in contenders_of(point.folder, report.questions, "complete", primary=report.primary)
        }
        for point, report in reports
    ]
    within = [
        pair
        for contenders, (_, report) in zip(named, reports, strict=True)
        if len(contenders) > 1
        for pair in against_named(contenders, report.baseline)
    ]
    first, *others = named
    (begun, _), *further = reports
    across: dict[tuple[str, tuple[object, ...]], tuple[Contender, Contender]] = {}
    for other, (point, _) in zip(others, further, strict=True):
        for name, contender in other.items():
            if name in first and _is_changed(name, begun.values, point.values):
                alike = tuple(value for key, value in point.values.items() if _matters(name, key))
                across.setdefault((name, alike), (_without_seconds(contender), first[name]))
    return [*within, *across.values()]


def _without_seconds(contender: Contender) -> Contender:
    """Leave out the time, since a later combination finds the index and the caches of the machine warm."""
    return replace(contender, scores={name: each for name, each in contender.scores.items() if name != "seconds"})


def _is_changed(system: str, one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether a system can have a use for a key that two combinations have otherwise, and has no option of its own."""
    return any(one[key] != other[key] and _matters(system, key) for key in one)


def _matters(system: str, key: str) -> bool:
    has, own = find_system(system_name(system)).has, read_variant(system).options.given
    return key not in own and lacking(Experiment, key, has) is None


def _named(system: object, values: Mapping[Hashable, object] | Mapping[str, object]) -> str:
    return f"{system} ({', '.join(f'{key} {value}' for key, value in values.items())})"
