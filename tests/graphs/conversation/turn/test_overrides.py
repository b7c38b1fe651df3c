"""What one turn has otherwise than its session: it changes that turn alone, and the turn says so."""

from __future__ import annotations

import pytest

from judgetree.graphs.conversations import Conversations
from judgetree.modules.errors import SettingsError
from tests.graphs.conversation.talk import CLASS, DOWN, TalkingLLM, after_first_turn, saved


class OtherLLM(TalkingLLM):
    model = "other"


def test_model_of_one_turn_makes_its_calls_alone_and_is_named(talks: Conversations, llm: TalkingLLM) -> None:
    talk, other = after_first_turn(talks, llm), OtherLLM()
    turn = saved(talk.ask("And its oil?", llm=other))
    assert (turn["answer"], turn["overrides"]) == ("Vellin", {"llm": "other"})
    assert (llm.asked(), other.asked()) == ([], ["select", "assess", "read"])
    assert talk.history()[-1] == turn
    after = saved(talk.ask(CLASS))
    assert "overrides" not in after
    assert other.asked() == []
    assert saved(talk.ask(CLASS, thinking=False))["overrides"] == {"thinking": "off"}


def test_open_turn_with_another_model_is_another_turn(talks: Conversations, llm: TalkingLLM) -> None:
    talk, other = talks.conversation("s"), OtherLLM()
    llm.broken["read"] = DOWN
    failed = talk.ask(CLASS)
    result = talk.ask(CLASS, llm=other)
    assert (failed.status, result.status, result.resumed) == ("failed", "answered", False)
    assert result.tree is not None
    assert result.tree.fingerprint["reader.model"] == "other"


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"topk": 5}, "topk cannot be set for one question of a retriever of your own"),
        ({"topk": "5"}, "topk='5' is not allowed"),
        ({"modell": "x"}, "takes no 'modell'. Allowed: llm, thinking, topk"),
        ({"llm": "nonsense"}, "Unknown model 'nonsense'"),
    ],
)
def test_overrides_that_cannot_be_leave_no_open_turn(
    talks: Conversations, overrides: dict[str, object], said: str
) -> None:
    talk = talks.conversation("s")
    with pytest.raises(SettingsError, match=said):
        talk.ask(CLASS, **overrides)  # type: ignore[arg-type]
    assert talk.open_turn is None
