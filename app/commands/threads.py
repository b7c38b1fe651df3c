"""``judgetree tree`` and ``judgetree threads``: what earlier runs have left."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from ...graphs.rag.thread_runs import ThreadSummary
from ...modules.settings import load_settings
from ..terminal.exit_status import OK
from ..terminal.files import TreeFiles
from ..terminal.saved import newest_threads, read_saved_tree
from ..terminal.terminal import Cell, say, width, write_json, write_result, write_rows

STATUS_STYLES = {"answered": "green", "refused": "dim", "failed": "red", "open": "yellow"}


def run_tree(thread_id: str, *, files: TreeFiles) -> int:
    """Show a thread's tree as text, or write it in the wanted formats.

    Raises:
        UserError: The thread is unknown, or a file cannot be written.
    """
    files.check(stdout_is_free=True)
    tree = read_saved_tree(load_settings(), thread_id)
    if files.targets:
        files.write(tree)
    else:
        write_result(tree.to_text(width=width()))
    return OK


def run_threads(*, limit: int, as_json: bool) -> int:
    """List the questions that were asked, newest first.

    Raises:
        UserError: The checkpoint store cannot be opened.
    """
    threads = newest_threads(load_settings(), limit)
    if as_json:
        write_json([asdict(thread) for thread in threads])
    elif threads:
        write_rows(_row(thread) for thread in threads)
    else:
        say('No threads yet. Ask something: judgetree ask "…" -c NAME')
    return OK


def _row(thread: ThreadSummary) -> tuple[Cell, ...]:
    status = thread.answer_status or thread.status
    return (
        (thread.thread_id, ""),
        (_local_time(thread.created_at), "dim"),
        (thread.system, "dim"),
        (status, STATUS_STYLES.get(status, "")),
        (thread.query, ""),
    )


def _local_time(created_at: str) -> str:
    if not created_at:
        return ""
    return datetime.fromisoformat(created_at).astimezone().strftime("%Y-%m-%d %H:%M")
