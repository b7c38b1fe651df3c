"""Dialogues whose later turns lean on earlier ones, with a stand-alone question and the gold facts of every turn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, with_config

from ...modules.errors import LoadingError
from ...modules.index.folder_scan import scan_files
from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import RowReader, unique_answers, with_digests
from .standards import Filled, Question, QuestionType, SupportingFact, evidence_problem, load_faultless

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


def load_dialogue_questions(path: Path, *, folder: Path | None = None) -> Dataset:
    """The turns of a file's dialogues, over a folder of documents that is indexed and chunked like any other.

    Ids are those of ``standalone_question`` (``en-dialogue-01-turn-2``), whose wording is the turn's ``rewrite``.
    ``supporting`` names sources (paths relative to the folder) in hop order, also where earlier turns have found them;
    ``hops`` counts the quotes. A dialogue that names a source which is not in the folder is malformed. Reads every file
    of the folder for the digest.

    Args:
        path: The JSON Lines file, a dialogue a line.
        folder: Folder of the documents; None for ``standards`` beside the file.

    Raises:
        LoadingError: File or folder cannot be read, or the file has no good row.
    """
    path = Path(path)
    folder = folder or path.parent / "standards"
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder} with the documents of {path.name}. Put it beside the file.")
    sources = frozenset(file.source for file in scan_files(folder).files)
    reader = RowReader(file=path)
    dialogues = list(reader.rows(partial(_dialogue, sources=sources), key=lambda dialogue: dialogue.id))
    return with_digests(
        Dataset(
            name="dialogues",
            questions=tuple(_question(dialogue, turn.turn) for dialogue in dialogues for turn in dialogue.turns),
            folder=folder,
            key_field="source",
            malformed=reader.checked(),
        )
    )


def _dialogue(content: object, *, sources: Collection[str]) -> Dialogue:
    dialogue = _ROW.validate_python(content)
    for turn in dialogue.turns:
        if missing := [fact.source for fact in turn.supporting if fact.source not in sources]:
            raise ValueError(f"turn {turn.turn}: supporting: there is no file {missing[0]!r} in the folder")
    return dialogue


def _question(dialogue: Dialogue, number: int) -> EvalQuestion:
    *before, asked = path_of(dialogue, number)
    alone = standalone_question(dialogue, number)
    return EvalQuestion(
        id=alone.id,
        question=asked.question,
        answers=() if asked.type == "unanswerable" else unique_answers((asked.answer, *asked.aliases)),
        lang=dialogue.lang,
        type=asked.type,
        hops=len(asked.supporting) or None,
        supporting=tuple(dict.fromkeys(fact.source for fact in asked.supporting)),
        facts=tuple((fact.source, fact.quote) for fact in asked.supporting),
        turn=DialogueTurn(
            dialogue_id=dialogue.id,
            number=number,
            parent=standalone_question(dialogue, asked.parent).id if asked.parent else "",
            history=tuple((turn.question, "" if turn.type == "unanswerable" else turn.answer) for turn in before),
            rewrite=alone.question,
            topic_switch=asked.topic_switch,
            relevant_turns=asked.relevant_turns,
            from_history=asked.from_history,
        ),
    )
