"""The log of questions and answers: one JSON line a turn; a log that cannot be written costs no turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.graphs.conversation.talk import CLASS, DOWN, OIL, TalkingLLM, open_conversations, settings_in


def test_each_answered_turn_is_a_line(llm: TalkingLLM, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "qa.jsonl"
    with open_conversations(tmp_path, llm, settings=settings_in(tmp_path, qa_log=str(log))) as talks:
        talk = talks.conversation("monday")
        first = talk.ask(CLASS, request_id="1")
        talk.ask(CLASS, request_id="1")
        llm.broken["read"] = DOWN
        assert talk.ask("And its oil?").status == "failed"
        log.rename(tmp_path / "rotated.jsonl")
        del llm.broken["read"]
        second = talk.ask("And its oil?")
    (before,) = map(json.loads, (tmp_path / "rotated.jsonl").read_text().splitlines())
    (after,) = map(json.loads, log.read_text().splitlines())
    assert (before["question"], before["answer"], before["turn_id"]) == (CLASS, "Delta", first.turn_id)
    assert after == {
        "time": second.turn and second.turn["timestamp"],
        "conversation": "monday",
        "turn_id": second.turn_id,
        "question": "And its oil?",
        "standalone_question": OIL,
        "answer": "Vellin",
        "status": "answered",
        "answered_from": "search",
        "sources": ["oil.md"],
        "usage": second.usage,
    }
    assert log.stat().st_mode & 0o077 == 0


def test_log_that_cannot_be_written_is_a_warning(
    llm: TalkingLLM, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    settings = settings_in(tmp_path, qa_log=str(tmp_path / "file" / "qa.jsonl"))
    with open_conversations(tmp_path, llm, settings=settings) as talks:
        assert talks.conversation("s").ask(CLASS).answer == "Delta"
    assert "JUDGETREE_QA_LOG" in caplog.text
