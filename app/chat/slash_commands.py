"""Slash commands of a chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...graphs.conversation.conversation import FIRST, Conversation
from ...graphs.drawing.layout import wrap
from ...graphs.rag.search_tree import SearchTree
from ...modules.errors import SettingsError, UnknownThread
from ...modules.memory.turns import QaPair
from ...modules.settings import Settings
from ..terminal.files import files_by_suffix
from ..terminal.saved import read_saved_tree
from ..terminal.terminal import say, width
from .set_options import SetOptions, read_options
from .words import ORIGINS, branches_text, turns_text

_HELP: Mapping[str, str] = {
    "/branch": "list the branches; * is the active one",
    "/branch NAME": "switch to another branch",
    "/branch N": "the same as /after N, unless a branch has that number for its name",
    "/after N": "the next question follows turn N of this branch, on a branch of its own; 0 starts a new path",
    "/history": "the turns of this branch",
    "/tree [N]": "the search tree of turn N; of the newest one without N",
    "/regenerate": "ask the newest question again, on a branch of its own",
    "/resume": "continue the unanswered turn; in a terminal Enter does so too",
    "/undo": "remove the newest turn",
    "/rename NAME": "give this branch another name",
    "/set NAME VALUE": "ask what follows with another llm, thinking, topk, …; without VALUE as the chat began",
    "/set": "what can be set, and what is",
    "/draw FILE": "draw the conversation: .svg, .html, .json or .dot",
    "/help": "show this",
    "/quit": "leave, as Ctrl-D does",
}
_HELP_END = (
    "A question that begins with a slash needs a blank before it. Ctrl-C stops an answer; /resume continues its turn."
)


def help_text(columns: int) -> str:
    """Return what can be written, in lines of at most so many columns, from 40 on."""
    room = max(map(len, _HELP)) + 4
    lines = ["Write a question, or one of these:"]
    for command, meaning in _HELP.items():
        first, *more = wrap(meaning, columns - room, max_lines=20)
        lines += [f"  {command:<{room - 2}}{first}", *(f"{'':<{room}}{line}" for line in more)]
    return "\n".join([*lines, *wrap(_HELP_END, columns, max_lines=20)])


@dataclass(frozen=True, kw_only=True)
class TypedQuestion:
    """A question to ask."""

    query: str
    parent_turn_id: str | None = None
    """Id of the parent turn; None for the newest turn of the active branch."""
    regenerate: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict)
    """What it has otherwise than the chat."""


class Leave(Exception):
    """Signal to end the chat."""


class ChatCommands:
    """Commands of one chat, and the parent of its next question."""

    def __init__(self, talk: Conversation, settings: Settings, *, write: Callable[[str], None]) -> None:
        """``write`` shows the result of a command."""
        self._talk = talk
        self._settings = settings
        self._write = write
        self._options = SetOptions()
        self._follows: tuple[int, str] | None = None
        """Number and id of the turn that the next question follows; None for the newest turn."""
        self._commands: Mapping[str, Callable[[str], TypedQuestion | None]] = {
            "branch": self._branch,
            "after": self._after,
            "history": self._history,
            "tree": self._tree,
            "regenerate": self._regenerate,
            "resume": self._resume,
            "undo": self._undo,
            "rename": self._rename,
            "draw": self._draw,
            "set": self._set,
            "help": self._help,
            "quit": self._quit,
        }

    def run(self, line: str) -> TypedQuestion | None:
        """Run a line that begins with a slash; returns the question to ask now, or None.

        Raises:
            UserError: The command is unknown or cannot be executed.
            Leave: The command ends the chat.
        """
        name, _, argument = line.removeprefix("/").strip().partition(" ")
        if name not in self._commands:
            raise SettingsError(f"There is no command /{name}. /help lists the commands.")
        return self._commands[name](argument.strip())

    def question(self, query: str) -> TypedQuestion:
        """Make a question after the chosen turn, and reset the choice to the newest turn."""
        follows, self._follows = self._follows, None
        return TypedQuestion(query=query, parent_turn_id=follows[1] if follows else None, keys=self._options.keys)

    def open_question(self) -> TypedQuestion | None:
        """Return the question of the open turn, to resume it; None without an open turn."""
        waiting, self._follows = self._talk.open_turn, None
        if waiting is None:
            return None
        keys = read_options(waiting.get("overrides", {}))
        return TypedQuestion(query=waiting["query"], parent_turn_id=waiting["parent_turn_id"], keys=keys)

    def prompt(self) -> str:
        """Return branch and number of the next turn: ``main 3> ``."""
        active = self._talk.active_branch
        heads = {branch["name"]: branch["head_number"] for branch in self._talk.branches()}
        return f"{active} {(self._follows[0] if self._follows else heads.get(active, 0)) + 1}> "

    def _branch(self, name: str) -> None:
        names = [branch["name"] for branch in self._talk.branches()]
        if not name:
            self._write(branches_text(self._talk.branches(), self._talk.active_branch))
        elif name.isdecimal() and name not in names:
            self._after(name)
        else:
            self._talk.switch(name)
            self._follows = None
            say(f"on branch {name}", style="dim")

    def _after(self, number: str) -> None:
        if number == "0":
            self._follows = (0, FIRST)
            say("The next question starts a new path.", style="dim")
            return
        turn = self._turn(number)
        self._follows = (turn["turn_number"], turn["turn_id"])
        say(f"The next question follows turn {number}: {turn['query']}", style="dim")

    def _history(self, _: str) -> None:
        self._write(turns_text(self._talk.history()) or "No turn yet.")

    def _tree(self, number: str) -> None:
        turn = self._turn(number)
        if not turn["rag_thread_id"]:
            origin = ORIGINS[turn["answered_from"]]
            say(f"Turn {turn['turn_number']} searched no documents{f': its answer is {origin}' if origin else ''}.")
            return
        self._write(self._tree_of(turn).to_text(width=width()))

    def _tree_of(self, turn: QaPair) -> SearchTree:
        """Read the tree with the kind of graph that wrote it: a turn may have been asked of another system."""
        if self._settings.checkpoint_url != "memory:":
            return read_saved_tree(self._settings, turn["rag_thread_id"])
        tree = self._talk.search_tree(turn)
        if tree is None:
            raise UnknownThread(f"The search tree of turn {turn['turn_number']} is gone.")
        return tree

    def _regenerate(self, _: str) -> TypedQuestion:
        last, self._follows = self._turn(""), None
        return TypedQuestion(
            query=last["query"],
            parent_turn_id=last["parent_turn_id"],
            regenerate=True,
            keys=self._options.keys,
        )

    def _resume(self, _: str) -> TypedQuestion:
        waiting = self.open_question()
        if waiting is None:
            raise SettingsError("There is no open turn to resume: every turn is answered.")
        return waiting

    def _undo(self, _: str) -> None:
        undone, self._follows = self._talk.undo(), None
        say(f"taken back: {undone['query']}", style="dim")

    def _rename(self, name: str) -> None:
        self._talk.rename_branch(self._talk.active_branch, name)

    def _draw(self, name: str) -> None:
        files = files_by_suffix(name)  # fails on a bad name before all trees are read
        files.write(self._talk.tree())

    def _set(self, words: str) -> None:
        name, _, value = words.partition(" ")
        if not name:
            self._write(str(self._options))
            return
        self._options.set(name, value.strip())
        say(f"The following questions are asked with {name} {self._options.shown(name)}.", style="dim")

    def _help(self, _: str) -> None:
        self._write(help_text(max(width(), 40)))

    def _quit(self, _: str) -> None:
        raise Leave

    def _turn(self, number: str) -> QaPair:
        """Return the turn of that number on the path of the active branch; the newest turn for ``""``."""
        turns = self._talk.history()
        if not turns:
            raise SettingsError("This conversation has no turn yet. Ask a question first.")
        found = [turn for turn in turns if str(turn["turn_number"]) == number] if number else turns
        if not found:
            raise SettingsError(f"There is no turn {number!r} on this branch. /history shows its turns.")
        return found[-1]
