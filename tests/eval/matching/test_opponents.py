"""Which option gives an opponent the budget of a system, over spending that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from judgetree.evaluation.matching.opponents import find_opponents
from judgetree.evaluation.rows.opponents import Opponent, opponents_in
from judgetree.evaluation.rows.store import RunRow
from judgetree.graphs.config.variants import read_variant
from judgetree.modules.calls.prices import ModelUsage
from judgetree.modules.errors import SettingsError
from tests.eval.run_rows import run_row

Spends = Callable[[int], float]


class World:
    """Systems that spend what functions say, on ten questions."""

    def __init__(self, *, tokens: float, calls: float, naive: Spends, ircot: Spends, failing: int = 0) -> None:
        self.asked: list[str] = []
        self._own, self._of = (tokens, calls), {"naive": naive, "ircot": ircot}
        self._failing = failing

    def ask(self, systems: Sequence[str]) -> list[RunRow]:
        self.asked += systems
        rows = []
        for label in systems:
            tokens, calls = self._own
            variant = read_variant(label)
            if variant.system == "naive":
                tokens = self._of["naive"](variant.options.topk)
            if variant.system == "ircot":
                calls = self._of["ircot"](variant.options.max_rec_depth)
            for number in range(10):
                usage = ModelUsage(
                    model="m",
                    kind="chat",
                    calls=round(calls * 10) // 10 + (number < round(calls * 10) % 10),
                    prompt_tokens=round(tokens),
                    completion_tokens=9,
                )
                has_failed = number < self._failing
                rows.append(
                    run_row(
                        system=label,
                        question_id=f"q{number}",
                        paid=(usage,),
                        status="failed" if has_failed else "answered",
                        error="no model" if has_failed else "",
                    )
                )
        return rows


@pytest.mark.parametrize(
    ("tokens", "calls", "topk", "depth"),
    [(3_700, 9.5, 26, 9), (1_800, 3.1, 12, 2), (420, 2.0, 2, 1), (150, 1.0, 1, 1)],
)
def test_the_options_are_those_that_come_closest(tokens: float, calls: float, topk: int, depth: int) -> None:
    def of_naive(value: int) -> float:
        return 130 + 139 * value

    def of_ircot(value: int) -> float:
        return 1 + min(value, 30)

    world = World(tokens=tokens, calls=calls, naive=of_naive, ircot=of_ircot)
    naive, ircot = find_opponents("judge", world.ask)
    assert naive.system == f"naive(topk={topk})"
    best = min(range(1, 201), key=lambda value: abs(of_naive(value) - tokens))
    assert abs(of_naive(topk) - tokens) <= max(0.02 * tokens, abs(of_naive(best) - tokens))
    assert ircot.system == f"ircot(max_rec_depth={depth})"
    assert (naive.spent, naive.budget, naive.questions) == (of_naive(topk), tokens, 10)
    assert len(world.asked) <= 9, world.asked


def test_an_opponent_that_cannot_spend_so_much_says_so() -> None:
    world = World(tokens=100_000, calls=20, naive=lambda value: 100 * value, ircot=lambda value: min(1 + value, 4.2))
    naive, ircot = find_opponents("judge(judge=batched)", world.ask)
    assert naive.system == "naive(topk=200)"
    assert "comes closest to the prompt tokens of judge(judge=batched), and is not equal: 20,000 and 100,000" in (
        naive.words()
    )
    assert (ircot.spent, ircot.budget) == (4.2, 20.0)
    assert "4.2 and 20.0 a question over 10 questions of a pilot." in ircot.words()


def test_opponents_of_naive_are_others() -> None:
    world = World(tokens=900, calls=1, naive=lambda value: 100.0 * value, ircot=lambda value: 1.0 + value)
    assert [each.system for each in find_opponents("naive", world.ask)] == ["ircot(max_rec_depth=1)"]


def test_an_option_that_is_usual_leaves_the_plain_name() -> None:
    """A run asked ircot twice, as ircot and as ircot(max_rec_depth=3), and corrected for both."""
    world = World(tokens=430, calls=4, naive=lambda value: 100.0 * value, ircot=lambda value: 1.0 + value)
    found = find_opponents("judge", world.ask, usual={"topk": 3, "max_rec_depth": 3})
    assert [each.system for each in found] == ["naive(topk=4)", "ircot"]


def test_failed_questions_do_not_count_and_most_must_not_fail() -> None:
    few = World(tokens=900, calls=2, naive=lambda value: 100.0 * value, ircot=lambda value: 1.0 + value, failing=4)
    assert {each.questions for each in find_opponents("judge", few.ask)} == {6}
    many = World(tokens=900, calls=2, naive=lambda value: 100.0 * value, ircot=lambda value: 1.0 + value, failing=6)
    with pytest.raises(
        SettingsError, match=r"answered 4 of 10 questions of the pilot\. The first that failed: no model"
    ):
        find_opponents("judge", many.ask)


def test_a_manifest_gives_them_back_and_a_damaged_one_gives_none() -> None:
    one = Opponent(system="naive(topk=2)", matches="judge", spending="calls", spent=1.0, budget=1.5, questions=3)
    assert list(opponents_in({"opponents": [one.to_document()]})) == [one]
    assert not opponents_in({"opponents": [{"system": 3}]})
    assert not opponents_in({})
