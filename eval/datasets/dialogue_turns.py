"""Turns of dialogues: their history and order, and the choice of turns with their predecessors."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import select_questions

History = tuple[tuple[str, str], ...]
"""(question, answer) pairs, oldest first; ``""`` for an unknown answer."""

USER = "user"


def turn_of(question: EvalQuestion) -> DialogueTurn:
    """Return the turn of a question; one that stands alone is the only turn of a dialogue with its id."""
    return question.turn or DialogueTurn(dialogue_id=question.id, number=1)


def exchanges(messages: Iterable[tuple[str, str]]) -> History:
    """Pair messages (speaker, text): every user message starts a pair, and later messages of others are its answer.

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
            raise ValueError(f"the first message is from {speaker!r} instead of {USER!r}")
    return tuple(pairs)


def in_dialogue_order(questions: Iterable[EvalQuestion]) -> tuple[EvalQuestion, ...]:
    """Group the questions by dialogue, in order of first appearance, and sort each dialogue by turn number."""
    dialogues: dict[str, list[EvalQuestion]] = {}
    for question in questions:
        dialogues.setdefault(turn_of(question).dialogue_id, []).append(question)
    return tuple(
        question for turns in dialogues.values() for question in sorted(turns, key=lambda each: turn_of(each).number)
    )


def without_branches(questions: Iterable[EvalQuestion]) -> tuple[EvalQuestion, ...]:
    """Sort like ``in_dialogue_order`` and make turn n - 1, if present, the parent of turn n."""
    ordered = in_dialogue_order(questions)
    ids = {(turn_of(question).dialogue_id, turn_of(question).number): question.id for question in ordered}
    return tuple(
        replace(question, turn=replace(turn, parent=ids.get((turn.dialogue_id, turn.number - 1), "")))
        for question, turn in ((question, turn_of(question)) for question in ordered)
    )


def with_parents(dataset: Dataset, chosen: Collection[str]) -> Dataset:
    """Keep the chosen questions and their ancestors, in the same order, over the same corpus.

    A parent precedes its children, so the first n questions need no more ancestors. Choosing the result again changes
    nothing.

    Raises:
        SettingsError: ``chosen`` is empty or names a question that the data set lacks.
    """
    known = {question.id: question for question in dataset.questions}
    wanted = set(chosen)
    for question in reversed(dataset.questions):
        if question.id in wanted and question.turn is not None and question.turn.parent in known:
            wanted.add(question.turn.parent)
    return select_questions(dataset, ids=wanted)
