"""The report of a run as one self-contained HTML page: tables, plots, and every question with its search trees.

The page makes no request. Text of documents and models is escaped HTML, or JSON that the script turns into text nodes,
and a Content-Security-Policy allows only this page's own script and style, by hash. Without JavaScript the page shows
tables and plots, but no questions.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd

from ...graphs.drawing.html import html_page, json_in_html
from ...modules.settings import Settings
from ...modules.storage.atomic import write_atomic
from ...modules.storage.texts import html_text
from ..metrics.comparison_words import format_score
from ..metrics.outcomes import measure_of
from ..metrics.statistics import PairedComparison
from ..rows.csv_tables import SPREADSHEET, csv_of
from ..tables.html import blocks_html, facts_html, section_html, table_html
from ..tables.table import Cell, Table, estimate_cell
from .compare import Comparison
from .contenders import ALL_PAIRS
from .data import page_data
from .inline_svg import figures_html
from .kind_tables import failure_rows, split_columns, split_rows
from .loaded_run import LoadedRun, load_run
from .means import worst_em
from .plots import SPLIT_WORDS, plots_of
from .report import Report, report_of
from .verdicts import comparisons_html, verdicts_html


def draw_report(run: LoadedRun, report: Report) -> str:
    """Draw the page of a run, whose search trees are read from disk. 500 questions of three systems take some seconds.

    Raises:
        LoadingError: A search tree is damaged.
    """
    names = list(dict.fromkeys(str(system) for system in report.questions["system"]))
    data = page_data(run, report.questions)
    plots = plots_of(report)
    systems, *others = report.sections(made_of=False)
    return html_page(
        __package__,
        packs=True,
        title=html_text(f"{run.dataset.name}: {', '.join(names)}"),
        facts=facts_html({**report.provenance, "answers": f"{len(report.questions):,}"}),
        manifest=table_html(Table.of(("key", "value"), ((name, str(value)) for name, value in _flat(run.manifest)))),
        systems=blocks_html(systems.blocks),
        others="".join(map(section_html, others)),
        comparisons=_comparisons(report, names),
        plots=figures_html(*(plot for plot in plots if plot.name != "failures")),
        failure_plot=figures_html(*(plot for plot in plots if plot.name == "failures")),
        splits=_splits(report.splits) + _split_verdicts(report.split_comparisons),
        failures=_failures(report, names),
        index=json_in_html(data.index),
        trees=json_in_html(data.trees),
        texts=json_in_html(data.texts),
    )


def _flat(content: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _comparisons(report: Report, systems: Sequence[str]) -> str:
    verdicts = comparisons_html(report.comparisons, report.primary)
    if report.baseline == ALL_PAIRS and len(systems) > 1:
        summary = f"<summary>{len(report.comparisons):,} comparisons in words</summary>"
        verdicts = f"{_matrices(report.comparisons, systems)}<details>{summary}{verdicts}</details>"
    worst = worst_em(report.questions)
    right, wrong = worst == 1.0, worst < 1.0
    pairs = [pair for one, two in itertools.combinations(systems, 2) for pair in ((one, two), (two, one))]
    links = "".join(
        f'<li><a href="{html_text(_address(right=one, wrong=two))}">{html_text(f"{one} right, {two} wrong")}</a>: '
        f"{int((right[one] & wrong[two]).sum())}</li>"
        for one, two in pairs
    )
    return f'{verdicts}<ul class="pairs">{links}</ul>' if pairs else "<p>One system.</p>"


def _matrices(comparisons: Sequence[Comparison], systems: Sequence[str]) -> str:
    """Build a table for the primary outcome: the system of the row less that of the column."""
    tables = []
    for metric in dict.fromkeys(each.paired.metric for each in comparisons if each.family == "primary"):
        cells: dict[tuple[str, str], Cell] = {}
        for each in comparisons:
            if each.paired.metric == metric:
                cells[each.a, each.b] = _difference(each.paired, 1)
                cells[each.b, each.a] = _difference(each.paired, -1)
        rows = [[row, *(cells.get((row, column), "") for column in systems)] for row in systems]
        tables.append(table_html(Table.of((f"{measure_of(metric).title}, row less column", *systems), rows)))
    corrected = "bold where a difference was shown, after Holm's correction for all of them."
    return f'<p class="faint">With 95 % intervals; {corrected}</p>{"".join(tables)}'


def _difference(paired: PairedComparison, sign: int) -> Cell:
    difference = paired.difference
    low, high = (difference.low, difference.high) if sign > 0 else (difference.high, difference.low)
    return estimate_cell(
        difference.mean,
        low,
        high,
        lambda value: format_score(paired, sign * value, signed=True),
        is_bold=paired.is_shown,
    )


def _split_verdicts(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    shown = [each for each in comparisons if each.paired.is_shown]
    count = f"{len(comparisons):,} paired comparisons, corrected together"
    if not shown:
        return f'<p class="faint">No difference was shown by any of {count}.</p>'
    return f'<p class="faint">Differences shown by {len(shown):,} of {count}:</p>{verdicts_html(shown)}'


def _address(**search: str) -> str:
    """Return the address that filters the page's questions."""
    return f"#{urlencode(search)}"


