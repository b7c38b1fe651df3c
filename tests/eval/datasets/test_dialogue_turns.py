import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.dialogue_turns import (
    exchanges,
    in_dialogue_order,
    turn_of,
    with_parents,
    without_branches,
)
from judgetree.evaluation.datasets.questions import Dataset, DialogueTurn, EvalQuestion
from judgetree.evaluation.datasets.rows import select_questions, with_digests
from judgetree.modules.errors import SettingsError


def turn(dialogue: str, number: int, parent: str = "") -> EvalQuestion:
    return EvalQuestion(
        id=f"{dialogue}{number}",
        question=f"{dialogue}{number}?",
        answers=("yes",),
        turn=DialogueTurn(dialogue_id=dialogue, number=number, parent=parent),
    )


@st.composite
def trees(draw: st.DrawFn) -> Dataset:
    """Dialogues that branch, in order."""
    turns: list[EvalQuestion] = []
    for dialogue in "ab"[: draw(st.integers(1, 2))]:
        for number in range(1, draw(st.integers(1, 6)) + 1):
            parent = draw(st.integers(0, number - 1))
            turns.append(turn(dialogue, number, f"{dialogue}{parent}" if parent else ""))
    return with_digests(Dataset(name="trees", questions=tuple(turns)))


def ids_of(dataset: Dataset) -> list[str]:
    return [question.id for question in dataset.questions]


def test_a_set_is_conversational_if_there_are_turns_in_it() -> None:
    alone = EvalQuestion(id="q", question="Q?", answers=())
    assert Dataset(name="x", questions=(alone, turn("a", 1))).is_conversational
    assert not Dataset(name="x", questions=(alone,)).is_conversational


def test_a_question_that_stands_alone_is_a_dialogue_of_one_turn() -> None:
    alone = turn_of(EvalQuestion(id="q", question="Q?", answers=()))
    assert (alone.dialogue_id, alone.number, alone.parent, alone.history) == ("q", 1, "", ())


def test_what_others_say_is_the_answer_to_the_users_last_message() -> None:
    said = [("User", " Who? "), ("agent", "Ann."), ("system", "Or Bo."), ("user", "When?")]
    assert exchanges(said) == (("Who?", "Ann. Or Bo."), ("When?", ""))
    assert exchanges([]) == ()
    with pytest.raises(ValueError, match="the first message is from 'agent'"):
        exchanges(reversed(said[:2]))


def test_the_parent_is_the_turn_before_if_it_is_there() -> None:
    asked = without_branches([turn("b", 2), turn("a", 1), turn("b", 1), turn("a", 3), turn("b", 3)])
    assert [(question.id, turn_of(question).parent) for question in asked] == [
        ("b1", ""),
        ("b2", "b1"),
        ("b3", "b2"),
        ("a1", ""),
        ("a3", ""),
    ]


@given(trees(), st.randoms(use_true_random=False))
def test_in_order_a_parent_stands_before_its_children(dataset: Dataset, chance: random.Random) -> None:
    shuffled = chance.sample(dataset.questions, k=len(dataset.questions))
    ordered = in_dialogue_order(shuffled)
    assert sorted(ordered, key=lambda question: question.id) == sorted(dataset.questions, key=lambda each: each.id)
    for place, question in enumerate(ordered):
        parent = turn_of(question).parent
        assert not parent or parent in {earlier.id for earlier in ordered[:place]}


@given(trees(), st.data())
def test_chosen_turns_come_with_their_whole_paths_and_nothing_else(dataset: Dataset, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(ids_of(dataset)), min_size=1))
    parents = {question.id: turn_of(question).parent for question in dataset.questions}
    paths = set(chosen)
    for identity in chosen:
        while identity := parents[identity]:
            paths.add(identity)
    whole = with_parents(dataset, chosen)
    assert ids_of(whole) == [identity for identity in ids_of(dataset) if identity in paths]
    assert with_parents(dataset, ids_of(whole)) == whole
    assert whole.digest == select_questions(dataset, ids=paths).digest


@given(trees(), st.integers(1, 12))
def test_the_first_turns_lack_no_parent(dataset: Dataset, limit: int) -> None:
    first = select_questions(dataset, limit=limit)
    assert with_parents(dataset, ids_of(first)) == first


def test_questions_that_stand_alone_are_chosen_as_they_are() -> None:
    alone = tuple(EvalQuestion(id=name, question="Q?", answers=()) for name in "xyz")
    assert ids_of(with_parents(Dataset(name="x", questions=alone), ["z", "x"])) == ["x", "z"]


def test_a_turn_that_is_not_there_cannot_be_chosen() -> None:
    with pytest.raises(SettingsError, match="a9"):
        with_parents(Dataset(name="x", questions=(turn("a", 1),)), ["a9"])
