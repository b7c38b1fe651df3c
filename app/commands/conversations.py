"""``judgetree conversations``: lists, shows, draws, deletes and maintains saved conversations."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..stores.collections import database_exists
from ..terminal.terminal import Cell, busy, local_time, say, width, write_json, write_result, write_rows
from .options import DotFile, DryRun, Json, JsonFile, SvgFile, Yes

if TYPE_CHECKING:
    from ...graphs.conversation.turn.store import ConversationSummary

conversations_app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a conversation.")]


@conversations_app.command("list")
def list_(as_json: Json = False) -> None:
    """List the conversations, the latest first.

    Examples:
        judgetree conversations list
    """
    with busy():
        from ...modules.settings import load_settings
        from ..terminal.saved import saved_summaries

    summaries = saved_summaries(load_settings())
    if as_json:
        write_json([asdict(summary) for summary in summaries])
    elif summaries:
        write_rows(_row(summary) for summary in summaries)
    else:
        say("No conversations yet. Begin one: judgetree chat -c NAME")


@conversations_app.command()
def show(
    name: Name,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the active one.")] = None,
    as_json: Json = False,
) -> None:
    """Show the turns of a conversation.

    Examples:
        judgetree conversations show oils
    """
    with busy():
        from ...graphs.conversation.branches import branch_named
        from ...modules.memory.turns import is_on_path, path_spans
        from ..chat.words import branches_text, format_open_turn, turns_text
        from ..terminal.saved import saved_conversation

    with saved_conversation(name) as (_, talk):
        branches, open_turn = talk.branches(), talk.open_turn
        by_id = {each["branch_id"]: each for each in branches}
        shown = branch_named(by_id, branch or talk.active_branch)
        spans = path_spans(by_id, shown["branch_id"], shown["head_number"])
        turns = sorted((turn for turn in talk.turns() if is_on_path(turn, spans)), key=lambda turn: turn["turn_number"])
    if as_json:
        write_json(
            {"name": name, "branch": shown["name"], "turns": turns, "branches": branches, "open_turn": open_turn}
        )
        return
    write_result(turns_text(turns) or "No turn yet.")
    if len(branches) > 1:
        say(branches_text(branches, shown["name"]), style="dim")
    if open_turn is not None:
        say(format_open_turn(open_turn), style="yellow")


@conversations_app.command()
def draw(
    name: Name,
    svg: SvgFile = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Searchable page with all search trees.")] = None,
    json: JsonFile = None,
    dot: DotFile = None,
) -> None:
    """Show all branches of a conversation: as text, or in files.

    Examples:
        judgetree conversations draw oils --html oils.html
    """
    with busy():
        from ..terminal.files import TreeFiles
        from ..terminal.saved import saved_conversation

    files = TreeFiles.named(svg=svg, html=html, json=json, dot=dot)
    files.check(stdout_is_free=True)
    with saved_conversation(name) as (_, talk):
        tree = talk.tree()
    if files.targets:
        files.write(tree)
    else:
        write_result(tree.to_text(width=width()))


@conversations_app.command()
def delete(
    name: Name,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="This branch only.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a conversation with its search trees.

    Examples:
        judgetree conversations delete oils --dry-run
    """
    with busy():
        from ...graphs.conversation.branches import branch_named
        from ...graphs.drawing.words import count_of
        from ...modules.errors import LostParts
        from ..terminal.deleting import may_delete
        from ..terminal.saved import saved_conversation

    what = f"the branch {branch!r} of {name!r}" if branch is not None else f"the conversation {name!r}"
    try:
        with saved_conversation(name) as (conversations, talk):
            turns = talk.turns()
            if branch is not None:
                found = branch_named({each["branch_id"]: each for each in talk.branches()}, branch)
                turns = [turn for turn in turns if turn["branch_id"] == found["branch_id"]]
            size = f"{what}, {count_of(len(turns), 'turn')} with their search trees"
            if not may_delete(size, f"Delete {what} for good?", yes=yes, dry_run=dry_run):
                return
            if branch is None:
                say(f"deleted {what} with {count_of(conversations.delete(name), 'thread')}")
            else:
                say(f"deleted {what} with {count_of(talk.delete_branch(branch), 'turn')}")
    except LostParts:
        if branch is not None:
            raise
        _delete_remains(name, yes=yes, dry_run=dry_run)


