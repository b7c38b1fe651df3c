"""``judgetree eval fetch``: downloads public data sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...terminal.terminal import bars_of, busy, is_live, say, write_json, write_result, write_rows
from ..options import Json

LOOPBACK_HTTP = "JUDGETREE_TEST_LOOPBACK_HTTP"
"""Environment variable that allows mirrors with plain HTTP on loopback, for the tests."""


def fetch(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Such as hotpotqa; without a name, list what there is.")
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Folder to download into; default: datasets in .judgetree."),
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Address of a mirror of its file or archive.")] = None,
    as_json: Json = False,
) -> None:
    """Download a public data set or prebuilt index; print licence, size, citation, and what to do by hand.

    Examples:
        judgetree eval fetch musique
    """
    with busy():
        from ....evaluation.datasets.fetch import fetch_dataset, source_of
        from ....evaluation.datasets.sources import SOURCES, DatasetSource
        from ....evaluation.fetch_prebuilt import PREBUILT, PublicPrebuilt, fetch_prebuilt
        from ....modules.errors import SettingsError

    listed: dict[str, DatasetSource | PublicPrebuilt] = {**SOURCES, **PREBUILT}
    if name is None and as_json:
        write_json({name: asdict(source) for name, source in listed.items()})
    elif name is None:
        write_rows(
            ((name, "bold"), (source.licence, ""), (source.size, ""), (source.homepage, ""))
            for name, source in listed.items()
        )
    elif name in PREBUILT:
        public, folder = PREBUILT[name], _target(out) / name
        if url is not None:
            raise SettingsError("--url is a mirror of a single file, and a prebuilt index has several: leave it out.")
        say(f"{name}: {public.size}.\nLicence: {public.licence}\nHome: {public.homepage}\nCite: {public.citation}")
        with _closed(folder, out), _download_bar() as on_progress:
            is_new = fetch_prebuilt(name, folder, on_progress=on_progress, loopback_http=LOOPBACK_HTTP in os.environ)
        if as_json:
            write_json({**asdict(public), "folder": str(folder), "downloaded": is_new})
            return
        had = "Fetched" if is_new else "Already there"
        write_result(f"{had}: {folder}\nNext: judgetree ask QUESTION --retriever prebuilt:{folder}")
    else:
        source = source_of(name)
        folder = _target(out)
        say(f"{name}: {source.size}.\nLicence: {source.licence}\nHome: {source.homepage}\nCite: {source.citation}")
        with _closed(folder, out), _download_bar() as on_progress:
            fetched = fetch_dataset(
                name, folder, url=url, on_progress=on_progress, loopback_http=LOOPBACK_HTTP in os.environ
            )
        if as_json:
            write_json({**asdict(source), **asdict(fetched)})
            return
        had = "Fetched" if fetched.downloaded else "Already there"
        left_out = f", {fetched.malformed} malformed rows left out" if fetched.malformed else ""
        write_result(
            f"{had}: {fetched.questions} questions, {fetched.documents} documents{left_out}\n"
            f"Next: judgetree eval run --dataset {fetched.spec} --sample 100 --out runs/{name}"
        )


def _target(out: Path | None) -> Path:
    """Return the folder for downloads: the one that is named, else a private one in the home."""
    from ....modules.settings import load_settings
    from ....modules.trust.private import private_folder

    return out if out is not None else private_folder(load_settings().home / "datasets")


@contextmanager
def _closed(folder: Path, out: Path | None) -> Iterator[None]:
    """Close what is downloaded into the home to others, who cannot enter its folder meanwhile."""
    from ....modules.trust.closed import close_all

    yield
    if out is None:
        close_all(folder)


@contextmanager
def _download_bar() -> Iterator[Callable[[int, int], None]]:
    """Give a callback for (done, total) bytes: a bar in a terminal, nothing elsewhere."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    if not is_live(sys.stderr):
        yield lambda done, total: None
        return
    columns = (TextColumn("downloading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with bars_of(*columns, transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)
