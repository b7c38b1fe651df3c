"""The command line in a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.app.conftest import CHAIN, COLLECTION, SUB_QUESTION, command, read_to_end

TIMEOUT_S = 120


@pytest.fixture
def drawn_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, str]:
    """Standard output (a pipe that cannot say Chinese) and what a terminal on standard error was sent."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.delenv("COLUMNS")
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(command("ask", CHAIN.question, "-c", COLLECTION), stdout=subprocess.PIPE, stderr=its_end)
    os.close(its_end)
    sent = read_to_end(terminal)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    os.close(terminal)
    assert process.returncode == 0
    return out, sent.decode("utf-8", "replace")


@pytest.mark.slow
def test_the_tree_is_drawn_in_a_terminal_and_the_answer_goes_down_the_pipe(drawn_run: tuple[bytes, str]) -> None:
    out, sent = drawn_run
    assert out == b"40 mm\n"
    assert SUB_QUESTION[:20] in sent
    assert "\x1b[" in sent
    assert "answered" in sent
