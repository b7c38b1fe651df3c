"""A process that parses untrusted files, with limited memory and time.

One process serves all files of an update and starts with the first that needs it. Requests and replies are frames of a
length and that many bytes. Where no process can be started, files are parsed in this one, without a limit of time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, BinaryIO, Self, cast

from ..errors import LoadingError
from .file_parsers import LoadLimits, parse_file
from .parsers.parsed import ParsedFile
from .row_parsers import ROW_PARSERS

logger = logging.getLogger(__name__)

LARGE_BYTES = 4_000_000
"""Least size of JSON and CSV files for the process: they take up to twenty times the bytes, and seconds."""
LARGE_MARKDOWN_BYTES = 200_000
"""Least size of Markdown files for the process: a list of so many bytes takes three seconds."""
_ALWAYS = frozenset({".pdf", ".docx", ".html", ".htm", "workbook"})
_WHEN_LARGE = {
    **dict.fromkeys([".json", ".jsonl", ".csv", *ROW_PARSERS], LARGE_BYTES),
    **dict.fromkeys([".md", ".markdown"], LARGE_MARKDOWN_BYTES),
}
_RECYCLE_BYTES = 256_000_000
_LENGTH = struct.Struct(">Q")
_SERVE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import serve; serve()"


def needs_process(suffix: str, size: int) -> bool:
    """Return whether the parser of a file may take unlimited time or memory."""
    return suffix in _ALWAYS or (suffix in _WHEN_LARGE and size >= _WHEN_LARGE[suffix])


class ParserProcess:
    """A parser of files within limits, one at a time; use it in a ``with`` statement, or ``close`` it."""

    def __init__(self, limits: LoadLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def parse(self, suffix: str, data: bytes) -> ParsedFile:
        """Return the texts of a file, and what they lack, parsed in the process if its parser needs one.

        Raises:
            LoadingError: The file is broken, has no text, or exceeds the limits, or the parser crashed.
        """
        if not needs_process(suffix, len(data)):
            return parse_file(suffix, data, self._limits)
        try:
            process = self._running_process()
        except OSError as error:
            logger.warning("No process for parsing can be started (%s); %s files are parsed here.", error, suffix)
            return parse_file(suffix, data, self._limits)
        try:
            reply = self._reply_in_time(process, suffix, data)
        except BaseException:
            self.close()
            raise
        if reply.get("recycle"):
            self.close()
        if "reason" in reply:
            raise LoadingError(str(reply["reason"]))
        found = cast("dict[str, Any]", reply["parsed"])
        texts = [(text, metadata) for text, metadata in found.pop("texts")]
        return ParsedFile(texts=texts, **found)

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # unsent bytes
                    stream.close()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if not sys.executable:
                raise OSError("the path of the Python interpreter is unknown")
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _SERVE.format(__name__), json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        return self._process

    def _reply_in_time(self, process: subprocess.Popen[bytes], suffix: str, data: bytes) -> dict[str, object]:
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        # A kill ends the reads and writes below on every system; select() does not support pipes on Windows.
        timer = threading.Timer(self._limits.seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            reply = self._exchange(process, suffix, data)
        finally:
            timer.cancel()
        if reply:
            return cast("dict[str, object]", json.loads(reply.decode("utf-8", "surrogatepass")))
        if late.is_set():
            raise LoadingError(f"reading it takes longer than {self._limits.seconds:g} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        raise LoadingError(f"its parser crashed (exit status {process.poll()})")

    def _exchange(self, process: subprocess.Popen[bytes], suffix: str, data: bytes) -> bytes:
        stdin, stdout = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        with contextlib.suppress(OSError):  # the process died, which also ends the read below
            _send(stdin, json.dumps({"suffix": suffix, "limits": asdict(self._limits)}).encode())
            _send(stdin, data)
        # A character takes at most six bytes, and a text may have as much metadata.
        return _receive(stdout, at_most=12 * self._limits.file_bytes + LARGE_BYTES)


def serve() -> None:
    """Answer requests on standard input until it ends."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output of parsers must not mix with the replies.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group, but the parent ends this process
    at_start = _peak_bytes()  # includes the parent's memory on Linux

    def recycle() -> bool:
        return _peak_bytes() > max(at_start, _RECYCLE_BYTES)

    while header := _receive(requests):
        request = json.loads(header)
        limits = LoadLimits(**request["limits"])
        _limit_process(limits)
        reply = _reply(request["suffix"], _receive(requests), limits, recycle)
        _end_by_itself(None)
        _send(replies, reply)


def _reply(suffix: str, data: bytes, limits: LoadLimits, recycle: Callable[[], bool]) -> bytes:
    try:
        parsed = parse_file(suffix, data, limits)
        answer = {"parsed": vars(parsed), "recycle": recycle()}
        return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (LoadingError, MemoryError) as error:
        reason = str(error) or f"reading it takes more than {limits.memory_bytes >> 20} MB of memory"
        return json.dumps({"reason": reason, "recycle": recycle()}).encode()


def _limit_process(limits: LoadLimits) -> None:
    _end_by_itself(limits.seconds + 5)  # in case the parent is killed
    try:
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, resource.RLIM_INFINITY))
    except (ImportError, OSError, ValueError):
        return


def _end_by_itself(seconds: float | None) -> None:
    if hasattr(signal, "alarm"):  # not on Windows
        signal.alarm(math.ceil(seconds) if seconds is not None else 0)


def _peak_bytes() -> int:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _send(stream: BinaryIO, frame: bytes) -> None:
    stream.write(_LENGTH.pack(len(frame)))
    stream.write(frame)
    stream.flush()


def _receive(stream: BinaryIO, *, at_most: int = 1 << 62) -> bytes:
    """Return the next frame; ``b""`` at the end of the stream, or for a truncated or too long frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return b""
    (length,) = _LENGTH.unpack(head)
    if length > at_most:
        return b""
    frame = stream.read(length)
    return frame if len(frame) == length else b""
