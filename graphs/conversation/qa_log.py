"""The log of questions and answers: one JSON line a turn, in the file that the setting ``qa_log`` names."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from pathlib import Path

from ...modules.memory.turns import QaPair

logger = logging.getLogger(__name__)

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Refuses a named pipe without a reader instead of waiting for one; Windows has neither."""


async def log_turn(path: str, conversation: str, turn: QaPair) -> None:
    """Append an answered turn to a file, which is made readable by its owner alone; ``""`` logs nothing.

    Several processes may write to the file, and it may be rotated at any time: each line is written at once to the file
    that has the name then. A failed write is a warning.
    """
    if not path:
        return
    line = json.dumps(_entry(conversation, turn), ensure_ascii=False).encode(errors="replace") + b"\n"
    try:
        await asyncio.to_thread(_append, path, line)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: "~ada" without such a user
        logger.warning("The turn is missing in the log of questions (JUDGETREE_QA_LOG): %s", error)


def _entry(conversation: str, turn: QaPair) -> dict[str, object]:
    return {
        "time": turn["timestamp"],
        "conversation": conversation,
        "turn_id": turn["turn_id"],
        "question": turn["query"],
        "standalone_question": turn["standalone_query"],
        "answer": turn["answer"],
        "status": turn["status"],
        "answered_from": turn["answered_from"],
        "sources": list(dict.fromkeys(ref["source"] or ref["chunk_id"] for ref in turn["chunks"])),
        "usage": turn["usage"],
    }


def _append(path: str, line: bytes) -> None:
    file = Path(path).expanduser()
    file.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_WAIT, 0o600)
    try:
        if _ends_within_a_line(file, log):
            line = b"\n" + line
        if (written := os.write(log, line)) < len(line):
            raise OSError(f"{file} took {written} of {len(line)} bytes. Is the disk full?")
    finally:
        os.close(log)


def _ends_within_a_line(file: Path, log: int) -> bool:
    """Return whether the file ends in half a line, as a full disk leaves it."""
    status = os.fstat(log)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    try:
        with file.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:  # a log that may be written but not read
        return False
