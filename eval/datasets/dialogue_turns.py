"""Turns of dialogues: what leads up to each, their order, and choosing some together with what they follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import select_questions

History = tuple[tuple[str, str], ...]
"""(question, answer) pairs, oldest first; ``""`` for an answer that is not known."""

USER = "user"


def turn_of(question: EvalQuestion) -> DialogueTurn:
    """The turn that a question is.

    Raises:
        ValueError: It stands alone.
    """
    if question.turn is None:
        raise ValueError(f"Question {question.id!r} is no turn of a dialogue.")
    return question.turn


def exchanges(messages: Iterable[tuple[str, str]]) -> History:
    """Messages (speaker, text) as pairs: every message of the user begins one, and what others say is its answer.

    >>> exchanges([("user", "Who?"), ("user", "When?"), ("agent", "In May."), ("agent", "Or June.")])
    (('Who?', ''), ('When?', 'In May. Or June.'))

    Raises:
        ValueError: The first message is not the user's.
    """
    pairs: list[tuple[str, str]] = []
    for speaker, text in messages:
        if speaker.casefold() == USER:
            pairs.append((text.strip(), ""))
        elif pairs:
            question, answer = pairs[-1]
            pairs[-1] = (question, f"{answer} {text.strip()}".strip())
        else:
            raise ValueError(f"the first message is of {speaker!r}, not of {USER!r}")
    return tuple(pairs)


def in_dialogue_order(questions: Iterable[EvalQuestion]) -> tuple[EvalQuestion, ...]:
    """The questions with each dialogue's together, by number; dialogues in order of first appearance."""
    dialogues: dict[str, list[EvalQuestion]] = {}
    for question in questions:
        dialogues.setdefault(turn_of(question).dialogue_id, []).append(question)
    return tuple(
        question for turns in dialogues.values() for question in sorted(turns, key=lambda each: turn_of(each).number)
    )


def in_line(questions: Iterable[EvalQuestion]) -> tuple[EvalQuestion, ...]:
    """``in_dialogue_order`` for dialogues that do not branch: the parent of turn n is turn n - 1, if that is there."""
    ordered = in_dialogue_order(questions)
    ids = {(turn_of(question).dialogue_id, turn_of(question).number): question.id for question in ordered}
    return tuple(_with_parent(question, ids) for question in ordered)


def with_parents(dataset: Dataset, chosen: Collection[str]) -> Dataset:
    """The data set with the chosen questions and all that stand before them on their paths, over the same corpus.

    The order stays, so that a parent comes before its children. Choosing what came back gives the same again, and so
    does choosing the first n questions: they have no parent behind them.

    Raises:
        SettingsError: ``chosen`` is empty or names a question that the data set does not have.
    """
    known = {question.id: question for question in dataset.questions}
    wanted = set(chosen)
    for question in reversed(dataset.questions):
        if question.id in wanted and question.turn is not None and question.turn.parent in known:
            wanted.add(question.turn.parent)
    return select_questions(dataset, ids=wanted)


def _with_parent(question: EvalQuestion, ids: dict[tuple[str, int], str]) -> EvalQuestion:
    turn = turn_of(question)
    return replace(question, turn=replace(turn, parent=ids.get((turn.dialogue_id, turn.number - 1), "")))
