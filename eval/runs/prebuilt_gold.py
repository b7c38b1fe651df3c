"""Whether the documents that questions of one's own name can be found in a prebuilt index."""

from __future__ import annotations

from collections.abc import Collection

from ...modules.errors import SettingsError
from ...modules.prebuilt.corpus import Corpus, Passage
from ..datasets.questions import Dataset

_MOST_READ = 20_000
"""Lines that are read to look for a title; a longer corpus is only asked whether names are the ids of their lines."""
_MOST_ASKED = 20


def refuse_unknown_gold(dataset: Dataset, corpus: Corpus) -> None:
    """Check that some document which ``supporting`` names may be in the corpus, whose documents are known by titles.

    Otherwise every recall would be 0, as if the search had failed. A corpus of up to 20,000 lines is read, which takes
    a fifth of a second; of a longer one only names that are numbers are looked at, the usual ids.

    Raises:
        SettingsError: None of the names is a title, or the id of a passage without a title.
    """
    names = dict.fromkeys(key for question in dataset.questions for key in question.supporting)
    if not names or not _are_unknown(names, corpus):
        return
    first = corpus.passage(0)
    raise SettingsError(
        f"No document that the questions name as supporting, such as {next(iter(names))!r}, is a title of "
        f"{corpus.state.path.name}, so that every recall would be 0. Name titles, such as {_name_of(first)!r}, or take "
        "the column of supporting documents out."
    )


def _are_unknown(names: Collection[str], corpus: Corpus) -> bool:
    if len(corpus) <= _MOST_READ:
        return not any(_name_of(corpus.passage(row)) in names for row in range(len(corpus)))
    return all(_is_id(name, corpus) for name in list(names)[:_MOST_ASKED])


def _is_id(name: str, corpus: Corpus) -> bool:
    """Whether a name is the number of a line, counted from 0 or 1, that has it for an id and another title."""
    rows = (int(name), int(name) - 1) if name.isdecimal() and name.isascii() and len(name) < 19 else ()
    found = (corpus.passage(row) for row in rows if 0 <= row < len(corpus))
    return any(passage.id == name and _name_of(passage) != name for passage in found)


def _name_of(passage: Passage) -> str:
    return passage.title or passage.id
