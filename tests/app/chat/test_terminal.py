"""A chat in a terminal: what somebody who types sees, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.conftest import COLLECTION, Cli, command, read_to_end
from tests.app.talks import FIRST, STANDALONE_THICKNESS, THICKNESS

TIMEOUT_S = 120
THOUGHT = "Norm A is about vessels."


class Terminal:
    """A chat in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, its_end = pty.openpty()
        self.process = subprocess.Popen(command("chat", *arguments), stdin=its_end, stdout=its_end, stderr=its_end)
        os.close(its_end)
        self._sent = b""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read_until(self, text: str) -> str:
        """What was shown since the last time, up to and with the text."""
        give_up = time.monotonic() + TIMEOUT_S
        while text.encode() not in self._sent:
            readable, _, _ = select.select([self._ours], [], [], give_up - time.monotonic())
            assert readable, f"{text!r} never came after {self._sent!r}"
            self._sent += os.read(self._ours, 4096)
        shown, _, self._sent = self._sent.partition(text.encode())
        return shown.decode("utf-8", "replace") + text

    def read_rest(self) -> str:
        """What was shown until the chat had ended."""
        return (self._sent + read_to_end(self._ours)).decode("utf-8", "replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        os.close(self._ours)


@pytest.fixture
def terminal(chat: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    opened = Terminal("-c", COLLECTION, "--conversation", "s")
    yield opened
    opened.close()


def thinking(request: ReceivedRequest) -> ChatReply | None:
    is_first = request.prompt.kind == "read" and request.prompt.query == FIRST
    return ChatReply(text="the drum", reasoning=THOUGHT) if is_first else None


@pytest.mark.slow
def test_a_user_types_stops_an_answer_resumes_it_and_leaves(terminal: Terminal, scripted: ScriptedServer) -> None:
    scripted.responses = thinking
    assert "/help" in terminal.read_until("main 1> ")
    terminal.type(f"{FIRST}\n")
    shown = terminal.read_until("main 2> ")
    assert "searching" in shown
    assert f"\x1b[2m{THOUGHT}" in shown
    assert shown.index(THOUGHT) < shown.index("the drum") < shown.index("[1] Norm A (a.md) · score 2")

    scripted.configure(latency_s=3600)
    terminal.type(f"{THICKNESS}\n")
    assert scripted.wait_for_active(1, TIMEOUT_S)
    terminal.process.send_signal(signal.SIGINT)
    shown = terminal.read_until("main 2> ")
    assert f"Turn 2 is not answered yet: {THICKNESS}" in shown
    assert "Enter or /resume continues it" in shown

    scripted.configure(latency_s=0)
    terminal.type("\n")
    shown = terminal.read_until("main 3> ")
    assert "40 mm" in shown
    assert f"understood as: {STANDALONE_THICKNESS}" in shown
    terminal.type("/branch nowhere\n")
    assert "Branches: main" in terminal.read_until("main 3> ")
    terminal.type("\x04")
    assert "come back: judgetree chat -c notes --conversation s" in terminal.read_rest()
    assert terminal.process.wait(TIMEOUT_S) == 0
