"""Topics of the TREC Conversational Assistance Track (Dalton et al. 2020, arXiv:2003.13624).

The official layout is a list of topics: ``number``, ``title``, ``turn`` ``[{number, raw_utterance}]``. Rewrites by hand
are in a table ``*resolved*.tsv`` beside it (``31_2``, a tab, the question) or, from 2020 on, in the turn itself
(``manual_rewritten_utterance``).

The other layout has one row per turn: ``id``, ``topic_id``, ``turn``, ``history`` ``[{role, text}]``, ``question`` and
``rewrite``. A file uses one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import Field

from ...modules.errors import LoadingError
from .dialogue_turns import exchanges, without_branches
from .questions import Dataset, DialogueTurn, EvalQuestion
from .rows import DatasetRow, Faults, Filled, RowReader, Text, language_tag, with_digests


def load_cast(path: Path) -> Dataset:
    """Read the turns of a CAsT file, or of the one ``*topics*.json`` in a folder, topic by topic.

    Ids are those of TREC: topic and turn (``31_2``). A topic with a malformed turn is left out. The set has neither
    gold answers nor documents (TREC's collections are too large), so it measures rewriting; answers in ``history`` are
    empty unless the file has them. If several tables rewrite a turn, the first by name counts; reasons of their
    malformed rows begin with the table's name.

    Raises:
        LoadingError: A file cannot be read or has no valid row, or the folder has no topics file, or several.
    """
    file = _topics_file(Path(path))
    rewrites, table_faults = _rewrites(file.parent)
    reader = RowReader(file=file)
    rows = reader.rows(partial(_read, rewrites=rewrites), key=lambda questions: questions[0].id)
    questions = without_branches(question for row in rows for question in row)
    return with_digests(Dataset(name="cast", questions=questions, malformed=(*reader.checked(), *table_faults)))


class _Message(DatasetRow):
    role: Filled
    text: Text


class _Turn(DatasetRow):
    id: Filled
    topic_id: Filled
    turn: int = Field(ge=1)
    history: tuple[_Message, ...] = ()
    question: Filled
    rewrite: Text | None = None


class _Utterance(DatasetRow):
    number: int = Field(ge=1)
    raw_utterance: Filled
    manual_rewritten_utterance: Text | None = None


class _Topic(DatasetRow):
    number: Filled
    turn: tuple[_Utterance, ...] = Field(min_length=1)


def _topics_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = sorted(path.glob("*topics*.json"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise LoadingError(f"{path} must hold one file *topics*.json, but has {found}. Name the file itself.")
    return files[0]


def _rewrites(folder: Path) -> tuple[dict[str, str], Faults]:
    rewrites: dict[str, str] = {}
    faults: Faults = []
    for table in sorted(folder.glob("*resolved*.tsv")):
        reader = RowReader(file=table)
        for turn, rewrite in reader.lines(_read_rewrite, key=lambda pair: pair[0]):
            rewrites.setdefault(turn, rewrite)
        faults += reader.named_faults()
    return rewrites, faults


def _read_rewrite(line: str) -> tuple[str, str]:
    turn, tab, rewrite = line.partition("\t")
    if not (turn.strip() and tab and rewrite.strip()):
        raise ValueError("it must be the id of a turn, a tab and a question")
    return turn.strip(), rewrite.strip()


def _read(content: object, *, rewrites: Mapping[str, str]) -> tuple[EvalQuestion, ...]:
    if isinstance(content, dict) and isinstance(content.get("turn"), list):
        return _topic(_Topic.model_validate(content), rewrites)
    return (_turn(_Turn.model_validate(content), rewrites),)


def _topic(topic: _Topic, rewrites: Mapping[str, str]) -> tuple[EvalQuestion, ...]:
    if [turn.number for turn in topic.turn] != list(range(1, len(topic.turn) + 1)):
        raise ValueError("turn: the numbers of the turns must be 1, 2, 3, …")
    asked = [turn.raw_utterance for turn in topic.turn]
    return tuple(
        _question(
            f"{topic.number}_{turn.number}",
            turn.raw_utterance,
            DialogueTurn(
                dialogue_id=topic.number,
                number=turn.number,
                history=tuple((question, "") for question in asked[: turn.number - 1]),
                rewrite=(turn.manual_rewritten_utterance or "").strip(),
            ),
            rewrites,
        )
        for turn in topic.turn
    )


def _turn(row: _Turn, rewrites: Mapping[str, str]) -> EvalQuestion:
    history = exchanges((message.role, message.text) for message in row.history)
    if len(history) != row.turn - 1:
        raise ValueError(f"history: turn {row.turn} needs {row.turn - 1} earlier questions, got {len(history)}")
    rewrite = (row.rewrite or "").strip()
    turn = DialogueTurn(dialogue_id=row.topic_id, number=row.turn, history=history, rewrite=rewrite)
    return _question(row.id, row.question, turn, rewrites)


def _question(identity: str, question: str, turn: DialogueTurn, rewrites: Mapping[str, str]) -> EvalQuestion:
    if not turn.rewrite and identity in rewrites:
        turn = replace(turn, rewrite=rewrites[identity])
    return EvalQuestion(
        id=identity, question=question, answers=(), answers_known=False, lang=language_tag(question), turn=turn
    )
