"""``judgetree conversations expire`` and ``backfill``: keeping store and memory in order."""

from __future__ import annotations

from dataclasses import asdict

from ...graphs.conversation.expiry import ExpiryReport
from ...graphs.drawing.words import count_of
from ...modules.settings import Settings, load_settings
from ..terminal.exit_status import OK
from ..terminal.saved import may_hold_threads, open_saved
from ..terminal.terminal import busy, say, write_json, write_result
from .collections import database_exists


def run_expire(*, days: int | None, dry_run: bool, as_json: bool) -> int:
    """Delete the conversations that nobody has spoken in for so many days; None takes the setting.

    Raises:
        UserError: Store or memory cannot be used.
    """
    settings = load_settings()
    report = _expired(settings, settings.conversation_expire_days if days is None else days, dry_run=dry_run)
    if as_json:
        write_json(asdict(report))
        return OK
    gone = [*report.conversations, *report.orphans]
    if gone:
        write_result("\n".join(gone))
    said = f"{_would('deleted', dry_run=dry_run)} {count_of(len(gone), 'conversation')}"
    say(f"{said} with {count_of(report.turns, 'turn')} and {count_of(report.threads, 'thread')}")
    for name in report.busy:
        say(f"left alone, since it is answering a question: {name}", style="yellow")
    for name in report.unreadable:
        say(f"left alone, since this judgetree cannot read it: {name}", style="yellow")
    return OK


def run_backfill(name: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Put turns that another program has written into the memory in a line; None does so for all conversations.

    Raises:
        UserError: Store or memory cannot be used.
    """
    settings = load_settings()
    turns = 0
    if database_exists(settings):
        with busy("linking turns"), open_saved(settings) as conversations:
            turns = conversations.backfill(name, dry_run=dry_run)
    if as_json:
        write_json({"turns": turns, "dry_run": dry_run})
    else:
        say(f"{_would('linked', dry_run=dry_run)} {count_of(turns, 'turn')}")
    return OK


def _expired(settings: Settings, days: int, *, dry_run: bool) -> ExpiryReport:
    """What was deleted; nothing, and no file made, where there is neither store nor memory yet."""
    if not may_hold_threads(settings.checkpoint_url) and not database_exists(settings):
        return ExpiryReport(conversations=(), turns=0, threads=0, dry_run=dry_run)
    with busy("looking for old conversations"), open_saved(settings) as conversations:
        return conversations.delete_old_conversations(days, dry_run=dry_run)


def _would(done: str, *, dry_run: bool) -> str:
    return f"would have {done}" if dry_run else done
