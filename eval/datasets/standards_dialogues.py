"""Dialogues whose later turns lean on earlier ones, with a stand-alone question and the gold facts of every turn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, with_config

from .standards_qa import Filled, Question, QuestionType, SupportingFact, evidence_problem, load_faultless

DialogueKind = Literal["plain", "switch", "branches"]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class WrittenTurn:
    """One question of a dialogue.

    Raises:
        ValueError: The supporting facts do not fit the type, as for a ``Question``.
    """

    turn: int
    """Its number, from 1 on."""
    parent: int | None
    """The turn that it follows: not always the one before it; None for the first."""
    question: Filled
    """What the user says; it may need earlier turns to be understood."""
    standalone: Filled
    """The same question with everything named."""
    answer: str
    """Gold answer; may be ``""`` when the question is unanswerable."""
    aliases: tuple[str, ...] = ()
    """Other spellings that count as right."""
    type: QuestionType
    supporting: tuple[SupportingFact, ...] = ()
    """Gold facts of the stand-alone question, in hop order."""
    relevant_turns: tuple[int, ...] = ()
    """Earlier turns of its path that are needed to understand or to answer it, ascending."""
    from_history: bool = False
    """Whether the quotes of earlier turns of its path hold all gold facts."""
    topic_switch: bool = False
    """Whether it has nothing to do with the turns before it."""

    def __post_init__(self) -> None:
        if problem := evidence_problem(self.type, self.answer, self.supporting):
            raise ValueError(problem)

    @property
    def is_follow_up(self) -> bool:
        """True when it leans on earlier turns: it neither opens the dialogue nor switches the topic."""
        return self.parent is not None and not self.topic_switch


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One row of the file: a tree of turns under the first one.

    Raises:
        ValueError: The turns are not numbered from 1 on, a parent or a relevant turn is not where it may be, or a turn
            that needs no other is worded otherwise than its stand-alone question.
    """

    id: Filled
    lang: Filled
    kind: DialogueKind
    """``plain``: one topic, turn after turn; ``switch``: a new topic comes up; ``branches``: a turn goes back."""
    turns: tuple[WrittenTurn, ...]
    """In the order in which they were asked."""

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError("a dialogue needs at least one turn")
        for place, turn in enumerate(self.turns, start=1):
            if problem := _number_problem(turn, place) or _wording_problem(turn):
                raise ValueError(f"turn {place}: {problem}")
        for turn in self.turns:
            earlier = {other.turn for other in path_of(self, turn.turn)} - {turn.turn}
            if strangers := sorted(set(turn.relevant_turns) - earlier):
                raise ValueError(
                    f"turn {turn.turn}: relevant turns must lie earlier on its path, among {sorted(earlier)}; "
                    f"got {strangers}"
                )


def load_dialogues(path: Path | str) -> tuple[Dialogue, ...]:
    """Dialogues of a JSON Lines file, in file order; blank lines are skipped.

    Raises:
        LoadingError: The file cannot be read, holds no dialogue, or some rows are malformed; the message names
            the first ten of them by line number and says what is wrong with each.
    """
    return tuple(load_faultless(path, _ROW, noun="dialogue"))


def path_of(dialogue: Dialogue, turn: int) -> tuple[WrittenTurn, ...]:
    """The turns from the first to this one, along the parents; other branches are not among them.

    Raises:
        ValueError: The dialogue has no turn of this number.
    """
    if not 1 <= turn <= len(dialogue.turns):
        raise ValueError(f"Dialogue {dialogue.id} has no turn {turn}: give one from 1 to {len(dialogue.turns)}.")
    path = [dialogue.turns[turn - 1]]
    while (parent := path[-1].parent) is not None:
        path.append(dialogue.turns[parent - 1])
    return tuple(reversed(path))


def standalone_question(dialogue: Dialogue, turn: int) -> Question:
    """The stand-alone question of a turn with its gold, as a row of its own: ``en-dialogue-01-turn-2``.

    Raises:
        ValueError: The dialogue has no turn of this number.
    """
    asked = path_of(dialogue, turn)[-1]
    return Question(
        id=f"{dialogue.id}-turn-{turn}",
        lang=dialogue.lang,
        question=asked.standalone,
        answer=asked.answer,
        aliases=asked.aliases,
        type=asked.type,
        supporting=asked.supporting,
    )


_ROW = TypeAdapter(Dialogue)


def _number_problem(turn: WrittenTurn, place: int) -> str:
    if turn.turn != place:
        return f"turns count from 1 on, got number {turn.turn}"
    if place == 1 and turn.parent is not None:
        return f"the first turn has no parent, got {turn.parent}"
    if place > 1 and (turn.parent is None or not 1 <= turn.parent < place):
        return f"its parent must be an earlier turn, got {turn.parent}"
    return ""


def _wording_problem(turn: WrittenTurn) -> str:
    if turn.is_follow_up:
        return ""
    if turn.topic_switch and turn.parent is None:
        return "the first turn cannot switch the topic"
    if turn.relevant_turns:
        return "a first turn or a topic switch needs no other turn; leave relevant_turns empty"
    if turn.question != turn.standalone:
        return "a first turn or a topic switch stands alone: question and standalone must be equal"
    return ""
