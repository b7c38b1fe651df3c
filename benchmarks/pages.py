"""Pages of measured figures: ``python -m benchmarks.pages`` fills the tables of ``docs/measured/*.md`` from the data.

A table and its plot stand in a page between two comments, of which the first names the benchmark and, a line each, the
rows; everything else on the page is written by hand::

    <!-- figures: drawing
    SVG of a tree of 1000 nodes
    -->
    <!-- end of figures -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .history import DATA, Run, read_runs
from .history_plot import History, history_svg
from .measurement import MARKS, Row

PAGES = DATA.parent
FIGURES = re.compile(r"(<!-- figures: (?P<name>\w+)\n(?P<rows>.*?)-->\n).*?(<!-- end of figures -->\n)", re.DOTALL)
SUMMARY = re.compile(r"(<!-- summary -->\n).*?(<!-- end of summary -->\n)", re.DOTALL)
LEAST_POINTS = 3
"""Runs from which on a figure has a plot."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A row in the newest run that has it, and that run."""

    row: Row
    run: Run


def newest(runs: Sequence[Run], what: str) -> Shown:
    """Return the newest figure of this name.

    Raises:
        LookupError: No run has it.
    """
    found = [Shown(row=row, run=run) for run in runs for row in run.rows if row.what == what]
    if not found:
        raise LookupError(
            f"no run has a row {what!r}; there are {sorted({row.what for run in runs for row in run.rows})}"
        )
    return found[-1]


def history_of(runs: Sequence[Run], what: str) -> History:
    """Return the values of a figure in all runs, the newest last; none if it has no numbers."""
    rows = [row for run in runs for row in run.rows if row.what == what and row.values]
    return History(
        what=what, unit=rows[-1].unit if rows else "", required=rows[-1].required if rows else "",
        values=tuple(row.values[0] for row in rows),
    )  # fmt: skip


def drawn(text: str) -> tuple[str, dict[str, str]]:
    """Return the text of a page with its tables filled, and the plots that it shows by the name of their file."""
    plots: dict[str, str] = {}

    def fill(block: re.Match[str]) -> str:
        whats = [line.strip() for line in block["rows"].splitlines() if line.strip()]
        runs = read_runs(block["name"])
        histories = [each for each in (history_of(runs, what) for what in whats) if len(each.values) >= LEAST_POINTS]
        picture = ""
        if histories:
            file = f"{block['name']}.svg"
            plots[file] = history_svg(histories)
            picture = f"\n![Earlier runs]({file})\n"
        table = "\n".join(_table([newest(runs, what) for what in whats]))
        return f"{block[1]}\n{table}\n\n{_source(block['name'], runs, whats)}\n{picture}\n{block[4]}"

    filled = FIGURES.sub(fill, text)
    return SUMMARY.sub(lambda block: f"{block[1]}\n{_summary()}\n\n{block[2]}", filled), plots


def _table(shown: Sequence[Shown]) -> Iterator[str]:
    yield "| figure | measured | goal | met | when |"
    yield "|---|---|---|---|---|"
    for each in shown:
        row = each.row
        cells = (row.what, row.figure, row.required or "-", MARKS[row.holds] or "-", _when(each.run))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|').replace('<', '&lt;') for cell in cells)} |"


def _when(run: Run) -> str:
    return "; ".join(filter(None, (str(run.day or ""), run.note))) or "not recorded"


def _source(name: str, runs: Sequence[Run], whats: Sequence[str]) -> str:
    shown = [newest(runs, what).run for what in whats]
    machines = "; ".join(dict.fromkeys(f"{run.machine}, Python {run.versions['python']}" for run in shown))
    commands = ", ".join(dict.fromkeys(f"`{run.command}`" if run.command else "by hand" for run in shown))
    return f"Machine: {machines}. Measured by: {commands}. [All rows and runs](data/{name}.json)."


def _summary() -> str:
    lines = ["| page | figures | with a goal | met |", "|---|---|---|---|"]
    for page in pages():
        text = page.read_text(encoding="utf-8")
        shown = [
            newest(read_runs(block["name"]), line.strip()).row
            for block in FIGURES.finditer(text)
            for line in block["rows"].splitlines()
            if line.strip()
        ]
        if shown:
            goals = [row.holds for row in shown if row.holds is not None]
            title = text.partition("\n")[0].removeprefix("# ")
            lines.append(f"| [{title}]({page.name}) | {len(shown)} | {len(goals)} | {sum(goals)} |")
    return "\n".join(lines)


def pages() -> list[Path]:
    """Return the files with tables or a summary to fill."""
    return [
        page
        for page in sorted(PAGES.glob("*.md"))
        if FIGURES.search(text := page.read_text(encoding="utf-8")) or SUMMARY.search(text)
    ]


def draw_pages() -> None:
    """Write all pages and their plots anew."""
    for page in pages():
        text, plots = drawn(page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        for file, svg in plots.items():
            (PAGES / file).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    draw_pages()
