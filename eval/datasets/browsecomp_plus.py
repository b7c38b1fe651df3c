"""BrowseComp-Plus (Chen et al. 2025, arXiv:2508.06600): questions over a fixed corpus of web pages.

Its authors ask that no question or answer appears online in plain text.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from .questions import CorpusDocument, Dataset, EvalQuestion
from .rows import DatasetRow, Filled, RowReader, Text, language_tag, with_digests

FORMAT = "browsecomp_plus"
QUERIES, CORPUS = "browsecomp_plus_decrypted.jsonl", "corpus.jsonl"
_HEADER = "---"
_MOST_OF_HEADER = 2_000


def load_browsecomp_plus(folder: Path) -> Dataset:
    """Read the questions in file order, and the whole corpus, which is held in memory (100,195 pages of some 30 kB).

    Keys are the corpus's ids. ``supporting`` holds the pages of ``evidence_docs``, against which the benchmark computes
    recall; the pages of ``gold_docs``, which state the answer, are among them. Reasons in ``malformed`` begin with the
    name of one of two files. A question whose evidence the corpus lacks is malformed.

    Args:
        folder: Holds ``browsecomp_plus_decrypted.jsonl``, which the benchmark's own script writes (``query_id``,
            ``query``, ``answer``, ``evidence_docs`` with ``docid``), and ``corpus.jsonl`` (``docid``, ``text``,
            ``url``), its corpus as JSON Lines.

    Raises:
        LoadingError: One of the two files cannot be read or has no valid row.
    """
    pages = RowReader(file=Path(folder) / CORPUS)
    documents = tuple(pages.rows(_read_page, key=lambda page: page.key))
    page_faults = pages.named_faults()
    known = {document.key for document in documents}
    queries = RowReader(file=Path(folder) / QUERIES)
    questions = tuple(queries.rows(lambda row: _read_question(row, known), key=lambda question: question.id))
    faults = (*page_faults, *queries.named_faults())
    return with_digests(Dataset(name=FORMAT, questions=questions, documents=documents, malformed=faults))


class _Page(DatasetRow):
    docid: Filled
    text: Filled
    url: Text = ""


class _Evidence(DatasetRow):
    docid: Filled


class _Query(DatasetRow):
    query_id: Filled
    query: Filled
    answer: Filled
    evidence_docs: list[_Evidence]


def _read_page(content: object) -> CorpusDocument:
    page = _Page.model_validate(content)
    metadata = {"url": page.url} if page.url else {}
    return CorpusDocument(key=page.docid, text=page.text, title=_title(page.text), metadata=metadata)


def _title(text: str) -> str:
    """Return the title in a page's header, which stands between two lines of three dashes; ``""`` without one."""
    first, *lines = text[:_MOST_OF_HEADER].lstrip().splitlines() or [""]
    for line in lines if first.strip() == _HEADER else ():
        name, colon, value = line.partition(":")
        if name.strip() == _HEADER:
            break
        if colon and name.strip().casefold() == "title":
            return value.strip().strip("\"'")
    return ""


def _read_question(content: object, known: Collection[str]) -> EvalQuestion:
    row = _Query.model_validate(content)
    keys = tuple(dict.fromkeys(each.docid for each in row.evidence_docs))
    if missing := next((key for key in keys if key not in known), None):
        raise ValueError(f"there is no document {missing!r} in {CORPUS}")
    return EvalQuestion(
        id=row.query_id, question=row.query, answers=(row.answer,), lang=language_tag(row.query), supporting=keys
    )
