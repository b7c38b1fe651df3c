"""``judgetree threads``: the list of questions asked so far."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ...terminal.home import home_in_use
from ...terminal.terminal import Cell, busy, local_time, say, write_json, write_rows
from ..options import Json

if TYPE_CHECKING:
    from ....graphs.rag.thread_runs import ThreadSummary

STATUS_STYLES = {"answered": "green", "refused": "dim", "failed": "red", "open": "yellow"}


def threads(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 20, as_json: Json = False
) -> None:
    """List the questions asked so far, newest first.

    Examples:
        judgetree threads
        judgetree threads --limit 100 --json
    """
    with busy():
        from ....modules.settings import load_settings
        from ...terminal.saved import newest_threads

    settings = load_settings()
    newest = newest_threads(settings, limit)
    if as_json:
        write_json([asdict(thread) for thread in newest])
    elif newest:
        write_rows(_row(thread) for thread in newest)
    else:
        say(f'No threads yet. {home_in_use(settings)}. Ask something: judgetree ask "…" -c NAME')


def _row(thread: ThreadSummary) -> tuple[Cell, ...]:
    status = thread.answer_status or thread.status
    return (
        (thread.thread_id, ""),
        (local_time(thread.created_at), "dim"),
        (thread.system, "dim"),
        (status, STATUS_STYLES.get(status, "")),
        (f"{thread.query} ({thread.fork})" if thread.fork else thread.query, ""),
    )