def _delete_remains(name: str, *, yes: bool, dry_run: bool) -> None:
    from ...graphs.drawing.words import count_of
    from ...modules.settings import load_settings
    from ..terminal.deleting import may_delete
    from ..terminal.saved import open_saved

    what = f"what the store has not lost of the conversation {name!r}"
    if may_delete(what, f"Delete {what} for good?", yes=yes, dry_run=dry_run):
        with open_saved(load_settings()) as conversations:
            say(f"deleted {what}, {count_of(conversations.delete(name), 'thread')}")


@conversations_app.command()
def expire(
    days: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Age in days; default: JUDGETREE_CONVERSATION_EXPIRE_DAYS, which is 30."),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete the conversations without a new question for many days. A script needs no --yes.

    Examples:
        judgetree conversations expire --days 90 --dry-run
    """
    with busy():
        from ...graphs.conversation.expiry import ExpiryReport
        from ...graphs.drawing.words import count_of
        from ...modules.settings import load_settings
        from ..terminal.deleting import may_delete, names_text
        from ..terminal.saved import may_hold_threads, open_saved

    settings = load_settings()
    report = ExpiryReport(conversations=(), turns=0, threads=0, dry_run=dry_run)
    if may_hold_threads(settings.checkpoint_url) or database_exists(settings):  # opening would create them
        with busy("looking for old conversations"), open_saved(settings) as conversations:
            age = settings.conversation_expire_days if days is None else days
            report = conversations.delete_old_conversations(age, dry_run=True)
        old = [*report.conversations, *report.orphans]
        size = f"{count_of(len(old), 'conversation')} with {count_of(report.turns, 'turn')}: {names_text(old)}"
        if not dry_run and old:
            if not may_delete(size, "Delete them for good?", yes=yes, dry_run=False, asks_scripts=False):
                return
            with busy("deleting"), open_saved(settings) as conversations:
                report = conversations.delete_old_conversations(age)
        report = replace(report, dry_run=dry_run)
    if as_json:
        write_json(asdict(report))
        return
    gone = [*report.conversations, *report.orphans]
    if gone:
        write_result("\n".join(gone))
    said = f"{_would('deleted', dry_run=dry_run)} {count_of(len(gone), 'conversation')}"
    say(f"{said} with {count_of(report.turns, 'turn')} and {count_of(report.threads, 'thread')}")
    for name in report.busy:
        say(f"left alone, since it is answering a question: {name}", style="yellow")
    for name in report.unreadable:
        say(f"left alone, since this judgetree cannot read it: {name}", style="yellow")


@conversations_app.command()
def backfill(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: all.")] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Put turns that another program wrote into the memory on a path, in the order of their times.

    Examples:
        judgetree conversations backfill oils --dry-run
    """
    with busy():
        from ...graphs.drawing.words import count_of
        from ...modules.settings import load_settings
        from ..terminal.saved import open_saved

    settings = load_settings()
    turns = 0
    if database_exists(settings):
        with busy("linking turns"), open_saved(settings) as conversations:
            turns = conversations.backfill(name, dry_run=dry_run)
    if as_json:
        write_json({"turns": turns, "dry_run": dry_run})
    else:
        say(f"{_would('linked', dry_run=dry_run)} {count_of(turns, 'turn')}")


def _would(done: str, *, dry_run: bool) -> str:
    return f"would have {done}" if dry_run else done


def _row(summary: ConversationSummary) -> tuple[Cell, ...]:
    from ...graphs.drawing.words import count_of

    branches = f"{len(summary.branches)} branches" if len(summary.branches) > 1 else ""
    return (
        (summary.name, ""),
        (local_time(summary.updated_at), "dim"),
        (count_of(summary.turns, "turn"), ""),
        (branches, ""),
        ("open turn" if summary.open_turn else "", "yellow"),
        (summary.title or (summary.open_turn["query"] if summary.open_turn else ""), ""),
    )
