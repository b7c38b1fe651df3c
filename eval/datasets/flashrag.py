"""Question files in the layout of FlashRAG (Jin et al. 2024, arXiv:2405.13576): questions and answers, no corpus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from .questions import Dataset, EvalQuestion
from .rows import DatasetRow, Filled, PooledRow, Text, language_tag, load_pooled, unique_answers


def load_flashrag(path: Path, *, by_title: bool = False) -> Dataset:
    """Read the questions of a FlashRAG file: rows of ``id``, ``question``, ``golden_answers`` and ``metadata``.

    ``type`` comes from the metadata, ``lang`` from the letters of the question. There are no documents: use the set
    without retrieval, or over an index of your own or a prebuilt one. With ``by_title`` the titles of supporting facts
    in the metadata, which the multi-hop sets have, are the keys of gold documents.

    Raises:
        LoadingError: The file cannot be read or has no valid row.
    """
    return load_pooled("flashrag", Path(path), partial(_pooled, by_title=by_title))


class _Row(DatasetRow):
    id: Filled
    question: Filled
    golden_answers: tuple[Filled, ...] = Field(min_length=1)
    metadata: Mapping[str, object] | None = None


class _Facts(BaseModel):
    title: tuple[Text, ...]


class _Supported(BaseModel):
    supporting_facts: _Facts | tuple[tuple[Text, int], ...]


def _supporting(metadata: object) -> tuple[str, ...]:
    """Return the titles of supporting facts; empty where they have another form, as each set has its own metadata."""
    try:
        facts = _Supported.model_validate(metadata).supporting_facts
    except ValidationError:
        return ()
    titles = facts.title if isinstance(facts, _Facts) else (title for title, _ in facts)
    return tuple(dict.fromkeys(title for title in titles if title.strip()))


def _pooled(content: object, *, by_title: bool) -> PooledRow:
    row = _Row.model_validate(content)
    supporting = _supporting(row.metadata) if by_title else ()
    kind = (row.metadata or {}).get("type")
    question = EvalQuestion(
        id=row.id,
        question=row.question,
        answers=unique_answers(row.golden_answers),
        lang=language_tag(row.question),
        type=kind if isinstance(kind, str) else "",
        hops=len(supporting) or None,
        supporting=supporting,
    )
    return PooledRow(questions=(question,))
