"""Question files in the layout of FlashRAG (Jin et al. 2024, arXiv:2405.13576): questions and answers, no corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from .questions import Dataset, EvalQuestion
from .rows import DatasetRow, Filled, PooledRow, language_tag, load_pooled, unique_answers


def load_flashrag(path: Path) -> Dataset:
    """Read the questions of a FlashRAG file: rows of ``id``, ``question``, ``golden_answers`` and ``metadata``.

    ``type`` comes from the metadata, ``lang`` from the letters of the question. There are neither documents nor
    supporting facts: use the set without retrieval, or over an index of your own.

    Raises:
        LoadingError: The file cannot be read or has no valid row.
    """
    return load_pooled("flashrag", Path(path), _pooled)


class _Row(DatasetRow):
    id: Filled
    question: Filled
    golden_answers: tuple[Filled, ...] = Field(min_length=1)
    metadata: Mapping[str, object] | None = None


def _pooled(content: object) -> PooledRow:
    row = _Row.model_validate(content)
    kind = (row.metadata or {}).get("type")
    question = EvalQuestion(
        id=row.id,
        question=row.question,
        answers=unique_answers(row.golden_answers),
        lang=language_tag(row.question),
        type=kind if isinstance(kind, str) else "",
    )
    return PooledRow(questions=(question,))
