"""What one turn has otherwise than its session: it changes that turn alone, and the turn says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


def test_limits_of_one_turn_are_its_tree_s_and_make_it_another_turn(talks: Conversations, llm: TalkingLLM) -> None:
    talk = talks.conversation("s")
    llm.broken["read"] = DOWN
    limits = {"max_llm_calls": 7, "max_tree_seconds": 60.0}
    failed = talk.ask(CLASS, **limits)
    assert not talk.ask(CLASS, max_llm_calls=8).resumed
    assert failed.turn_id != talk.ask(CLASS, **limits).turn_id
    llm.broken.clear()
    result = talk.ask(CLASS, **limits)
    assert (result.resumed, saved(result)["overrides"]) == (True, {"max_llm_calls": "7", "max_tree_seconds": "60.0"})
    assert result.tree is not None
    assert result.tree.fingerprint["max_llm_calls"] == "7"
    after = talk.ask(CLASS, regenerate=True, parent_turn_id="")
    assert after.tree is not None
    assert (after.tree.fingerprint["max_llm_calls"], "overrides" in saved(after)) == ("60", False)


def test_a_limit_of_money_takes_the_prices_of_the_home(
    opened: Callable[..., Conversations], tmp_path: Path, llm: TalkingLLM
) -> None:
    (tmp_path / "prices.toml").write_text(f'[chat."{llm.model}"]\nprompt = 1.0\ncompletion = 1.0\n', encoding="utf-8")
    talk = opened().conversation("s")
    assert saved(talk.ask(CLASS, max_tree_cost_usd=1.0))["status"] == "answered"
    with pytest.raises(SettingsError, match="does not pay for an answer"):
        talk.ask(CLASS, max_tree_cost_usd=1e-9, regenerate=True)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"topk": 5}, "topk cannot be set for one question of a retriever of your own"),
        ({"topk": "5"}, "topk: Input should be a valid integer .it is '5'"),
        ({"modell": "x"}, "takes no 'modell'. Allowed: llm, temperature, thinking, topk"),
        ({"limits": {"max_llm_calls": 3}}, "takes no 'limits'.*Allowed: .*max_llm_calls"),
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
