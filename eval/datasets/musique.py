"""MuSiQue, answerable and full (Trivedi et al. 2022, arXiv:2108.00573).

A row has ``id`` (its prefix names the kind: ``2hop__…``, ``3hop1__…``), ``question``, ``answer``, ``answer_aliases``,
``answerable``, ``paragraphs`` (``idx``, ``title``, ``paragraph_text``, ``is_supporting``) and
``question_decomposition`` (one entry per hop, in order, with ``paragraph_support_idx``).
"""

from __future__ import annotations

import re
from pathlib import Path

from .questions import Dataset, EvalQuestion
from .rows import DatasetRow, Filled, PooledRow, Text, content_document, load_pooled, unique_answers

UNANSWERABLE_SUFFIX = "__unanswerable"
"""Suffix of the ids of unanswerable questions, which share their id with an answerable twin in the full set."""


def load_musique(path: Path) -> Dataset:
    """Read the questions and pooled paragraphs of a MuSiQue file: a JSON list or JSON Lines.

    ``type`` is the prefix of the id ("2hop", "3hop1", …), "unanswerable" for rows with ``answerable`` false; ``hops``
    is the number of sub-questions. Supporting paragraphs are in hop order. Questions share the single-hop questions
    that their ids name. An unanswerable question has neither
    answers nor supporting paragraphs, and its id ends with ``UNANSWERABLE_SUFFIX``.

    Caution: MuSiQue makes a question unanswerable by removing a paragraph from its own context. If the answerable twin
    is in the same file, the pooled corpus contains that paragraph, so the question can be answered after all.

    Raises:
        LoadingError: The file cannot be read or has no valid row (the test split has no answers).
    """
    return load_pooled("musique", Path(path), _pooled)


class _Paragraph(DatasetRow):
    idx: int
    title: Filled
    paragraph_text: Text
    is_supporting: bool = False


class _Hop(DatasetRow):
    paragraph_support_idx: int | None = None


class _Row(DatasetRow):
    id: Filled
    question: Filled
    answer: Text | None = None
    answer_aliases: tuple[Text, ...] = ()
    answerable: bool = True
    paragraphs: tuple[_Paragraph, ...]
    question_decomposition: tuple[_Hop, ...] = ()


def _pooled(content: object) -> PooledRow:
    row = _Row.model_validate(content)
    documents = {
        paragraph.idx: content_document(paragraph.title, paragraph.paragraph_text) for paragraph in row.paragraphs
    }
    if len(documents) < len(row.paragraphs):
        raise ValueError("paragraphs: two have the same idx")
    supporting = tuple(dict.fromkeys(documents[idx].key for idx in _supporting(row)))
    question = EvalQuestion(
        id=row.id if row.answerable else row.id + UNANSWERABLE_SUFFIX,
        question=row.question,
        answers=_answers(row),
        type=row.id.partition("__")[0] if row.answerable else "unanswerable",
        hops=_hops(row),
        supporting=supporting,
        distractors=tuple(dict.fromkeys(each.key for each in documents.values() if each.key not in supporting)),
        shares=tuple(row.id.partition("__")[2].split("_")),
    )
    return PooledRow(questions=(question,), documents=tuple(documents.values()))


def _answers(row: _Row) -> tuple[str, ...]:
    if not row.answerable:
        return ()
    if not (row.answer or "").strip():
        raise ValueError("answer: an answerable question needs one")
    return unique_answers((row.answer or "", *row.answer_aliases))


def _hops(row: _Row) -> int | None:
    if row.question_decomposition:
        return len(row.question_decomposition)
    prefix = re.match(r"(\d{1,9})hop", row.id)
    return int(prefix[1]) if prefix else None


def _supporting(row: _Row) -> list[int]:
    """Order the supporting paragraphs by hop, then those that no hop names."""
    if not row.answerable:
        return []
    known = {paragraph.idx for paragraph in row.paragraphs}
    named = [hop.paragraph_support_idx for hop in row.question_decomposition if hop.paragraph_support_idx is not None]
    if strangers := [idx for idx in named if idx not in known]:
        raise ValueError(f"question_decomposition: paragraph_support_idx {strangers[0]} is not the idx of a paragraph")
    return [*named, *(paragraph.idx for paragraph in row.paragraphs if paragraph.is_supporting)]
