import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.metrics.conversation import AnsweredTurn

TURNS = st.builds(
    AnsweredTurn,
    number=st.integers(1, 3),
    from_history=st.booleans(),
    kept_chunks=st.integers(0, 2),
    is_right=st.sampled_from([None, True, False]),
    topic_switch=st.sampled_from([None, True, False]),
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


@given(TURNS)
def test_what_is_not_reused_does_no_harm(turn: AnsweredTurn) -> None:
    assert turn.reuses or turn.reuses_wrongly is False
    assert not (turn.number == 1 and turn.reuses)
