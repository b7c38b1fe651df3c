"""A turn of a conversation before somebody's eyes: what goes on, thinking, the answer as it grows, what it rests on."""

from __future__ import annotations

import json
import sys
import time
from typing import Protocol

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ...graphs.conversation.turn.events import (
    ContentEvent,
    ConversationEvent,
    DoneEvent,
    SessionEvent,
    ThinkingEvent,
    TreeEvent,
    event_document,
)
from ...graphs.conversation.turn.result import TurnResult
from ...graphs.drawing.layout import one_line
from ...graphs.drawing.words import usage_words
from ...modules.formats import printable
from ...modules.reader.prompts import REFUSAL
from ..terminal.live_tree import LiveQuery, LiveTree
from ..terminal.terminal import fit, is_live, notes, say, write_result
from ..terminal.watching import REFRESH_PER_S
from .words import STEPS, origin_of, source_lines


class TurnView(Protocol):
    """Somebody who follows one turn."""

    def on_event(self, event: ConversationEvent) -> None:
        """An event of the turn, in the order in which they come."""
        ...

    def stop(self) -> None:
        """Leave the terminal to others, also in the middle of a turn. Stopping twice does no harm."""
        ...


class JsonTurn:
    """Every event as one JSON document on a line of standard output."""

    def on_event(self, event: ConversationEvent) -> None:
        """See ``TurnView``."""
        sys.stdout.write(json.dumps(event_document(event), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def stop(self) -> None:
        """See ``TurnView``. Lines are never drawn again, so there is nothing to do."""


class ShownTurn:
    """The answer on standard output; everything else on standard error: status, thinking, sources, outcome.

    In a terminal the answer grows as it is written. Elsewhere it is written once, and thinking and status are left out.
    """

    def __init__(self) -> None:
        self._status = StatusLine()
        self._thinking = _Thinking(self._status)
        self._answer = _GrowingAnswer(self._status)
        self._tree: LiveTree | None = None

    def on_event(self, event: ConversationEvent) -> None:
        """See ``TurnView``."""
        if not isinstance(event, ThinkingEvent):
            self._thinking.end()
        match event:
            case SessionEvent():
                self._status.show("starting")
            case ThinkingEvent():
                self._thinking.grow(event.text, restarted=event.restarted)
            case ContentEvent():
                self._answer.grow(event.text, restarted=event.restarted)
            case TreeEvent() if not self._answer.is_begun:
                self._status.show(self._doing(event))
            case DoneEvent():
                self._finish(event.result)

    def stop(self) -> None:
        """See ``TurnView``."""
        self._thinking.end()
        self._status.clear()
        self._answer.break_off()

    def _doing(self, event: TreeEvent) -> str:
        if not event.event:
            return STEPS.get(event.node, event.node.replace("_", " "))
        if self._tree is None:
            self._tree = LiveTree(LiveQuery(thread_id=str(event.event["root_thread_id"])))
        self._tree.apply(event.event)
        return f"{STEPS['call_rag']} · {self._tree.counts()}"

    def _finish(self, result: TurnResult) -> None:
        self._status.clear()
        turn = result.turn
        if turn is None:
            self._answer.break_off()
            say(result.error, style="red")
            return
        self._answer.finish(result.answer)
        if turn["standalone_query"] != turn["query"]:
            say(f"understood as: {one_line(turn['standalone_query'])}", style="dim")
        if turn["rewrite_problem"]:
            say(f"searched for as asked: its rewrite could not be used, since {turn['rewrite_problem']}", style="dim")
        if origin := origin_of(turn):
            say(f"({origin})", style="yellow")
        if turn["status"] == "answered":
            for line in source_lines(turn["chunks"]):
                say(line, style="dim")
        where = f"turn {turn['turn_number']} on {result.branch}"
        say(f"{where} · {usage_words(turn['usage'])} · {result.wall_s:.1f} s in all", style="dim")


class StatusLine:
    """One line on standard error that says what goes on, with the seconds since it began; in a terminal only.

    It leaves nothing behind.
    """

    def __init__(self) -> None:
        self._text = ""
        self._started = time.monotonic()
        self._live: Live | None = None
        self._spinner = Spinner("dots", style="cyan")

    def show(self, text: str) -> None:
        """Say this from now on."""
        self._text = text
        if self._live is None and is_live(sys.stderr):
            self._live = Live(
                console=notes(),
                get_renderable=self._draw,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def on_progress(self, done: int, total: int, stage: str) -> None:
        """Say how far a local model is fetched and started."""
        self.show(stage if total <= 0 else f"{stage} {100 * done // total} %")

    def clear(self) -> None:
        """Take the line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> Spinner:
        room = notes().size.width - 12
        seconds = time.monotonic() - self._started
        self._spinner.update(text=Text(f"{fit(self._text, room)} · {seconds:.0f} s", style="dim"))
        return self._spinner


class _Thinking:
    """Thinking in grey on standard error; in a terminal only."""

    def __init__(self, status: StatusLine) -> None:
        self._status = status
        self._is_open = False

    def grow(self, text: str, *, restarted: bool) -> None:
        if not is_live(sys.stderr):
            return
        self._status.clear()
        if restarted:
            self.end()
        if not text:
            return
        self._is_open = True
        notes().print(Text(printable(text), style="dim"), end="")

    def end(self) -> None:
        if self._is_open:
            self._is_open = False
            notes().print()


class _GrowingAnswer:
    """Writes an answer to a terminal while it grows. Elsewhere it is written once, when it is sure.

    A refusal is held back: another step of the turn may still find the answer.
    """

    def __init__(self, status: StatusLine) -> None:
        self._status = status
        self._so_far = ""
        self._written = ""

    @property
    def is_begun(self) -> bool:
        """Whether some of it stands in the terminal."""
        return bool(self._written)

    def grow(self, text: str, *, restarted: bool) -> None:
        if restarted:
            self.break_off()
        self._so_far = text if restarted else self._so_far + text
        shown = printable(self._so_far)
        if not sys.stdout.isatty() or REFUSAL.startswith(shown.strip()):
            return
        self._status.clear()
        sys.stdout.write(shown[len(self._written) :])
        sys.stdout.flush()
        self._written = shown

    def break_off(self) -> None:
        """End the line of an answer that does not count."""
        if self._written:
            write_result("")
        self._written = ""

    def finish(self, answer: str) -> None:
        """See to it that the whole answer has been written, with its line break."""
        if self._written and self._written.strip() != printable(answer).strip():
            self.break_off()
        write_result("" if self._written else answer)
        self._written = ""
