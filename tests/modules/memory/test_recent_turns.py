"""Newest turns remembered for a while."""

from __future__ import annotations

import pytest

from judgetree.modules.memory.recent_turns import RecentTurns
from judgetree.modules.memory.turns import QaPair
from tests.modules.memories import Clock
from tests.modules.turn_factory import make_turn

PATH = {"main": 9}


class Source:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> list[QaPair]:
        self.asked += 1
        return [make_turn(self.asked)]


def test_an_answer_is_good_for_its_time() -> None:
    clock, source = Clock(), Source()
    recent = RecentTurns(clock)
    first = recent.get("s", 3, {"main": 1}, source)
    clock.now = 299.9
    assert recent.get("s", 3, {"main": 1}, source) == first
    clock.now = 300.0
    assert recent.get("s", 3, {"main": 1}, source) == [make_turn(2)]


def test_session_limit_and_path_tell_answers_apart() -> None:
    source = Source()
    recent = RecentTurns(Clock())
    questions = [("s", 3, PATH), ("s", 3, {"main": 1}), ("s", 3, {"main": 2}), ("s", 4, PATH), ("other", 3, PATH)]
    for session, limit, spans in questions * 2:
        recent.get(session, limit, spans, source)
    assert source.asked == len(questions)


def test_a_caller_may_change_what_it_got() -> None:
    recent = RecentTurns(Clock())
    recent.get("s", 3, PATH, Source())[0]["chunks"].append({})  # type: ignore[typeddict-item]
    recent.get("s", 3, PATH, Source()).clear()
    assert recent.get("s", 3, PATH, Source()) == [make_turn(1)]


def test_dropping_a_session_leaves_the_others() -> None:
    source = Source()
    recent = RecentTurns(Clock())
    kept = recent.get("other", 3, PATH, source)
    recent.get("s", 3, PATH, source)
    recent.drop("s")
    assert recent.get("other", 3, PATH, source) == kept
    assert recent.get("s", 3, PATH, source) == [make_turn(3)]


def test_a_read_that_a_write_overtakes_or_that_fails_is_not_remembered() -> None:
    recent = RecentTurns(Clock())

    def overtaken() -> list[QaPair]:
        recent.drop("s")
        return []

    def fail() -> list[QaPair]:
        raise OSError

    assert recent.get("s", 3, PATH, overtaken) == []
    with pytest.raises(OSError):
        recent.get("s", 3, PATH, fail)
    assert recent.get("s", 3, PATH, Source()) == [make_turn(1)]


def test_the_answer_not_used_for_longest_goes_first() -> None:
    source = Source()
    recent = RecentTurns(Clock(), capacity=2)
    for session in ("a", "b", "a", "c"):
        recent.get(session, 3, PATH, source)
    assert len(recent) == 2
    recent.get("a", 3, PATH, source)
    assert source.asked == 3
    recent.get("b", 3, PATH, source)
    assert source.asked == 4
