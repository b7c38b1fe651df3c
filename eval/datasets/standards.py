"""The data sets of ``standards_qa.jsonl`` and ``standards_dialogues.jsonl``: questions over a folder of files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from ...modules.errors import LoadingError
from ...modules.index.folder_scan import scan_files
from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import PooledRow, RowReader, load_pooled, unique_answers, with_digests
from .standards_dialogues import Dialogue, path_of, standalone_question
from .standards_qa import Question

_ROW = TypeAdapter(Question)


def load_standards(path: Path) -> Dataset:
    """Read the questions of a JSON Lines file, over the documents in the folder ``standards`` beside it.

    ``supporting`` holds sources (paths relative to the folder) in hop order, ``hops`` the number of quotes. A row that
    names a source missing from the folder is malformed. Reads every file of the folder for the digest.

    Raises:
        LoadingError: The file or folder cannot be read, or the file has no valid row.
    """
    folder, sources = document_folder(Path(path))
    dataset = load_pooled("standards", Path(path), partial(_pooled, sources=sources))
    return with_digests(replace(dataset, folder=folder, key_field="source"))


def document_folder(path: Path) -> tuple[Path, frozenset[str]]:
    """Return the folder ``standards`` beside a question file, and the sources in it.

    Raises:
        LoadingError: The folder does not exist.
    """
    folder = path.parent / "standards"
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder} with the documents of {path.name}. Put it beside the file.")
    return folder, frozenset(file.source for file in scan_files(folder).files)


def question_of(row: Question) -> EvalQuestion:
    """Convert a row to the common form of data sets."""
    return EvalQuestion(
        id=row.id,
        question=row.question,
        answers=() if row.type == "unanswerable" else unique_answers((row.answer, *row.aliases)),
        lang=row.lang,
        type=row.type,
        hops=len(row.supporting) or None,
        supporting=tuple(dict.fromkeys(fact.source for fact in row.supporting)),
        facts=tuple((fact.source, fact.quote) for fact in row.supporting),
    )


def _pooled(content: object, *, sources: Collection[str]) -> PooledRow:
    question = question_of(_ROW.validate_python(content))
    if missing := [source for source in question.supporting if source not in sources]:
        raise ValueError(f"supporting: there is no file {missing[0]!r} in the folder")
    return PooledRow(questions=(question,))


_DIALOGUE = TypeAdapter(Dialogue)


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
    dialogue = _DIALOGUE.validate_python(content)
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
