"""Parsers in a process of their own: limits, crashes, and that the next file is read."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import LoadLimits
from judgetree.modules.index.parser_process import LARGE_BYTES, ParserProcess

SLOW = b"<!--" * 200_000
GOOD = (b"<p>Fine.</p>", [("Fine.", {"title": ""})])


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read() -> None:
    with ParserProcess(LoadLimits(seconds=1.0)) as parser:
        for _ in range(2):
            with pytest.raises(LoadingError, match="longer than 1 s"):
                parser.parse(".html", SLOW)
    with ParserProcess(LoadLimits()) as parser:
        assert [(text, dict(metadata)) for text, metadata in parser.parse(".html", GOOD[0])] == GOOD[1]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory, or not reliably")
def test_a_file_that_takes_too_much_memory_is_given_up() -> None:
    with ParserProcess(LoadLimits(memory_bytes=200 << 20)) as parser:
        with pytest.raises(LoadingError, match="more than 200 MB of memory"):
            parser.parse(".json", b"[" + b"[]," * (2 * LARGE_BYTES) + b"[]]")
        assert parser.parse(".html", GOOD[0]).texts


def test_large_data_gives_the_same_in_the_process_and_here() -> None:
    data = b'{"text": "caf\xc3\xa9 \\ud83d\\ude00", "n": 1.5}\n' * 120_000
    assert len(data) > LARGE_BYTES
    with ParserProcess(LoadLimits()) as parser:
        parsed = parser.parse(".jsonl", data).texts
        small = parser.parse(".jsonl", data[: data.index(b"\n")]).texts
    assert len(parsed) == 120_000
    assert tuple(parsed[-1]) == tuple(small[0])


def test_text_beyond_the_limit_is_refused() -> None:
    with (
        ParserProcess(LoadLimits(file_bytes=100)) as parser,
        pytest.raises(LoadingError, match=r"more than 0\.0001 MB of text"),
    ):
        parser.parse(".html", b"<p>" + b"x" * 101)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_one_process_serves_all_files_and_its_death_is_named() -> None:
    with ParserProcess(LoadLimits()) as parser:
        parser.parse(".html", GOOD[0])
        (child,) = children()
        parser.parse(".html", GOOD[0])
        assert children() == [child]
        os.kill(child, signal.SIGKILL)
        with pytest.raises(LoadingError, match=r"its parser crashed \(exit status -9\)"):
            parser.parse(".html", GOOD[0])
        assert parser.parse(".html", GOOD[0]).texts
    assert children() == []


def children() -> list[int]:
    """Parser processes that this process has started."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in listed}
    return [pid for pid, command in commands.items() if b"parser_process" in command]
