"""A conversation on every checkpoint store: it is the same, and another process goes on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.graphs.conversations import Conversations
from judgetree.modules.settings import Settings
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, SCREW, TalkingLLM, open_conversations, settings_in


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param in ("postgres", "redis"):
        return settings_in(tmp_path, checkpoints=str(request.getfixturevalue(f"{request.param}_url")))
    return settings_in(tmp_path, **({"checkpoints": "memory:"} if request.param == "memory" else {}))


def opened(llm: TalkingLLM, settings: Settings) -> Conversations:
    return open_conversations(settings.home, llm, settings=settings)


def test_conversation_is_led_branched_listed_and_deleted(settings: Settings, request: pytest.FixtureRequest) -> None:
    name, llm = request.node.name, TalkingLLM()
    with opened(llm, settings) as talks:
        talk = talks.conversation(name)
        first = talk.ask(CLASS)
        assert talk.ask("And its oil?").answer == "Vellin"
        assert talk.ask("Which colour has it?", parent_turn_id=first.turn_id).answer == "green"
        assert [turn["turn_number"] for turn in talk.history()] == [1, 2]
        talk.undo()
        talk.switch("main")
        assert [turn["query"] for turn in talk.history()] == [CLASS, "And its oil?"]
        (summary,) = [each for each in talks.summaries() if each.name == name]
        assert (summary.title, summary.turns, len(summary.branches)) == (CLASS, 2, 2)
        assert talks.delete(name) > 0
        assert name not in [each.name for each in talks.summaries()]
        assert talk.history() == []


def test_another_process_takes_over_a_cut_off_turn(settings: Settings, request: pytest.FixtureRequest) -> None:
    if settings.checkpoints == "memory:":
        pytest.skip("checkpoints in memory end with their process")
    name, llm = request.node.name, TalkingLLM()
    with opened(llm, settings) as talks:
        talks.conversation(name).ask(CLASS)
        llm.broken["read"] = DOWN
        assert talks.conversation(name).ask("And its oil?").status == "failed"
    again = TalkingLLM()
    with opened(again, settings) as talks:
        talk = talks.conversation(name)
        result = talk.ask("And its oil?")
        assert (result.answer, result.resumed) == ("Vellin", True)
        assert again.asked() == ["read"], "selection and assessment were paid for"
        assert [turn["query"] for turn in talk.history()] == [CLASS, "And its oil?"]
        assert talk.ask(SCREW).turn is not None
        assert [turn["standalone_query"] for turn in talk.history()] == [CLASS, OIL, SCREW]


def test_pruned_conversation_is_whole(settings: Settings, request: pytest.FixtureRequest) -> None:
    asked = [CLASS, OIL, SCREW] * 4
    with opened(TalkingLLM(), settings) as talks:
        talk = talks.conversation(request.node.name)
        for query in asked:
            assert talk.ask(query).status == "answered"
        assert [turn["query"] for turn in talk.history()] == asked
        assert [each.turns for each in talks.summaries() if each.name == request.node.name] == [12]
