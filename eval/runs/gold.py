"""The gold documents of questions: as judges without a model take them, and whether what is searched has them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from ...modules.errors import SettingsError
from ...modules.index.index import Index
from ...modules.judge.gold import GoldQuestion, GoldTable, Need
from ...modules.prebuilt.corpus import Corpus, CorpusLine
from ..datasets.questions import Dataset, EvalQuestion
from ..rows.cautions import gold_words

logger = logging.getLogger(__name__)

_MOST_READ = 20_000
"""Lines that are read to look for a title; a longer corpus is only asked whether names are the ids of their lines."""
_MOST_ASKED = 20


def gold_table(dataset: Dataset) -> GoldTable:
    """Return the needs of each question with gold documents, in the order of ``supporting``.

    A file of a folder has its name without the ending for a title, a document of another corpus its key; of these,
    those that some question names are known.

    Raises:
        SettingsError: No question has gold documents in the corpus.
    """
    titles = {document.key: document.title for document in dataset.documents} or _file_titles(dataset)
    documents: defaultdict[str, set[str]] = defaultdict(set)
    for key, title in titles.items():
        documents[title].add(key)
    questions = [
        GoldQuestion(
            question=question.question,
            needs=tuple(_needs(question, titles)),
            distractors=tuple(dict.fromkeys(titles[key] for key in question.distractors if titles.get(key))),
        )
        for question in dataset.questions
        if question.supporting
    ]
    if not any(each.needs for each in questions):
        raise SettingsError(
            f"No question of the data set {dataset.name!r} has gold documents, which the judge noisy needs. Give one "
            "that has: hotpotqa, 2wiki, musique, beir, standards, or your own with supporting documents."
        )
    return GoldTable(questions, documents=documents, key_field=dataset.key_field)


def _needs(question: EvalQuestion, titles: Mapping[str, str]) -> Iterator[Need]:
    for key in question.supporting:
        keys = question.standing_for(key)
        if known := min((each for each in keys if each in titles), key=lambda each: (each != key, each), default=None):
            yield Need(title=titles[known] or known, keys=keys)


def _file_titles(dataset: Dataset) -> dict[str, str]:
    keys = (key for question in dataset.questions for key in (*question.gold, *question.distractors))
    if dataset.folder is None:
        return {key: key for key in keys}
    return {key: PurePosixPath(key).stem for key in keys}


def check_gold_known(dataset: Dataset, corpus: Corpus) -> None:
    """Check that some document which ``supporting`` names may be in the corpus, whose documents are known by titles.

    Otherwise every recall would be 0, as if the search had failed. A corpus of up to 20,000 lines is read, which takes
    a fifth of a second; of a longer one only names that are numbers are looked at, the usual ids.

    Raises:
        SettingsError: None of the names is a title, or the id of a passage without a title.
    """
    names = dict.fromkeys(
        key for question in dataset.questions for first in question.supporting for key in question.standing_for(first)
    )
    if not names or not _are_unknown(names, corpus):
        return
    first = corpus.passage(0)
    raise SettingsError(
        f"No document that the questions name as supporting, such as {next(iter(names))!r}, is a title of "
        f"{corpus.state.path.name}, so that every recall would be 0. Name titles, such as {_name_of(first)!r}, or take "
        "the column of supporting documents out."
    )


def gold_in(dataset: Dataset, index: Index) -> dict[str, object]:
    """Count the gold documents of a data set, and those of them that a collection lacks; log a warning on these."""
    needed = {key: question.standing_for(key) for question in dataset.questions for key in question.supporting}
    known = index.known_values(dataset.key_field, sorted(set[str]().union(*needed.values())))
    missing = sorted(key for key, keys in needed.items() if keys.isdisjoint(known))
    found = {"documents": len(needed), "missing": len(missing), "field": dataset.key_field, "example": missing[:1]}
    if missing:
        logger.warning("%s", gold_words(found))
    return found


def without_gold(dataset: Dataset) -> Dataset:
    """Return a data set whose gold documents are unknown, so that recall has no figure; its digests stay."""
    questions = (
        replace(question, supporting=(), alternatives=(), distractors=(), facts=()) for question in dataset.questions
    )
    return replace(dataset, questions=tuple(questions))


def _are_unknown(names: Collection[str], corpus: Corpus) -> bool:
    if len(corpus) <= _MOST_READ:
        return not any(_name_of(corpus.passage(row)) in names for row in range(len(corpus)))
    return all(_is_id(name, corpus) for name in list(names)[:_MOST_ASKED])


def _is_id(name: str, corpus: Corpus) -> bool:
    """Whether a name is the number of a line, counted from 0 or 1, that has it for an id and another title."""
    rows = (int(name), int(name) - 1) if name.isdecimal() and name.isascii() and len(name) < 19 else ()
    found = (corpus.passage(row) for row in rows if 0 <= row < len(corpus))
    return any(passage.id == name and _name_of(passage) != name for passage in found)


def _name_of(passage: CorpusLine) -> str:
    return passage.title or passage.id
