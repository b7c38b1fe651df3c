"""The log of questions and answers: one JSON line a turn, in the file that the setting ``qa_log`` names."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path

from ...modules.memory.turns import QaPair

logger = logging.getLogger(__name__)


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
    except OSError as error:
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
    log = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(log, line)
    finally:
        os.close(log)
