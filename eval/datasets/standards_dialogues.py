"""Dialogues with follow-up turns, and a stand-alone question with gold facts for every turn."""

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
    """Turn number from 1."""
    parent: int | None
    """Number of the preceding turn, not always ``turn - 1``; None for the first turn."""
    question: Filled
    """The user's words; they may refer to earlier turns."""
    standalone: Filled
    """The same question without references to other turns."""
    answer: str
    """Gold answer; may be ``""`` if the question is unanswerable."""
    aliases: tuple[str, ...] = ()
    """Other accepted answers."""
    type: QuestionType
    supporting: tuple[SupportingFact, ...] = ()
    """Gold facts of the stand-alone question, in hop order."""
    relevant_turns: tuple[int, ...] = ()
    """Numbers of the earlier turns of its path that it needs, ascending."""
    from_history: bool = False
    """Whether the quotes of earlier turns of its path hold all gold facts."""
    topic_switch: bool = False
    """Whether it is unrelated to the turns before it."""

    def __post_init__(self) -> None:
        if problem := evidence_problem(self.type, self.answer, self.supporting):
            raise ValueError(problem)

    @property
    def is_follow_up(self) -> bool:
        """Whether it depends on earlier turns: it neither opens the dialogue nor switches the topic."""
        return self.parent is not None and not self.topic_switch


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One row of the file: a tree of turns with the first turn as root.

    Raises:
        ValueError: The turns are not numbered 1, 2, 3, …, a parent or relevant turn is not an earlier turn of the path,
            or the question of a turn that depends on no other differs from its stand-alone question.
    """

    id: Filled
    lang: Filled
    kind: DialogueKind
    """``plain``: one topic, one path. ``switch``: the topic changes. ``branches``: a turn follows an older one."""
    turns: tuple[WrittenTurn, ...]
    """Turns in the order in which they were asked."""

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
    """Read the dialogues of a JSON Lines file, in file order; blank lines are skipped.

    Raises:
        LoadingError: The file cannot be read, has no dialogue, or has malformed rows; the message lists the first ten
            by line number.
    """
    return tuple(load_faultless(path, _ROW, noun="dialogue"))


def path_of(dialogue: Dialogue, turn: int) -> tuple[WrittenTurn, ...]:
    """Return the turns from the first to this one, along the parents.

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
    """Make a row of a turn's stand-alone question and gold facts, with an id such as ``en-dialogue-01-turn-2``.

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
        return f"turns count from 1, got number {turn.turn}"
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
