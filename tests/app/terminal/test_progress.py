"""How far a command is: lines where nothing can be redrawn, bars in a terminal."""

from __future__ import annotations

import logging
import os
import pty
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from functools import partial

import pytest

from judgetree.app.chat.turn_view import StatusLine
from judgetree.app.terminal.live_tree import LiveQuery, LiveTree
from judgetree.app.terminal.log_lines import LogLines
from judgetree.app.terminal.terminal import busy, counting_bar, progress_bar, say
from judgetree.app.terminal.watching import LiveView, PlainLog
from tests.app.conftest import read_to_end


def test_elsewhere_than_in_a_terminal_a_line_tells_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with counting_bar("questions") as show:
        for done in range(41):
            show(done, 40, "")
    assert capsys.readouterr().err.splitlines() == [f"{done}/40 questions" for done in range(4, 41, 4)]


def test_of_fewer_than_ten_each_is_told_and_of_none_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with counting_bar("samples") as show:
        show(0, 0, "")
        for done in range(4):
            show(done, 3, "1 in vain")
    assert capsys.readouterr().err.splitlines() == ["1/3 samples", "2/3 samples", "3/3 samples"]


def test_down_a_pipe_a_stage_has_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 4.0, 6.0, 7.0, 11.0, 12.0])
    with progress_bar(clock=lambda: next(times)) as show:
        for done, stage in ((1, "load"), (64, "embed"), (564, "embed"), (628, "embed"), (3, "asking")):
            show(done, 2500, stage)
    assert capsys.readouterr() == (
        "",
        "embedding chunks: 564 of 2,500, 250 a second, 0:00:08 left\nasking: 3 of 2,500\n",
    )


def test_what_was_saved_before_does_not_count_in_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 2.0, 12.0])
    with progress_bar(clock=lambda: next(times)) as show:
        for done in (0, 900, 910):
            show(done, 1000, "embed")
    assert capsys.readouterr().err == "embedding chunks: 910 of 1,000, 1 a second, 0:01:30 left\n"


def test_a_question_down_a_pipe_has_numbers_where_there_are_any_and_no_line_for_what_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = iter([0.0, 1.0, 6.0, 8.0])
    log = PlainLog(clock=lambda: next(times))
    for done, total, stage in ((0, 0, "starting the model"), (0, 0, "starting the model"), (1, 1, "read a.jsonl, MB")):
        log.on_progress(done, total, stage)
    for done in (100, 600, 800):
        log.on_progress(done, 1100, "read b.jsonl, MB")
    assert capsys.readouterr().err.splitlines() == [
        "starting the model …",
        "read b.jsonl, MB: 600 of 1,100, 100 a second, 0:00:05 left",
    ]


@pytest.mark.parametrize(
    ("bar", "calls", "shown"),
    [
        (partial(counting_bar, "questions"), [(1, 2, "1 failed")], ("questions", "1/2", "1 failed")),
        (progress_bar, [(1, 2, "embed"), (3, 4, "asking")], ("embedding chunks", "1/2", "asking", "3/4")),
    ],
)
def test_a_terminal_gets_bars(
    monkeypatch: pytest.MonkeyPatch,
    bar: Callable[[], AbstractContextManager[Callable[[int, int, str], None]]],
    calls: list[tuple[int, int, str]],
    shown: tuple[str, ...],
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    user, program = pty.openpty()
    with os.fdopen(program, "w", encoding="utf-8") as stream, redirect_stderr(stream), bar() as show:
        for call in calls:
            show(*call)
    sent = read_to_end(user).decode()
    os.close(user)
    assert all(part in sent for part in shown)


_PIECE = re.compile(
    r"\x1b\[(?P<number>\d*)(?P<command>[AK])|\x1b\[[\d;?]*[a-zA-Z]|(?P<char>[\r\n])|(?P<text>[^\x1b\r\n]+)"
)


def screen(sent: str) -> list[str]:
    """The lines that a terminal shows once it was sent a text, as far as rich uses its commands."""
    lines, row, column = [""], 0, 0
    for found in _PIECE.finditer(sent):
        if found["text"]:
            lines[row] = lines[row][:column].ljust(column) + found["text"] + lines[row][column + len(found["text"]) :]
            column += len(found["text"])
        elif found["char"] == "\r":
            column = 0
        elif found["char"] == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif found["command"] == "A":
            row = max(row - int(found["number"] or 1), 0)
        elif found["command"] == "K":
            lines[row] = "" if found["number"] == "2" else lines[row][:column]
    return [line.rstrip() for line in lines if line.strip()]


@contextmanager
def live_view() -> Iterator[None]:
    view = LiveView(LiveTree(LiveQuery(thread_id="t", query="Who?")), waits_for="opening a")
    try:
        yield
    finally:
        view.stop()


@contextmanager
def status_line() -> Iterator[None]:
    status = StatusLine()
    status.show("searching")
    try:
        yield
    finally:
        status.clear()


@pytest.mark.parametrize(
    "display", [live_view, status_line, progress_bar, partial(counting_bar, "rows"), partial(busy, "x")]
)
def test_a_remark_has_a_line_of_its_own_above_what_is_redrawn(
    monkeypatch: pytest.MonkeyPatch, display: Callable[[], AbstractContextManager[object]]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    user, program = pty.openpty()
    logged = logging.Logger("test")
    logged.addHandler(LogLines())
    with os.fdopen(program, "w", encoding="utf-8") as stream, redirect_stderr(stream), display() as show:
        if callable(show):
            show(1, 2, "load")
        say("The first warning.")
        say("The second warning.")
        sys.stderr.write("A library speaks.\n")
        logged.warning("The log speaks.")
    shown = screen(read_to_end(user).decode())
    os.close(user)
    assert shown[:4] == ["The first warning.", "The second warning.", "A library speaks.", "The log speaks."]
    assert all("warning" not in line and "speaks" not in line for line in shown[4:])
