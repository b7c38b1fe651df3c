"""Data sets in the layout of BEIR (Thakur et al. 2021, arXiv:2104.08663): corpus, queries and relevance judgements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import AliasChoices, Field

from ...modules.errors import LoadingError
from .questions import CorpusDocument, Dataset, EvalQuestion
from .rows import DatasetRow, Faults, Filled, RowReader, Text, language_tag, titled_text, unique_answers, with_digests

DEFAULT_SPLIT = "test"

T = TypeVar("T")


def load_beir(folder: Path, *, split: str | None = None) -> Dataset:
    """Read the queries that a split judges, in the order of ``queries.jsonl``, and the whole corpus.

    Keys are the corpus's ids. ``supporting`` holds the documents judged above 0, best first. Answers come from the
    query's metadata (as in BEIR's HotpotQA); without them ``answers_known`` is False. The corpus is held in memory.

    Reasons in ``malformed`` begin with the name of one of three files. A judgement of an unknown query or document is
    a malformed row of the judgements.

    Args:
        folder: Holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` (query, document, score).
        split: The split; None for "test".

    Raises:
        LoadingError: One of the three files cannot be read or has no valid row.
    """
    folder = Path(folder)
    qrels = _qrels_file(folder, split or DEFAULT_SPLIT)
    corpus, corpus_faults = _by_key(folder / "corpus.jsonl", _read_document, key=lambda document: document.key)
    queries, query_faults = _by_key(folder / "queries.jsonl", _Query.model_validate, key=lambda query: query.id)
    judgements, qrels_faults = _judgements(qrels, queries=queries, corpus=corpus)
    return with_digests(
        Dataset(
            name="beir",
            questions=tuple(
                _question(query, judgements[query.id]) for query in queries.values() if query.id in judgements
            ),
            documents=tuple(corpus.values()),
            malformed=(*corpus_faults, *query_faults, *qrels_faults),
        )
    )


class _Document(DatasetRow):
    id: Filled = Field(validation_alias=AliasChoices("_id", "id"))
    title: Text | None = None
    text: Text | None = None


class _Query(DatasetRow):
    id: Filled = Field(validation_alias=AliasChoices("_id", "id"))
    text: Filled
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class _Judgement:
    query: str
    document: str
    score: float


def _qrels_file(folder: Path, split: str) -> Path:
    splits = sorted(file.stem for file in (folder / "qrels").glob("*.tsv"))
    if split not in splits:
        raise LoadingError(
            f"There is no split {split!r} in {folder / 'qrels'}. "
            + (f"Allowed: {', '.join(splits)}." if splits else "A BEIR folder has qrels/<split>.tsv: add one.")
        )
    return folder / "qrels" / f"{split}.tsv"


def _by_key(file: Path, read: Callable[[object], T], *, key: Callable[[T], str]) -> tuple[dict[str, T], Faults]:
    reader = RowReader(file=file)
    return {key(row): row for row in reader.rows(read, key=key)}, reader.named_faults()


def _read_document(content: object) -> CorpusDocument:
    row = _Document.model_validate(content)
    title, body = (row.title or "").strip(), row.text or ""
    if not titled_text(title, body).strip():
        raise ValueError("it has neither a title nor a text")
    return CorpusDocument(key=row.id, text=titled_text(title, body), title=title)


def _judgements(
    file: Path, *, queries: Collection[str], corpus: Collection[str]
) -> tuple[dict[str, list[_Judgement]], Faults]:
    reader = RowReader(file=file)

    def read(line: str) -> _Judgement | None:
        judgement = _read_judgement(line)
        if judgement and judgement.query not in queries:
            raise ValueError(f"there is no query {judgement.query!r} in queries.jsonl")
        if judgement and judgement.document not in corpus:
            raise ValueError(f"there is no document {judgement.document!r} in corpus.jsonl")
        return judgement

    by_query: dict[str, list[_Judgement]] = {}
    for judgement in reader.lines(read, key=lambda judgement: judgement and (judgement.query, judgement.document)):
        if judgement:
            by_query.setdefault(judgement.query, []).append(judgement)
    faults = reader.named_faults()
    if not by_query:
        first = f" Row {faults[0][0]} of it: {faults[0][1]}." if faults else ""
        raise LoadingError(f"{file} judges no document of the corpus; name a split that does.{first}")
    return by_query, faults


def _read_judgement(line: str) -> _Judgement | None:
    """Parse a judgement; None for the heading. TREC's four columns, the second unused, are valid too."""
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) not in (3, 4):
        raise ValueError(f"it has {len(columns)} columns instead of query, document and score, separated by tabs")
    query, *_, document, score = columns
    if score.casefold() == "score":
        return None
    return _Judgement(query=query, document=document, score=float(score))


def _question(query: _Query, judgements: list[_Judgement]) -> EvalQuestion:
    ranked = sorted((judged for judged in judgements if judged.score > 0), key=lambda judged: -judged.score)
    answers = _answers(query.metadata or {})
    return EvalQuestion(
        id=query.id,
        question=query.text,
        answers=answers,
        answers_known=bool(answers),
        lang=language_tag(query.text),
        supporting=tuple(judged.document for judged in ranked),
    )


def _answers(metadata: Mapping[str, object]) -> tuple[str, ...]:
    several = metadata.get("answers")
    candidates = [metadata.get("answer"), *(several if isinstance(several, list) else [])]
    return unique_answers(answer for answer in candidates if isinstance(answer, str))
