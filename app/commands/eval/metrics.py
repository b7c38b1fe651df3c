"""``judgetree eval metrics``: what the columns of a run's files and reports mean."""

from __future__ import annotations

from dataclasses import asdict

from ....modules.errors import needs_extra
from ...terminal.terminal import busy, write_json, write_rows
from ..options import Json


def metrics(as_json: Json = False) -> None:
    """List the columns of results.csv and of reports: unit, which way is better, meaning, source.

    Examples:
        judgetree eval metrics
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.metrics.dictionary import all_columns

    if as_json:
        write_json([{"name": name, **asdict(column)} for name, column in all_columns().items()])
        return
    write_rows(
        (
            (name, "bold"),
            (column.unit, "dim"),
            (f"{column.better} is better" if column.better else "", "dim"),
            (f"{column.meaning}{f' ({column.source})' if column.source else ''}", ""),
        )
        for name, column in all_columns().items()
    )
