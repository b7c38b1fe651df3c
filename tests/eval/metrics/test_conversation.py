"""Figures of conversations: rewrites, reused chunks, and the earlier turns that a question needs."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.metrics.conversation import (
    AnsweredTurn,
    NeededScores,
    needed_scores,
    query_forms,
    rewrite_scores,
)

WORDS = st.lists(st.sampled_from(["weir", "lock", "the", "9"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("lang", "rewrite", "human", "recall", "exact"),
    [
        ("en", "Who built the lock?", "who BUILT the lock", 1.0, 1.0),
        ("en", "Who built it?", "Who built the lock?", 2 / 4, 0.0),
        ("en", "the lock", "the lock of the town", 2 / 5, 0.0),
        ("en", "the the the", "the lock of the town", 2 / 5, 0.0),
        ("en", "Lock the built who?", "Who built the lock?", 1.0, 0.0),
        ("en", "gates of the lock", "the lock's gates", 3 / 4, 0.0),
        ("en", "", "Who?", 0.0, 0.0),
        ("de", "Straße", "STRASSE", 1.0, 1.0),
        ("zh", "船闸多高？", "这座船闸多高", 4 / 6, 0.0),
        ("zh-CN", "YL501 船闸。", "yl501船闸", 1.0, 1.0),
    ],
)
def test_recall_counts_the_words_of_the_human(lang: str, rewrite: str, human: str, recall: float, exact: float) -> None:
    scores = rewrite_scores(rewrite, human, lang=lang)
    assert (scores.rouge1_recall, scores.exact) == (pytest.approx(recall), exact)


@given(WORDS, WORDS)
def test_laws_of_recall(ours: list[str], theirs: list[str]) -> None:
    scores = rewrite_scores(" ".join(ours), " ".join(theirs), lang="en")
    longer = rewrite_scores(" ".join([*ours, theirs[0]]), " ".join(theirs), lang="en")
    assert 0 <= scores.rouge1_recall <= longer.rouge1_recall <= 1
    assert (scores.rouge1_recall == 1) == (Counter(theirs) <= Counter(ours))
    assert scores.exact == float(ours == theirs)


@pytest.mark.parametrize("human", ["", " ?!"])
def test_a_turn_that_nobody_rewrote_has_no_score(human: str) -> None:
    with pytest.raises(ValueError, match="contains no word to compare with"):
        rewrite_scores("Who?", human, lang="en")


def test_a_turn_is_asked_in_four_forms() -> None:
    history = (("What is a lock?", "A gate."), ("Who builds them?", ""))
    turn = DialogueTurn(dialogue_id="d", number=3, history=history, rewrite="When were locks built?")
    question = EvalQuestion(id="q", question="When?", answers=(), turn=turn)
    assert query_forms(question, "When are locks?") == {
        "raw": "When?",
        "joined": "What is a lock? Who builds them? When?",
        "rewrite": "When are locks?",
        "human": "When were locks built?",
    }


@pytest.mark.parametrize("turn", [None, DialogueTurn(dialogue_id="d", number=1)])
def test_without_a_history_and_a_human_the_forms_are_fewer(turn: DialogueTurn | None) -> None:
    question = EvalQuestion(id="q", question="When?", answers=(), turn=turn)
    assert query_forms(question, "When?") == {"raw": "When?", "joined": "When?", "rewrite": "When?"}


# --- reused chunks ---

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
def test_reuse_is_wrong_in_a_wrong_answer_or_new_topic(turn: AnsweredTurn, reuses: bool, wrongly: bool | None) -> None:
    assert (turn.reuses, turn.reuses_wrongly) == (reuses, wrongly)


@given(TURNS)
def test_what_is_not_reused_does_no_harm(turn: AnsweredTurn) -> None:
    assert turn.reuses or turn.reuses_wrongly is False
    assert not (turn.number == 1 and turn.reuses)


# --- needed turns ---

NUMBERS = st.sets(st.integers(1, 6))


@pytest.mark.parametrize(
    ("named", "gold", "precision", "recall", "f1"),
    [
        ([], [], None, None, 1.0),
        ([1], [1], 1.0, 1.0, 1.0),
        ([1, 2, 3], [3, 4], 1 / 3, 1 / 2, 0.4),
        ([1], [2], 0.0, 0.0, 0.0),
        ([], [2], None, 0.0, 0.0),
        ([1], [], 0.0, None, 0.0),
        ([2, 2], [2], 1.0, 1.0, 1.0),
    ],
)
def test_needed_turns_are_scored_as_sets(
    named: list[int], gold: list[int], precision: float | None, recall: float | None, f1: float
) -> None:
    assert needed_scores(named, gold) == NeededScores(precision=precision, recall=recall, f1=f1)


@given(named=NUMBERS, gold=NUMBERS)
def test_f1_of_needed_turns_is_the_harmonic_mean_and_symmetric(named: set[int], gold: set[int]) -> None:
    scores, swapped = needed_scores(named, gold), needed_scores(gold, named)
    assert (scores.precision, scores.recall, scores.f1) == (swapped.recall, swapped.precision, swapped.f1)
    if scores.precision and scores.recall:
        harmonic = 2 * scores.precision * scores.recall / (scores.precision + scores.recall)
        assert scores.f1 == pytest.approx(harmonic)
