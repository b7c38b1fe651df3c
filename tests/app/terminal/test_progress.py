"""How far a command is: lines where nothing can be redrawn, bars in a terminal."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from typing import TextIO

import pytest

from judgetree.app.terminal.terminal import counting_bar, progress_bar


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


def test_stages_are_not_told_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as show:
        show(1, 2, "embed")
    assert capsys.readouterr() == ("", "")


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """What a program writes to, and the end at which its user sits."""

    program: TextIO
    user: int

    def shown(self) -> str:
        """All that was written; nothing more can be."""
        self.program.close()
        sent = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(self.user, 4096):
                sent += piece
        return sent.decode("utf-8")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    user, program = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(program, "w", encoding="utf-8") as stream:
        yield Terminal(program=stream, user=user)
    os.close(user)


def test_in_a_terminal_a_bar_shows_the_remark(terminal: Terminal) -> None:
    with redirect_stderr(terminal.program), counting_bar("questions") as show:
        show(1, 2, "1 failed")
    sent = terminal.shown()
    assert all(part in sent for part in ("questions", "1/2", "1 failed"))


def test_in_a_terminal_each_stage_has_a_bar(terminal: Terminal) -> None:
    with redirect_stderr(terminal.program), progress_bar() as show:
        show(1, 2, "embed")
        show(3, 4, "asking")
    sent = terminal.shown()
    assert all(part in sent for part in ("embedding chunks", "1/2", "asking", "3/4"))
