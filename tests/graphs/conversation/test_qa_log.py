"""The log of questions and answers: one JSON line a turn; a log that cannot be written costs no turn."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from judgetree.graphs.conversation.qa_log import log_turn
from judgetree.modules.memory.turns import QaPair
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


@pytest.mark.parametrize("log", ["file/qa.jsonl", "pipe", "~no-such-user-here/qa.jsonl", "a\0b.jsonl"])
def test_log_that_cannot_be_written_is_a_warning(
    llm: TalkingLLM, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")  # which nobody reads
    elif log == "pipe":
        pytest.skip("there are no named pipes here")
    with open_conversations(tmp_path, llm, settings=settings_in(tmp_path, qa_log=log)) as talks:
        assert talks.conversation("s").ask(CLASS).answer == "Delta"
    assert "JUDGETREE_QA_LOG" in caplog.text


def a_turn(llm: TalkingLLM, folder: Path) -> QaPair:
    with open_conversations(folder, llm, settings=settings_in(folder)) as talks:
        turn = talks.conversation("s").ask(CLASS).turn
    assert turn is not None
    return turn


def test_line_that_was_cut_off_is_a_warning_and_leaves_the_next_one_whole(
    llm: TalkingLLM, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource", reason="needs limits of file sizes")
    log, turn = tmp_path / "qa.jsonl", a_turn(llm, tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        asyncio.run(log_turn(str(log), "monday", turn))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "took 100 of" in caplog.text
    asyncio.run(log_turn(str(log), "monday", turn))
    cut_off, whole = log.read_text().splitlines()
    assert len(cut_off) == 100
    assert json.loads(whole)["question"] == CLASS
