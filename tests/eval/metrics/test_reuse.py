import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.metrics.reuse import AnsweredTurn, reuse_figures

TURNS = st.builds(
    AnsweredTurn,
    number=st.integers(1, 3),
    from_history=st.booleans(),
    kept_chunks=st.integers(0, 2),
    is_right=st.sampled_from([None, True, False]),
    topic_switch=st.sampled_from([None, True, False]),
    calls=st.integers(0, 9),
    tokens=st.integers(0, 999),
)


@pytest.mark.parametrize(
    ("turn", "reuses", "wrongly"),
    [
        (AnsweredTurn(number=2), False, False),
        (AnsweredTurn(number=1, from_history=True, kept_chunks=1, is_right=False, topic_switch=True), False, False),
        (AnsweredTurn(number=2, from_history=True, is_right=True), True, False),
        (AnsweredTurn(number=2, from_history=True, is_right=False), True, True),
        (AnsweredTurn(number=2, from_history=True, topic_switch=False), True, None),
        (AnsweredTurn(number=2, from_history=True, is_right=True, topic_switch=True), True, False),
        (AnsweredTurn(number=2, kept_chunks=1, topic_switch=False, is_right=False), True, False),
        (AnsweredTurn(number=2, kept_chunks=1, topic_switch=True, is_right=True), True, True),
        (AnsweredTurn(number=2, kept_chunks=1, is_right=False), True, None),
        (AnsweredTurn(number=2, from_history=True, kept_chunks=1, topic_switch=True), True, True),
        (AnsweredTurn(number=2, from_history=True, kept_chunks=1, is_right=True), True, None),
    ],
)
def test_reuse_is_wrong_with_a_wrong_answer_or_on_a_new_topic(
    turn: AnsweredTurn, reuses: bool, wrongly: bool | None
) -> None:
    assert (turn.reuses, turn.reuses_wrongly) == (reuses, wrongly)


def test_figures_by_hand() -> None:
    turns = [
        AnsweredTurn(number=1, calls=5, tokens=900),
        AnsweredTurn(number=2, from_history=True, is_right=True, calls=1, tokens=100),
        AnsweredTurn(number=3, from_history=True, is_right=False, calls=1, tokens=100),
        AnsweredTurn(number=4, kept_chunks=2, calls=3, tokens=300),
        AnsweredTurn(number=5, calls=5, tokens=600),
    ]
    figures = reuse_figures(turns)
    assert (figures.turns, figures.follow_ups, figures.reusing) == (5, 4, 3)
    assert (figures.reuse_rate, figures.wrong_reuse_rate) == (3 / 4, 1 / 2)
    assert (figures.calls_per_turn, figures.tokens_per_turn) == (3.0, 400.0)


def test_where_there_is_nothing_to_count_there_is_no_figure() -> None:
    none = reuse_figures([])
    assert (none.reuse_rate, none.wrong_reuse_rate, none.calls_per_turn, none.tokens_per_turn) == (None,) * 4
    first = reuse_figures([AnsweredTurn(number=1, calls=2, tokens=8)])
    assert (first.reuse_rate, first.wrong_reuse_rate, first.calls_per_turn) == (None, None, 2.0)


@given(st.lists(TURNS, max_size=8))
def test_figures_are_shares_and_the_order_does_not_matter(turns: list[AnsweredTurn]) -> None:
    figures = reuse_figures(turns)
    assert reuse_figures(turns[::-1]) == figures
    assert figures.reusing <= figures.follow_ups <= figures.turns == len(turns)
    assert all(0 <= rate <= 1 for rate in (figures.reuse_rate, figures.wrong_reuse_rate) if rate is not None)
