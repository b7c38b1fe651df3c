"""A chat session: reads lines from a terminal or a pipe, asks questions, runs commands."""

from __future__ import annotations

from collections.abc import Callable, Generator

from ...graphs.conversation.conversation import Conversation
from ...graphs.conversation.turn.events import DoneEvent
from ...modules.errors import JudgetreeError
from ..terminal.exit_status import FAILED, OK, explain
from ..terminal.terminal import say
from ..terminal.typed_lines import TypedLines
from .slash_commands import ChatCommands, Leave, Question
from .turn_view import JsonTurn, ShownTurn
from .words import open_turn_words


class ChatSession:
    """One chat in one conversation.

    In a terminal an error is shown and the chat continues. A pipe ends at the first user error; a turn with a failed
    model only makes the exit status 1.
    """

    def __init__(
        self,
        talk: Conversation,
        commands: ChatCommands,
        lines: TypedLines,
        *,
        new_view: Callable[[], JsonTurn | ShownTurn],
    ) -> None:
        """``new_view``: makes the view of a turn."""
        self._talk = talk
        self._commands = commands
        self._lines = lines
        self._new_view = new_view
        self._has_failed = False

    def run(self) -> int:
        """Read lines until the input ends or the user leaves; returns the exit status.

        Raises:
            UserError: A line from a pipe cannot be executed.
            KeyboardInterrupt: Ctrl-C, if the input is a pipe.
        """
        self._show_open_turn()
        while (line := self._lines.next_line(self._commands.prompt() if self._lines.is_typed else "")) is not None:
            try:
                self._take(line)
            except Leave:
                break
            except JudgetreeError as error:
                if not self._lines.is_typed:
                    raise
                say(explain(error)[0], style="red")
        return FAILED if self._has_failed and not self._lines.is_typed else OK

    def _take(self, line: str) -> None:
        """Execute a line."""
        if line.startswith("/"):
            question = self._commands.run(line)
        elif line.strip():
            question = self._commands.question(line.strip())
        else:
            question = self._commands.open_question() if self._lines.is_typed else None
        if question is not None:
            self._ask(question)

    def _ask(self, question: Question) -> None:
        view = self._new_view()
        try:
            self._follow(question, view)
        except KeyboardInterrupt:
            view.stop()
            say("Stopped; finished work is kept.")
            if not self._lines.is_typed:
                raise
        finally:
            view.stop()
        self._show_open_turn()

    def _follow(self, question: Question, view: JsonTurn | ShownTurn) -> None:
        events = self._talk.stream(
            question.query,
            parent_turn_id=question.parent_turn_id,
            regenerate=question.regenerate,
            **question.overrides,
        )
        try:
            for event in events:
                view.on_event(event)
                if isinstance(event, DoneEvent) and event.result.status == "failed":
                    self._has_failed = True
        finally:
            if isinstance(events, Generator):
                events.close()  # cancels the turn, which stays open

    def _show_open_turn(self) -> None:
        """Show an unfinished turn, if there is one, and how to resume it."""
        waiting = self._talk.open_turn
        if waiting is None:
            return
        how = "Enter or /resume continues" if self._lines.is_typed else "/resume continues"
        say(f"{open_turn_words(waiting)}\n{how} it; another question gives it up.", style="yellow")
