"""HotpotQA in the distractor setting (Yang et al. 2018, arXiv:1809.09600), and 2WikiMultihopQA (Ho et al. 2020,
arXiv:2011.01060), which has the same layout.

A row has ``_id`` or ``id``, ``question``, ``answer``, ``type``, ``context`` ``[[title, [sentence]]]`` and
``supporting_facts`` ``[[title, sentence number]]``. Exports may keep the latter two as JSON strings or by columns
(``{"title": [...], "sentences": [...]}``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from .questions import Dataset, EvalQuestion
from .rows import (
    DatasetRow,
    Filled,
    PooledRow,
    RowReader,
    Text,
    content_document,
    load_pooled,
    parse_json,
    unique_answers,
)

logger = logging.getLogger(__name__)

ALIAS_FILE = "id_aliases.json"
"""Alias file beside 2WikiMultihopQA's: JSON Lines of ``Q_id``, ``aliases`` and ``demonyms``."""


def load_hotpotqa(path: Path) -> Dataset:
    """Read the questions and pooled paragraphs of a HotpotQA file: a JSON list or JSON Lines.

    ``type`` is "bridge" or "comparison", ``hops`` the number of supporting paragraphs, ``supporting`` in row order,
    which may differ from hop order. Rows whose supporting paragraphs are missing from their context are malformed;
    fullwiki files have many.

    Raises:
        LoadingError: The file cannot be read or has no valid row (the test split has no answers).
    """
    return load_pooled("hotpotqa", Path(path), partial(_pooled, joined="".join))


def load_2wiki(path: Path) -> Dataset:
    """Read the questions and pooled paragraphs of a 2WikiMultihopQA file: a JSON list or JSON Lines.

    Like ``load_hotpotqa``; ``type`` is "comparison", "inference", "compositional" or "bridge_comparison". Evidence
    triples are ignored. As in the official evaluation, aliases and demonyms of an answer come from ``id_aliases.json``
    beside the file, by the row's ``answer_id``; without that file a warning is logged and only the answer counts.

    Raises:
        LoadingError: A file cannot be read or has no valid row (the test split has no answers).
    """
    aliases = _read_aliases(Path(path).with_name(ALIAS_FILE))
    return load_pooled("2wiki", Path(path), partial(_pooled, joined=_joined_by_spaces, aliases=aliases))


def _read_aliases(file: Path) -> Mapping[str, Sequence[str]]:
    if not file.exists():
        logger.warning("There is no %s, so aliases of answers do not count as right. Put it beside the data.", file)
        return {}
    reader = RowReader(file=file)
    known = list(reader.rows(_Aliases.model_validate, key=lambda row: row.id))
    reader.checked()
    return {row.id: (*row.aliases, *row.demonyms) for row in known}


def _pairs(value: object) -> object:
    """Convert any of the three layouts to ``[[title, other]]``; leave other values to the validation."""
    if isinstance(value, str):
        value = parse_json(value)
    if isinstance(value, dict) and "title" in value and len(value) == 2:
        titles = value["title"]
        [others] = (column for name, column in value.items() if name != "title")
        if isinstance(titles, list) and isinstance(others, list):
            return list(zip(titles, others, strict=True))
    return value


class _Aliases(DatasetRow):
    id: Filled = Field(validation_alias=AliasChoices("Q_id", "id"))
    aliases: tuple[Text, ...] = ()
    demonyms: tuple[Text, ...] = ()


class _Row(DatasetRow):
    id: Filled = Field(validation_alias=AliasChoices("_id", "id"))
    question: Filled
    answer: Filled
    answer_id: Text | None = None
    type: Text | None = None
    context: Annotated[tuple[tuple[Filled, tuple[Text, ...]], ...], BeforeValidator(_pairs)]
    supporting_facts: Annotated[tuple[tuple[Filled, int], ...], BeforeValidator(_pairs)] = Field(min_length=1)


def _pooled(
    content: object,
    *,
    joined: Callable[[Sequence[str]], str],
    aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> PooledRow:
    row = _Row.model_validate(content)
    documents = tuple(content_document(title, joined(sentences)) for title, sentences in row.context)
    places = [_supporting_place(row, fact) for fact in row.supporting_facts]
    facts = [
        (documents[place].key, row.context[place][1][sentence])
        for place, (_, sentence) in zip(places, row.supporting_facts, strict=True)
        if 0 <= sentence < len(row.context[place][1])
    ]
    supporting = tuple(dict.fromkeys(documents[place].key for place in places))
    question = EvalQuestion(
        id=row.id,
        question=row.question,
        answers=unique_answers((row.answer, *aliases.get(row.answer_id or "", ()))),
        type=row.type or "",
        hops=len(supporting),
        supporting=supporting,
        distractors=tuple(dict.fromkeys(each.key for each in documents if each.key not in supporting)),
        facts=tuple((key, words) for key, words in facts if words.strip()),
    )
    return PooledRow(questions=(question,), documents=documents)


def _supporting_place(row: _Row, fact: tuple[str, int]) -> int:
    title, sentence = fact
    titled = [
        (sentence < len(sentences), place) for place, (name, sentences) in enumerate(row.context) if name == title
    ]
    if not titled:
        raise ValueError(f"supporting_facts: no paragraph of the context has the title {title!r}")
    # Of two paragraphs with one title, take the first with that sentence; numbers beyond the last sentence occur.
    return max(titled, key=lambda candidate: candidate[0])[1]


def _joined_by_spaces(sentences: Sequence[str]) -> str:
    # HotpotQA's sentences begin with a space; those of 2WikiMultihopQA are stripped.
    return " ".join(sentence.strip() for sentence in sentences)