def _splits(splits: pd.DataFrame) -> str:
    """Build a table for each split: one row per part, one column per system and metric."""
    if splits.empty:
        return "<p>The data set has no kinds of questions.</p>"
    tables = []
    for split, rows in splits.groupby("split", sort=False):
        columns = split_columns(rows)
        head = [SPLIT_WORDS[str(split)].capitalize(), "n", *(f"{s} {m.upper()}" for s, m in columns)]
        tables.append(table_html(Table.of(head, split_rows(rows, columns))))
    return "".join(tables)


def _failures(report: Report, systems: Sequence[str]) -> str:
    """Build a table with one row per kind and one column per system; each count links to its questions."""
    rows = list(failure_rows(report.failures, systems, lambda kind, system: _address(system=system, outcome=kind)))
    if not rows:
        return "<p>No wrong answer among those whose gold answers are known.</p>"
    errors = report.questions[report.questions["em"] < 1.0]["system"].value_counts()
    total = ["all errors", *(f"{errors.get(system, 0):,}" for system in systems)]
    known = report.questions[report.questions["em"].notna()]["system"].value_counts()
    answers = ["of answers whose gold is known", *(f"{known.get(system, 0):,}" for system in systems)]
    return table_html(Table.of(["kind", *systems], [*rows, total, answers]))


def write_report(
    folder: Path | str,
    *,
    baseline: str | None = None,
    settings: Settings | None = None,
    cut_offs: Collection[int] = (),
    spreadsheet: bool = False,
) -> Report:
    """Score a run like ``load_report``, and write report.html, report.md, results.csv and results.parquet beside it.

    With ``spreadsheet``, results.spreadsheet.csv too, in which texts that begin like a formula have an apostrophe.

    ::

        report = write_report("runs/a")
        print(report.files)

    Raises:
        WritingError: A file could not be written; it is unchanged.
        UserError: The run, its data set or a search tree cannot be read.
    """
    folder = Path(folder)
    run = load_run(folder, settings)
    names = ["report.html", "report.md", "results.csv", "results.parquet", *([SPREADSHEET] if spreadsheet else [])]
    files = tuple(folder / name for name in names)
    report = replace(report_of(run, baseline=baseline, cut_offs=cut_offs), files=files)
    page, markdown, table, columns, *_ = files
    write_atomic(page, draw_report(run, report))
    write_atomic(markdown, report.to_markdown() + "\n")
    write_atomic(table, csv_of(report.questions))
    if spreadsheet:
        write_atomic(folder / SPREADSHEET, csv_of(report.questions, spreadsheet=True))
    write_atomic(columns, report.questions.to_parquet(index=False))
    return report
