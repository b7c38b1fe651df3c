"""Parts of one's own that hang: no command, and no server, waits for them once it is to end."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import command

TIMEOUT_S = 120

PART = """
import asyncio, threading
from pathlib import Path
from langchain_core.language_models import SimpleChatModel

class Hangs(SimpleChatModel):
    model: str = "hangs"
    @property
    def _llm_type(self):
        return "hangs"
    def _call(self, messages, stop=None, run_manager=None, **options):
        Path("reached").touch()
        threading.Event().wait()

class Blocks(Hangs):
    async def _agenerate(self, *arguments, **options):
        self._call([])
"""
"""One hangs in a thread; the other one blocks judgetree's own loop, where nothing else runs then."""
COMMANDS = {
    "ask": ("ask", "Which gasket?", "--system", "llm"),
    "chat": ("chat", "--system", "llm"),
    "eval run": ("eval", "run", "--questions", "qa.csv", "--systems", "llm", "--out", "run"),
    "serve": ("serve", "--port", "0", "--system", "llm", "--shutdown-seconds", "0"),
}


@pytest.fixture
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the parts and a question."""
    (own := tmp_path / "own").mkdir()
    (own / "parts.py").write_text(PART)
    (own / "qa.csv").write_text("id,question,answer\na,Which gasket?,none\n")
    monkeypatch.chdir(own)
    monkeypatch.setenv("PYTHONPATH", str(own))
    return own


@pytest.mark.slow
@pytest.mark.parametrize("part", ["Hangs", "Blocks"])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, part: str) -> None:
    monkeypatch.setenv("JUDGETREE_LLM", f"parts:{part}")
    started = command(*COMMANDS[name])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(started, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            if name == "chat":
                process.stdin.write("Which gasket?\n")
                process.stdin.flush()
            if name == "serve":
                body = {"model": "llm", "messages": [{"role": "user", "content": "Which?"}], "stream": True}
                asking = httpx.stream(
                    "POST", f"{address_of(process)}/v1/chat/completions", json=body, timeout=TIMEOUT_S
                )
                with asking:
                    reached(folder, process)
            else:
                reached(folder, process)
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode in (130, -signal.SIGINT, 0, 2)  # 2 says that a part blocks the loop


def address_of(process: subprocess.Popen[str]) -> str:
    lines = iter(process.stderr.readline, "")  # type: ignore[union-attr]
    return next(found[1] for line in lines if (found := re.match(r"Serving on (http://\S+) ", line)))


def reached(folder: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not (folder / "reached").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the part is never asked"
        time.sleep(0.05)
