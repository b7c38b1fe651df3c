"""A chat session: reads lines from a terminal or a pipe, asks questions, runs commands."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from ...graphs.conversation.conversation import Conversation
from ...graphs.conversation.turn.events import DoneEvent
from ...modules.errors import JudgetreeError
from ..terminal.exit_status import FAILED, OK, explain
from ..terminal.terminal import say
from ..terminal.typed_lines import TypedLines
from .slash_commands import ChatCommands, Leave, TypedQuestion
from .turn_view import JsonTurn, ShownTurn
from .words import format_open_turn


@dataclass(eq=False, kw_only=True)
class ChatSession:
    """One chat in one conversation.

    In a terminal an error is shown and the chat continues. A pipe ends at the first user error; a turn with a failed
    model only makes the exit status 1.
    """

    talk: Conversation
    commands: ChatCommands
    lines: TypedLines
    new_view: Callable[[], JsonTurn | ShownTurn]
    """Makes the view of a turn."""
    _has_failed: bool = field(default=False, init=False)

    def run(self) -> int:
        """Read lines until the input ends or the user leaves; returns the exit status.

        Raises:
            UserError: A line from a pipe cannot be executed.
            KeyboardInterrupt: Ctrl-C, if the input is a pipe.
        """
        self._show_open_turn()
        while (line := self.lines.next_line(self.commands.prompt() if self.lines.is_typed else "")) is not None:
            try:
                self._take(line)
            except Leave:
                break
            except JudgetreeError as error:
                if not self.lines.is_typed:
                    raise
                say(explain(error)[0], style="red")
        return FAILED if self._has_failed and not self.lines.is_typed else OK

    def _take(self, line: str) -> None:
        """Execute a line."""
        if line.startswith("/"):
            question = self.commands.run(line)
        elif line.strip():
            question = self.commands.question(line.strip())
        else:
            question = self.commands.open_question() if self.lines.is_typed else None
        if question is not None:
            self._ask(question)

    def _ask(self, question: TypedQuestion) -> None:
        view = self.new_view()
        try:
            self._follow(question, view)
        except KeyboardInterrupt:
            view.stop()
            say("Stopped; finished work is kept.")
            if not self.lines.is_typed:
                raise
        finally:
            view.stop()
        self._show_open_turn()

    def _follow(self, question: TypedQuestion, view: JsonTurn | ShownTurn) -> None:
        events = self.talk.stream(
            question.query,
            parent_turn_id=question.parent_turn_id,
            regenerate=question.regenerate,
            **question.keys,
        )
        try:
            for event in events:
                view.on_event(event)
                if isinstance(event, DoneEvent) and (event.result.status == "failed" or event.result.judging_failed):
                    self._has_failed = True
        finally:
            if isinstance(events, Generator):
                events.close()  # cancels the turn, which stays open

    def _show_open_turn(self) -> None:
        """Show an unfinished turn, if there is one, and how to resume it."""
        waiting = self.talk.open_turn
        if waiting is None:
            return
        how = "Enter or /resume continues" if self.lines.is_typed else "/resume continues"
        say(f"{format_open_turn(waiting)}\n{how} it; another question gives it up.", style="yellow")
