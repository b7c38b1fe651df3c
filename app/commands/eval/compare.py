"""``judgetree eval compare``: compares the systems of one run, or of two."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ....modules.errors import needs_extra
from ...terminal.terminal import busy, write_json, write_result
from ..options import Json, RunFolder

if TYPE_CHECKING:
    from ....evaluation.reports.compare import Comparison

# Copied, as in ``options``.
RowChoiceName = Literal["complete", "usable", "answered", "all"]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="SYSTEM",
        help="System that the others are compared with, or all for every pair; default: naive.",
    ),
]


def compare(
    first: RunFolder,
    second: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Another run; without it, the systems of the first are compared."),
    ] = None,
    *,
    baseline: Baseline = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs that differ in data, retriever or reader.")
    ] = False,
    rows: Annotated[
        RowChoiceName,
        typer.Option(
            help="Rows that count. usable: without those with unusable replies; answered: also degraded ones; "
            "all: also failed ones; 0 without an answer."
        ),
    ] = "complete",
    primary: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Primary outcome, such as em, f1, evidence or llm_calls; default: the run's."
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS", help="Also test whether systems are equivalent within so many points (or calls, tokens)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare systems question by question: a verdict by the primary outcome, and a table of the others.

    Examples:
        judgetree eval compare runs/first runs/second
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.reports.compare import compare_runs
        from ....evaluation.reports.loaded_run import words_of_run
        from ....evaluation.reports.verdicts import comparison_blocks
        from ....evaluation.tables.markdown import blocks_markdown

    comparisons = compare_runs(first, second, baseline=baseline, force=force, rows=rows, primary=primary, margin=margin)
    if as_json:
        write_json([_comparison_document(each) for each in comparisons])
    else:
        made_of = (words_of_run(folder) for folder in filter(None, (first, second)))
        write_result(blocks_markdown((*comparison_blocks(comparisons, comparisons[0].paired.metric), *made_of)))


def _comparison_document(comparison: Comparison) -> dict[str, object]:
    document = asdict(comparison)
    return {"verdict": comparison.verdict, **document.pop("paired"), **document}
