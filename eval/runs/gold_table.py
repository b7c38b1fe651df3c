"""The gold documents of a data set, as judges without a model take them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

from ...modules.errors import SettingsError
from ...modules.judge.gold import GoldQuestion, GoldTable, Need
from ..datasets.questions import Dataset


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
            needs=tuple(
                Need(title=titles[key] or key, keys=frozenset({key})) for key in question.supporting if key in titles
            ),
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


def _file_titles(dataset: Dataset) -> dict[str, str]:
    keys = (key for question in dataset.questions for key in (*question.supporting, *question.distractors))
    if dataset.folder is None:
        return {key: key for key in keys}
    return {key: PurePosixPath(key).stem for key in keys}
