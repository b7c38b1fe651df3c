"""``judgetree eval fetch``: public data sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ...evaluation.datasets.fetch import fetch_dataset, source_of
from ...evaluation.datasets.sources import SOURCES
from ...modules.settings import load_settings
from ..terminal.exit_status import OK
from ..terminal.terminal import is_live, notes, say, write_json, write_result, write_rows

LOOPBACK_HTTP = "JUDGETREE_TEST_LOOPBACK_HTTP"
"""Environment variable of the tests, whose mirrors are on loopback and speak plain HTTP."""


def run_list(*, as_json: bool) -> int:
    """Tell which data sets can be fetched, with their licences and sizes."""
    if as_json:
        write_json({name: asdict(source) for name, source in SOURCES.items()})
    else:
        write_rows(
            ((name, "bold"), (source.licence, ""), (source.size, ""), (source.homepage, ""))
            for name, source in SOURCES.items()
        )
    return OK


def run_fetch(name: str, out: Path | None, *, url: str | None, as_json: bool) -> int:
    """Tell what the data set is, and bring it into ``out``, unless it is there.

    Raises:
        UserError: There is no such data set, or it has to be got by hand; the message says how.
    """
    source = source_of(name)
    folder = out if out is not None else load_settings().home / "datasets"
    say(f"{name}: {source.size}.\nLicence: {source.licence}\nHome: {source.homepage}\nCite: {source.citation}")
    with _download_bar() as on_progress:
        fetched = fetch_dataset(
            name, folder, url=url, on_progress=on_progress, loopback_http=LOOPBACK_HTTP in os.environ
        )
    if as_json:
        write_json({**asdict(source), **asdict(fetched)})
        return OK
    had = "Fetched" if fetched.downloaded else "Already there"
    left_out = f", {fetched.malformed} malformed rows left out" if fetched.malformed else ""
    write_result(
        f"{had}: {fetched.questions} questions, {fetched.documents} documents{left_out}\n"
        f"Next: judgetree eval run --dataset {fetched.spec} --limit 100 --out runs/{name}"
    )
    return OK


@contextmanager
def _download_bar() -> Iterator[Callable[[int, int], None]]:
    """What a download is reported to: a bar in a terminal, nothing elsewhere."""
    if not is_live(sys.stderr):
        yield lambda done, total: None
        return
    columns = (TextColumn("downloading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes(), transient=True, redirect_stdout=False, redirect_stderr=False) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)
