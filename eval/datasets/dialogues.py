"""The data set of ``standards_dialogues.jsonl``: dialogues over a folder of files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import RowReader, with_digests
from .standards import document_folder, question_of
from .standards_dialogues import Dialogue, path_of, standalone_question

_ROW = TypeAdapter(Dialogue)


def load_dialogue_questions(path: Path) -> Dataset:
    """Read the turns of the dialogues in a JSON Lines file, over the documents in the folder ``standards`` beside it.

    Ids are those of ``standalone_question`` (``en-dialogue-01-turn-2``), whose text is the turn's ``rewrite``.
    ``supporting`` holds sources (paths relative to the folder) in hop order, those found by earlier turns included;
    ``hops`` is the number of quotes. A dialogue that names a source missing from the folder is malformed. Reads every
    file of the folder for the digest.

    Raises:
        LoadingError: The file or folder cannot be read, or the file has no valid row.
    """
    folder, sources = document_folder(Path(path))
    reader = RowReader(file=Path(path))
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
    return replace(
        question_of(alone),
        question=asked.question,
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
