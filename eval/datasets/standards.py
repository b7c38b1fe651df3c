"""The data set of ``standards_qa.jsonl``: questions over a folder of files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from ...modules.errors import LoadingError
from ...modules.index.folder_scan import scan_files
from .questions import Dataset, EvalQuestion
from .rows import PooledRow, load_pooled, unique_answers, with_digests
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
