"""Views of a running question: the tree grows on standard error, the answer on standard output."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ...graphs.threads.context import RunEvent
from ...modules.reader.prompts import REFUSAL
from ...modules.storage.texts import printable
from .live_tree import LiveTree
from .terminal import fit, is_live, lines_of_progress, notes, say, write_result

REFRESH_PER_S = 8


@contextmanager
def watching(tree: LiveTree, *, waits_for: str) -> Iterator[LiveView | PlainLog]:
    """Show a run on standard error: as a drawing in a terminal, as plain lines elsewhere.

    The drawing says what the run ``waits_for`` until something is found.
    The methods of the view may be called from several threads.
    """
    if is_live(sys.stderr):
        view = LiveView(tree, waits_for=waits_for)
        try:
            yield view
        finally:
            view.stop()
    else:
        say(f"depth 0: {tree.root.query}")
        yield PlainLog()


class LiveView:
    """A tree that grows in the terminal, with a status line below, until ``stop``.

    When the root begins to answer, the complete tree stays in the terminal.
    """

    def __init__(self, tree: LiveTree, *, waits_for: str) -> None:
        """``waits_for`` is the status until the first event or progress."""
        self._tree = tree
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._stage = waits_for
        self._is_over = False
        self._spinner = Spinner("dots", style="cyan")
        self._console = notes()
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=REFRESH_PER_S,
            redirect_stdout=False,
        )
        self._live.start()

    def on_event(self, event: RunEvent) -> None:
        """Update the tree; ends the drawing when the root begins to answer."""
        with self._lock:
            self._stage = ""
            self._tree.apply(event)
        if event["event"] == "answer_growing":
            self.stop()

    def on_progress(self, done: int, total: int, stage: str) -> None:
        """Show the progress in the status line."""
        with self._lock:
            is_new = not self._stage.startswith(stage)
            self._stage = stage if total <= 0 else f"{stage} {100 * done // total} %"
        if is_new:  # loading a model may hold the interpreter lock for seconds, so draw now
            self._live.refresh()

    def stop(self) -> None:
        """Draw the tree a last time, without the status line. Idempotent."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._live.stop()

    def _draw(self) -> Group:
        size = self._console.size
        with self._lock:
            lines = self._tree.lines(columns=size.width, rows=max(size.height - 3, 3))
            doing = self._stage or self._tree.counts()
            if self._is_over:
                return Group(*lines)
        status = Text(f"{fit(doing, size.width - 12)} · {time.monotonic() - self._started:.0f} s", style="dim")
        self._spinner.update(text=status)
        return Group(*lines, self._spinner)


class PlainLog:
    """A view with one line per question and one per answer, for files and pipes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._stage = ""
        self._counted = lines_of_progress(clock)

    def on_event(self, event: RunEvent) -> None:
        """Print a planned sub-question, or the answer to one."""
        depth = int(str(event["depth"]))
        match event["event"]:
            case "sub_run_planned":
                say(f"depth {depth + 1}: {event['next_query']}")
            case "answer" if depth:
                say(f"depth {depth}: → {event['answer']}")

    def on_progress(self, done: int, total: int, stage: str) -> None:
        """Print numbers every few seconds, or a stage without numbers once."""
        if total > 0:
            self._counted(done, total, stage)
        elif stage != self._stage:
            self._stage = stage
            say(f"{stage} …")

    def stop(self) -> None:
        """Do nothing: printed lines stay."""


class GrowingAnswer:
    """Writes an answer to a terminal as it grows; elsewhere once, when it is final.

    A refusal is held back until it is final, since a later step may find an answer.
    """

    def __init__(self, before_writing: Callable[[], None] = lambda: None) -> None:
        """``before_writing`` clears a status line from the terminal."""
        self._before_writing = before_writing
        self._so_far = ""
        self._written = ""

    @property
    def is_started(self) -> bool:
        """Whether a part of the answer is in the terminal."""
        return bool(self._written)

    def grow(self, text: str, *, restarted: bool) -> None:
        """Add a text to the answer; ``restarted`` discards what came before, since the call was retried."""
        if restarted:
            self.break_off()
        self._so_far = text if restarted else self._so_far + text
        shown = printable(self._so_far)
        if not sys.stdout.isatty() or REFUSAL.startswith(shown.strip()):
            return
        self._before_writing()
        sys.stdout.write(shown[len(self._written) :])
        sys.stdout.flush()
        self._written = shown

    def break_off(self) -> None:
        """End the line of a discarded answer."""
        if self._written:
            write_result("")
        self._written = ""

    def finish(self, answer: str) -> None:
        """Write the rest of the answer and its line break."""
        if self._written.strip() != printable(answer).strip():
            self.break_off()
        write_result("" if self._written else answer)
        self._written = ""
