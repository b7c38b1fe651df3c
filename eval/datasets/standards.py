"""``standards_qa.jsonl``: questions over a folder of files, with the quotes that answer them (see ``datasets``)."""

from __future__ import annotations

from collections.abc import Collection
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
    """Questions of a file, over a folder of documents that is indexed and chunked like any other.

    ``supporting`` names sources (paths relative to the folder) in hop order, ``hops`` counts the quotes. A row that
    names a source which is not in the folder is malformed. Reads every file of the folder for the digest.

    Args:
        path: The JSON Lines file.
        folder: Folder of the documents; None for ``standards`` beside the file.

    Raises:
        LoadingError: File or folder cannot be read, or the file has no good row.
    """
    path = Path(path)
    folder = folder or path.parent / "standards"
    if not folder.is_dir():
        raise LoadingError(f"There is no folder {folder} with the documents of {path.name}. Put it beside the file.")
    sources = frozenset(file.source for file in scan_files(folder).files)
    dataset = load_pooled("standards", path, partial(_pooled, sources=sources))
    return with_digests(
        Dataset(
            name=dataset.name,
            questions=dataset.questions,
            folder=folder,
            key_field="source",
            malformed=dataset.malformed,
        )
    )


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
