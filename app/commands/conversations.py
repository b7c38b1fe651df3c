"""``judgetree conversations``: what earlier chats have left, to be looked at, drawn and cleared away."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime

import typer

from ...graphs.conversation.branches import branch_named
from ...graphs.conversation.conversation import Conversation
from ...graphs.conversation.turn.store import ConversationSummary
from ...graphs.drawing.words import count_of
from ...modules.errors import SettingsError
from ...modules.memory.turns import Branch, QaPair, is_on_path, path_spans
from ...modules.settings import load_settings
from ..chat.words import branches_text, open_turn_words, turns_text
from ..terminal.exit_status import OK
from ..terminal.files import TreeFiles, write_conversation
from ..terminal.saved import known_conversation, open_saved, refuse_without_store, saved_summaries
from ..terminal.terminal import Cell, say, width, write_json, write_result, write_rows


def run_list(*, as_json: bool) -> int:
    """List the conversations, the one that was last spoken in first.

    Raises:
        UserError: The checkpoint store cannot be opened.
    """
    summaries = saved_summaries(load_settings())
    if as_json:
        write_json([asdict(summary) for summary in summaries])
    elif summaries:
        write_rows(_row(summary) for summary in summaries)
    else:
        say("No conversations yet. Begin one: judgetree chat -c NAME")
    return OK


def run_show(name: str, *, branch: str | None, as_json: bool) -> int:
    """Show the turns of a branch, the active one where none is named, and the branches there are.

    Raises:
        UserError: There is no such conversation or branch, or store or memory cannot be opened.
    """
    settings = load_settings()
    refuse_without_store(settings, name)
    with open_saved(settings) as conversations:
        talk = known_conversation(conversations, name)
        branches, open_turn = talk.branches(), talk.open_turn
        shown = branch_named({each["branch_id"]: each for each in branches}, branch or talk.active_branch)
        turns = _turns_of(talk, shown, branches)
    if as_json:
        write_json(
            {
                "name": name,
                "branch": shown["name"],
                "turns": turns,
                "branches": branches,
                "open_turn": open_turn,
            }
        )
        return OK
    write_result(turns_text(turns) or "No turn yet.")
    if len(branches) > 1:
        say(branches_text(branches, shown["name"]), style="dim")
    if open_turn is not None:
        say(open_turn_words(open_turn), style="yellow")
    return OK


def run_delete(name: str, *, branch: str | None, is_sure: bool) -> int:
    """Delete a conversation, or a branch of it, with its search trees, once the user is sure.

    Raises:
        UserError: There is no such conversation or branch, it cannot be deleted, or nobody is there to be asked.
    """
    settings = load_settings()
    refuse_without_store(settings, name)
    what = f"the branch {branch!r} of {name!r}" if branch is not None else f"the conversation {name!r}"
    with open_saved(settings) as conversations:
        talk = known_conversation(conversations, name)
        if not is_sure and not _agrees(f"Delete {what} for good?"):
            say("Nothing was deleted.")
        elif branch is None:
            threads = conversations.delete(name)
            say(f"deleted {what} with {count_of(threads, 'thread')}")
        else:
            say(f"deleted {what} with {count_of(talk.delete_branch(branch), 'turn')}")
    return OK


def run_draw(name: str, *, files: TreeFiles) -> int:
    """Show a conversation with all its branches as text, or write it in the wanted formats.

    Raises:
        UserError: There is no such conversation, or a file cannot be written.
    """
    settings = load_settings()
    files.check(stdout_is_free=True)
    refuse_without_store(settings, name)
    with open_saved(settings) as conversations:
        tree = known_conversation(conversations, name).tree()
    if files.targets:
        write_conversation(tree, files)
    else:
        write_result(tree.to_text(width=width()))
    return OK


def _turns_of(talk: Conversation, branch: Branch, branches: list[Branch]) -> list[QaPair]:
    """The turns on the path to the newest one of a branch, from the first on."""
    spans = path_spans({each["branch_id"]: each for each in branches}, branch["branch_id"], branch["head_number"])
    return sorted((turn for turn in talk.turns() if is_on_path(turn, spans)), key=lambda turn: turn["turn_number"])


def _agrees(question: str) -> bool:
    if not sys.stdin.isatty():
        raise SettingsError(f"{question} Nobody is there to be asked: add --yes.")
    return typer.confirm(question, err=True)


def _row(summary: ConversationSummary) -> tuple[Cell, ...]:
    branches = f"{len(summary.branches)} branches" if len(summary.branches) > 1 else ""
    return (
        (summary.name, ""),
        (_local_time(summary.updated_at), "dim"),
        (count_of(summary.turns, "turn"), ""),
        (branches, ""),
        ("open turn" if summary.open_turn else "", "yellow"),
        (summary.title or (summary.open_turn["query"] if summary.open_turn else ""), ""),
    )


def _local_time(timestamp: str) -> str:
    return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
