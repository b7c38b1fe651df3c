"""The report of a run as one self-contained HTML page: tables, plots, and every question with its search trees.

The page makes no request. Text of documents and models is escaped HTML, or JSON that the script turns into text nodes,
and a Content-Security-Policy allows only this page's own script and style, by hash. Without JavaScript the page shows
tables and plots, but no questions.
"""

from __future__ import annotations

import html
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
from ..metrics.statistics import PairedComparison
from ..rows.csv_tables import SPREADSHEET, csv_of
from ..rows.store import part_of
from .compare import Comparison
from .contenders import ALL_PAIRS
from .data import page_data
from .failures import FAILURE_KINDS, FAILURE_WORDS
from .html_parts import figures_of, render_markdown, table_of, verdicts_of
from .loaded_run import LoadedRun, load_run
from .means import worst_em
from .plots import SPLIT_WORDS, plots_of
from .report import PROMPTS_HEADING, Report, report_of

_HEAD_FACTS = (
    "llm",
    "judge_llm",
    "embeddings",
    "temperature",
    "thinking",
    "judge",
    "topk",
    "retriever",
    "search_type",
    "max_rec_depth",
    "corpus",
)
"""Keys of the manifest's identity at the top of the page; the others are folded away."""


def draw_report(run: LoadedRun, report: Report) -> str:
    """Draw the page of a run, whose search trees are read from disk. 500 questions of three systems take some seconds.

    Raises:
        LoadingError: A search tree is damaged.
    """
    names = list(dict.fromkeys(str(system) for system in report.questions["system"]))
    data = page_data(run, report.questions)
    plots = plots_of(report)
    # After its first line, the title: one table of systems, then optional sections.
    systems, *others = report.to_markdown().partition("\n")[2].split("\n## ")
    return html_page(
        __package__,
        packs=True,
        title=html_text(f"{run.dataset.name}: {', '.join(names)}"),
        facts=_facts(run, report),
        manifest=table_of(
            ("key", "value"),
            ((html_text(name), f"<code>{html_text(value)}</code>") for name, value in _flat(run.manifest)),
        ),
        systems=render_markdown(systems),
        others="".join(map(_section, others)),
        comparisons=_comparisons(report, names),
        plots=figures_of(*(plot for plot in plots if plot.name != "failures")),
        failure_plot=figures_of(*(plot for plot in plots if plot.name == "failures")),
        splits=_splits(report.splits) + _split_verdicts(report.split_comparisons),
        failures=_failures(report, names),
        index=json_in_html(data.index),
        trees=json_in_html(data.trees),
        texts=json_in_html(data.texts),
    )


def _section(text: str) -> str:
    """Render a section of the report; the texts of prompts are folded away."""
    if not text.startswith(PROMPTS_HEADING):
        return f"<section>{render_markdown(f'## {text}')}</section>"
    _, _, names, body = text.split("\n", 3)
    summary = f"{PROMPTS_HEADING}: {names.rstrip(':')}"
    return f'<details class="extra"><summary>{html_text(summary)}</summary>{render_markdown(body)}</details>'


def _facts(run: LoadedRun, report: Report) -> str:
    identity = part_of(run.manifest, "identity")
    asked = report.questions["question_id"].nunique()
    facts = {
        "data set": run.experiment.dataset,
        "questions": f"{asked:,} of {len(run.dataset.questions):,}",
        "answers": f"{len(report.questions):,}",
        "run": str(run.manifest.get("created", ""))[:10],
        **{name.replace("_", " "): identity.get(name) for name in _HEAD_FACTS},
    }
    if identity.get("thinking") is not None:
        facts["thinking"] = "on" if identity["thinking"] else "off"
    if identity.get("retriever") is not None:
        del facts["search type"]
    shown = [(name, value) for name, value in facts.items() if value not in (None, "")]
    return "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>" for name, value in shown)


