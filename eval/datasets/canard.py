"""CANARD (Elgohary et al. 2019, EMNLP): questions of QuAC with stand-alone rewrites by hand.

A row has ``QuAC_dialog_id``, ``Question_no`` (from 1), ``Question``, ``Rewrite`` and ``History``: title and section of
the page, then question and answer of every earlier turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from .dialogue_turns import History, turn_of, without_branches
from .quac import UNANSWERABLE
from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import DatasetRow, Filled, RowReader, Text, language_tag, with_digests

_BEFORE_THE_TURNS = 2
"""Title and section at the start of every history."""


def load_canard(path: Path) -> Dataset:
    """Read the questions of a CANARD file (a JSON list or JSON Lines), dialogue by dialogue.

    Ids are ``<QuAC_dialog_id>_<Question_no>``, which differ from QuAC's own. Title and section are left out of the
    history, since a user has not said them.

    A row lacks the answer to its own question. It is taken from the history of a later turn if that has the same
    question in its place; the last question of a dialogue has ``answers_known`` False. "CANNOTANSWER" makes a question
    unanswerable from QuAC's section of the page. There are no documents here: another corpus may answer it.

    Raises:
        LoadingError: The file cannot be read or has no valid row.
    """
    reader = RowReader(file=Path(path))
    questions = without_branches(reader.rows(_read, key=lambda question: question.id))
    answers = _later_answers(questions)
    return with_digests(
        Dataset(
            name="canard",
            questions=tuple(_with_answer(question, answers) for question in questions),
            malformed=reader.checked(),
        )
    )


class _Row(DatasetRow):
    history: tuple[Text, ...] = Field(validation_alias="History", min_length=_BEFORE_THE_TURNS)
    dialogue_id: Filled = Field(validation_alias="QuAC_dialog_id")
    number: int = Field(validation_alias="Question_no", ge=1)
    question: Filled = Field(validation_alias="Question")
    rewrite: Filled = Field(validation_alias="Rewrite")


def _read(content: object) -> EvalQuestion:
    row = _Row.model_validate(content)
    said = [text.strip() for text in row.history[_BEFORE_THE_TURNS:]]
    if len(said) % 2:
        raise ValueError("History: its last question has no answer")
    return EvalQuestion(
        id=f"{row.dialogue_id}_{row.number}",
        question=row.question,
        answers=(),
        answers_known=False,
        lang=language_tag(row.question),
        turn=DialogueTurn(
            dialogue_id=row.dialogue_id,
            number=row.number,
            history=tuple(zip(said[::2], said[1::2], strict=True)),
            rewrite=row.rewrite,
        ),
    )


def _later_answers(questions: Iterable[EvalQuestion]) -> Mapping[str, History]:
    """Collect the longest history of each dialogue."""
    longest: dict[str, History] = {}
    for question in questions:
        turn = turn_of(question)
        longest[turn.dialogue_id] = max(longest.get(turn.dialogue_id, ()), turn.history, key=len)
    return longest


def _with_answer(question: EvalQuestion, answers: Mapping[str, History]) -> EvalQuestion:
    turn = turn_of(question)
    history = tuple((asked, "" if answer == UNANSWERABLE else answer) for asked, answer in turn.history)
    question = replace(question, turn=replace(turn, history=history))
    asked, answer = dict(enumerate(answers[turn.dialogue_id], start=1)).get(turn.number, ("", ""))
    if asked != question.question or not answer:
        return question
    if answer == UNANSWERABLE:
        return replace(question, answers_known=True, type="unanswerable")
    return replace(question, answers_known=True, answers=(answer,))
