"""Views of a running turn: status, thinking, the growing answer, its sources."""

from __future__ import annotations

import json
import sys
import time

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
from ...graphs.drawing.words import format_failed_verdict, format_usage
from ...modules.storage.texts import printable
from ..terminal.caveats import say_caveats
from ..terminal.live_tree import LiveQuery, LiveTree
from ..terminal.terminal import fit, is_live, notes, say
from ..terminal.watching import REFRESH_PER_S, GrowingAnswer
from .words import STEPS, format_filter, origin_of, source_lines


class JsonTurn:
    """A view that prints every event as a line of JSON on standard output."""

    def on_event(self, event: ConversationEvent) -> None:
        """Print the event."""
        sys.stdout.write(json.dumps(event_document(event), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def stop(self) -> None:
        """Do nothing: printed lines stay."""


class ShownTurn:
    """A view with the answer on standard output, and status, thinking, sources and outcome on standard error.

    In a terminal the answer appears as it is written. Elsewhere it is written once, without thinking and status.
    """

    def __init__(self) -> None:
        self._status = StatusLine()
        self._thinking = _Thinking(self._status)
        self._answer = GrowingAnswer(self._status.clear)
        self._tree: LiveTree | None = None

    def on_event(self, event: ConversationEvent) -> None:
        """Show the event in its place."""
        if not isinstance(event, ThinkingEvent):
            self._thinking.end()
        match event:
            case SessionEvent():
                self._status.show(STEPS["load_history"])
            case ThinkingEvent():
                self._thinking.grow(event.text, restarted=event.restarted)
            case ContentEvent():
                self._answer.grow(event.text, restarted=event.restarted)
            case TreeEvent() if not self._answer.is_started:
                self._status.show(self._doing(event))
            case DoneEvent():
                self._finish(event.result)

    def stop(self) -> None:
        """End open lines and remove the status line."""
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
            say(
                f"searched with the original question: the rewrite is unusable, since {turn['rewrite_problem']}",
                style="dim",
            )
        if origin := origin_of(turn):
            say(f"({origin})", style="yellow")
        if filtered := format_filter(turn):
            say(filtered, style="dim")
        if turn["status"] == "answered":
            for line in source_lines(turn["chunks"]):
                say(line, style="dim")
        say_caveats(result.caveats)
        if result.tree is not None and (failed := format_failed_verdict(result.tree.root)):
            say(failed, style="yellow")
        where = f"turn {turn['turn_number']} on {result.branch}"
        say(f"{where} · {format_usage(turn['usage'])} · {result.wall_s:.1f} s in all", style="dim")


class StatusLine:
    """One transient line on standard error with the current step and elapsed seconds; in a terminal only."""

    def __init__(self) -> None:
        self._text = ""
        self._started = time.monotonic()
        self._live: Live | None = None
        self._spinner = Spinner("dots", style="cyan")

    def show(self, text: str) -> None:
        """Set the text."""
        self._text = text
        if self._live is None and is_live(sys.stderr):
            self._live = Live(
                console=notes(),
                get_renderable=self._draw,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()

    def on_progress(self, done: int, total: int, stage: str) -> None:
        """Show the progress of fetching and starting a local model."""
        self.show(stage if total <= 0 else f"{stage} {100 * done // total} %")

    def clear(self) -> None:
        """Remove the line."""
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