def _flat(content: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _comparisons(report: Report, systems: Sequence[str]) -> str:
    verdicts = verdicts_of(report.comparisons)
    if report.baseline == ALL_PAIRS and len(systems) > 1:
        summary = f"<summary>{len(report.comparisons):,} comparisons in words</summary>"
        verdicts = f"{_matrices(report.comparisons, systems)}<details>{summary}{verdicts}</details>"
    worst = worst_em(report.questions)
    right, wrong = worst == 1.0, worst < 1.0
    pairs = [pair for one, two in itertools.combinations(systems, 2) for pair in ((one, two), (two, one))]
    links = "".join(
        f"<li>{_link(f'{one} right, {two} wrong', right=one, wrong=two)}: {int((right[one] & wrong[two]).sum())}</li>"
        for one, two in pairs
    )
    return f'{verdicts}<ul class="pairs">{links}</ul>' if pairs else "<p>One system.</p>"


def _matrices(comparisons: Sequence[Comparison], systems: Sequence[str]) -> str:
    """Build a table for each metric: the system of the row less that of the column."""
    tables = []
    for metric in dict.fromkeys(each.paired.metric for each in comparisons):
        cells: dict[tuple[str, str], str] = {}
        for each in comparisons:
            if each.paired.metric == metric:
                cells[each.a, each.b] = _difference(each.paired, 1)
                cells[each.b, each.a] = _difference(each.paired, -1)
        rows = [[html_text(row), *(cells.get((row, column), "") for column in systems)] for row in systems]
        tables.append(table_of((f"{html_text(metric.upper())}, row less column", *map(html_text, systems)), rows))
    corrected = f"bold where a difference was shown, after Holm's correction for {len(comparisons):,} comparisons."
    return f'<p class="faint">EM and F1 in points, with 95 % intervals; {corrected}</p>{"".join(tables)}'


def _difference(paired: PairedComparison, sign: int) -> str:
    low, high = paired.difference.low, paired.difference.high
    factor, digits = (100 * sign, 1) if paired.unit == "points" else (sign, 3)
    mean = f"{factor * paired.difference.mean:+.{digits}f}"
    mean = f"<strong>{mean}</strong>" if paired.is_shown else mean
    if low is None or high is None:
        return mean
    bounds = " to ".join(f"{bound:+.{digits}f}" for bound in sorted((factor * low, factor * high)))
    return f"{mean}<small>{bounds}</small>"


def _split_verdicts(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    shown = [each for each in comparisons if each.paired.is_shown]
    count = f"{len(comparisons):,} paired comparisons, corrected together"
    if not shown:
        return f'<p class="faint">No difference was shown by any of {count}.</p>'
    return f'<p class="faint">Differences shown by {len(shown):,} of {count}:</p>{verdicts_of(shown)}'


def _link(words: str, **search: str) -> str:
    """Build a link that filters the page's questions."""
    return f'<a href="#{html.escape(urlencode(search))}">{html_text(words)}</a>'


def _splits(splits: pd.DataFrame) -> str:
    """Build a table for each split: one row per part, one column per system and metric."""
    if splits.empty:
        return "<p>The data set has no kinds of questions.</p>"
    tables = []
    for split, rows in splits.groupby("split", sort=False):
        columns = list(dict.fromkeys(zip(rows["system"], rows["metric"], strict=True)))
        by_place = rows.set_index(["part", "system", "metric"])
        head = [
            html_text(SPLIT_WORDS[str(split)].capitalize()),
            "n",
            *(html_text(f"{s} {m.upper()}") for s, m in columns),
        ]
        body = []
        for part in dict.fromkeys(rows["part"]):
            n = int(rows[rows["part"] == part]["n"].max())
            places = ((part, system, metric) for system, metric in columns)
            cells = [_mean(by_place.loc[place]) if place in by_place.index else "" for place in places]
            body.append([html_text(part), f"{n:,}", *cells])
        tables.append(table_of(head, body))
    return "".join(tables)


def _mean(row: pd.Series) -> str:
    if pd.isna(row["low"]):
        return f"{100 * row['mean']:.1f}"
    return f"{100 * row['mean']:.1f}<small>{100 * row['low']:.1f} to {100 * row['high']:.1f}</small>"


def _failures(report: Report, systems: Sequence[str]) -> str:
    """Build a table with one row per kind and one column per system; each count links to its questions."""
    counts = report.failures.set_index(["kind", "system"])["answers"].to_dict()
    kinds = [kind for kind in FAILURE_KINDS if any((kind, system) in counts for system in systems)]
    if not kinds:
        return "<p>No wrong answer among those whose gold answers are known.</p>"
    rows = [
        [
            f"{html_text(FAILURE_WORDS[kind][0])}<small>{html_text(FAILURE_WORDS[kind][1])}</small>",
            *(
                _link(f"{count:,}", system=system, outcome=kind) if (count := counts.get((kind, system))) else "0"
                for system in systems
            ),
        ]
        for kind in kinds
    ]
    errors = report.questions[report.questions["em"] < 1.0]["system"].value_counts()
    total = ["all errors", *(f"{errors.get(system, 0):,}" for system in systems)]
    known = report.questions[report.questions["em"].notna()]["system"].value_counts()
    answers = ["of answers whose gold is known", *(f"{known.get(system, 0):,}" for system in systems)]
    return table_of(["kind", *map(html_text, systems)], [*rows, total, answers])


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
