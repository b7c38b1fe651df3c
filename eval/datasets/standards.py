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


def load_standards(path: Path, *, folder: Path | None = None) -> Dataset:
    """Read the questions of a file, over a folder of documents to index.

    ``supporting`` holds sources (paths relative to the folder) in hop order, ``hops`` the number of quotes. A row that
    names a source missing from the folder is malformed. Reads every file of the folder for the digest.

    Args:
        path: The JSON Lines file.
        folder: Folder of the documents; None for ``standards`` beside the file.

    Raises:
        LoadingError: The file or folder cannot be read, or the file has no valid row.
    """
    folder, sources = document_folder(Path(path), folder)
    dataset = load_pooled("standards", Path(path), partial(_pooled, sources=sources))
    return with_digests(replace(dataset, folder=folder, key_field="source"))


def document_folder(path: Path, folder: Path | None) -> tuple[Path, frozenset[str]]:
    """Return the folder of documents of a question file, by default ``standards`` beside it, and its sources.

    Raises:
        LoadingError: The folder does not exist.
    """
    folder = folder or path.parent / "standards"
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder} with the documents of {path.name}. Put it beside the file.")
    return folder, frozenset(file.source for file in scan_files(folder).files)


def _pooled(content: object, *, sources: Collection[str]) -> PooledRow:
    row = _ROW.validate_python(content)
    supporting = tuple(dict.fromkeys(fact.source for fact in row.supporting))
    if missing := [source for source in supporting if source not in sources]:
        raise ValueError(f"supporting: there is no file {missing[0]!r} in the folder")
    question = EvalQuestion(
        id=row.id,
        question=row.question,
        answers=() if row.type == "unanswerable" else unique_answers((row.answer, *row.aliases)),
        lang=row.lang,
        type=row.type,
        hops=len(row.supporting) or None,
        supporting=supporting,
        facts=tuple((fact.source, fact.quote) for fact in row.supporting),
    )
    return PooledRow(question=question)
