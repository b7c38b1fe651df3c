"""MTRAG (Katsis et al. 2025, TACL, doi:10.1162/TACL.a.19): dialogues over four corpora, as generation tasks.

A task is a line: ``task_id`` (``<conversation>::<turn>``, or with ``<::>``), ``conversation_id``, ``turn``, ``input``
``[{speaker, text}]`` up to the question, ``targets`` ``[{text}]``, ``contexts`` ``[{document_id, title, text}]``,
``answerability`` and ``collection`` (or both capitalised). A context is gold if ``reference`` is true or ``feedback``
marks it as relevant.

This is the layout of ``generation_tasks/*.jsonl`` in https://github.com/IBM/mt-rag-benchmark. Relevance judgements
(``retrieval_tasks/**/qrels``), ``conversations.json`` and zipped corpora are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import AliasChoices, Field

from ...modules.errors import LoadingError, SettingsError
from .dialogue_turns import exchanges, without_branches
from .questions import CorpusDocument, Dataset, DialogueTurn, EvalQuestion
from .rows import (
    DatasetRow,
    Faults,
    Filled,
    PooledRow,
    RowReader,
    Text,
    language_tag,
    pooled,
    titled_text,
    unique_answers,
)

TASKS = Path("generation_tasks", "reference.jsonl")
"""Path of the tasks in a folder of the benchmark."""

_DOMAINS = {"ibmcloud": "cloud"}
"""Domain names by the name that collections use, where they differ."""
_SPEAKER = "|user|:"
"""Prefix of the questions in the rewrite tables."""


def load_mtrag(path: Path, *, domain: str | None = None) -> Dataset:
    """Read the tasks of a file, or of the benchmark's folder or the one that holds ``generation_tasks``.

    Ids are those of the tasks. In a folder, tasks come from ``generation_tasks/reference.jsonl``, rewrites from
    ``retrieval_tasks/<domain>/<domain>_rewrite.jsonl``, and corpora from ``corpora/passage_level/<domain>.jsonl`` if
    unzipped; they are held in memory. Contexts that no corpus has are added to the documents. Without corpora the
    documents are the contexts alone, which makes retrieval easy.

    The benchmark does not say who wrote the rewrites, and some change the question, so a score against them measures
    agreement with an unknown author.

    ``type`` is the answerability in lower case. Answers are the targets of questions that can be answered at least in
    part; unanswerable questions have none. Other questions ("conversational") have ``answers_known`` False. A turn
    whose predecessor is not among the tasks has no parent but a full history.

    Reasons in ``malformed`` begin with the file's name, except those of the tasks.

    Args:
        path: File or folder.
        domain: "clapnq", "cloud", "fiqa" or "govt" for its tasks and corpus alone; None for all.

    Raises:
        SettingsError: No task has that domain.
        LoadingError: A file cannot be read or has no valid row, or the folder has no tasks.
    """
    path = Path(path)
    folder = _folder_of_tasks(path) if path.is_dir() else None
    reader = RowReader(file=folder / TASKS if folder else path)
    rewrites, faults = _rewrites(folder) if folder else ({}, [])
    everything = list(reader.rows(partial(_task, rewrites=rewrites), key=lambda task: task.questions[0].id))
    faults = [*reader.checked(), *faults]
    tasks = _of_domain(everything, domain)
    corpora, corpus_faults = _corpora(folder, dict.fromkeys(task.domain for task in tasks)) if folder else ({}, [])
    corpus = PooledRow(questions=(), documents=tuple(corpora.values()))
    return pooled("mtrag", [corpus, *tasks], malformed=[*faults, *corpus_faults], order=without_branches)


@dataclass(frozen=True, kw_only=True)
class _Task(PooledRow):
    domain: str


class _Marked(DatasetRow):
    value: Text = ""


class _Feedback(DatasetRow):
    relevant: Mapping[str, _Marked] = {}


class _Context(DatasetRow):
    document_id: Filled
    title: Text = ""
    text: Filled
    reference: bool = False
    feedback: _Feedback | None = None

    @property
    def is_reference(self) -> bool:
        """Whether the context is gold."""
        marks = self.feedback.relevant.values() if self.feedback else ()
        return self.reference or any(mark.value == "yes" for mark in marks)


class _Message(DatasetRow):
    speaker: Filled
    text: Filled


class _Target(DatasetRow):
    text: Text


class _Row(DatasetRow):
    task_id: Filled
    conversation_id: Filled
    turn: int = Field(ge=1)
    input: tuple[_Message, ...] = Field(min_length=1)
    targets: tuple[_Target, ...] = ()
    contexts: tuple[_Context, ...] = ()
    answerability: tuple[Text, ...] = Field(default=(), validation_alias=AliasChoices("answerability", "Answerability"))
    collection: Text = Field(default="", validation_alias=AliasChoices("collection", "Collection"))
    rewritten_query: Text = ""


class _Passage(DatasetRow):
    id: Filled = Field(validation_alias=AliasChoices("_id", "id", "document_id"))
    title: Text = ""
    text: Filled


def _folder_of_tasks(folder: Path) -> Path:
    for name in ("", "mtrag-human", "human"):
        if (folder / name / TASKS).is_file():
            return folder / name
    raise LoadingError(f"{folder} has no {TASKS.as_posix()}. Name the benchmark's folder, or a file of tasks.")


def _of_domain(tasks: list[_Task], domain: str | None) -> list[_Task]:
    chosen = [task for task in tasks if domain in (None, task.domain)]
    if not chosen:
        known = ", ".join(sorted({task.domain for task in tasks if task.domain}))
        raise SettingsError(
            f"split={domain!r} is not a domain of these tasks. Allowed: {known or 'none, they name none'}."
        )
    return chosen


def _rewrites(folder: Path) -> tuple[dict[str, str], Faults]:
    rewrites: dict[str, str] = {}
    faults: Faults = []
    for file in sorted(folder.glob("retrieval_tasks/*/*_rewrite.jsonl")):
        reader = RowReader(file=file)
        for passage in reader.rows(_Passage.model_validate, key=lambda passage: passage.id):
            rewrites[_task_name(passage.id)] = passage.text.removeprefix(_SPEAKER).strip()
        faults += reader.named_faults()
    return rewrites, faults


def _corpora(folder: Path, domains: Iterable[str]) -> tuple[dict[str, CorpusDocument], Faults]:
    """Read the corpora of the domains that are on disk, by key."""
    documents: dict[str, CorpusDocument] = {}
    faults: Faults = []
    for domain in domains:
        places = [at / "corpora" / "passage_level" / f"{domain}.jsonl" for at in (folder, folder.parent)]
        for file in [place for place in places if place.is_file()][:1]:
            reader = RowReader(file=file)
            for passage in reader.rows(_Passage.model_validate, key=lambda passage: passage.id):
                documents[passage.id] = _document(passage.id, passage.title, passage.text)
            faults += reader.named_faults()
    return documents, faults


def _task(content: object, *, rewrites: Mapping[str, str]) -> _Task:
    row = _Row.model_validate(content)
    *history, (asked, reply) = exchanges((message.speaker, message.text) for message in row.input)
    if reply:
        raise ValueError("input: the last message must be a question of the user")
    kind = row.answerability[0].casefold() if row.answerability else ""
    answers = unique_answers(target.text.strip() for target in row.targets)
    question = EvalQuestion(
        id=row.task_id,
        question=asked,
        answers=answers if kind in ("answerable", "partial") else (),
        answers_known=kind == "unanswerable" or (kind in ("answerable", "partial") and bool(answers)),
        lang=language_tag(asked),
        type=kind,
        supporting=tuple(dict.fromkeys(context.document_id for context in row.contexts if context.is_reference)),
        turn=DialogueTurn(
            dialogue_id=row.conversation_id,
            number=row.turn,
            history=tuple(history),
            rewrite=rewrites.get(_task_name(row.task_id), row.rewritten_query.strip()),
        ),
    )
    documents = tuple(_document(context.document_id, context.title, context.text) for context in row.contexts)
    return _Task(questions=(question,), documents=documents, domain=_domain(row.collection))


def _domain(collection: str) -> str:
    """Extract the domain from a name like ``mt-rag-clapnq-elser-512-100-20240503``; ``""`` for other names."""
    name = collection.removeprefix("mt-rag-").partition("-")[0] if collection.startswith("mt-rag-") else ""
    return _DOMAINS.get(name, name)


def _task_name(identity: str) -> str:
    return identity.replace("<::>", "::")


def _document(key: str, title: str, text: str) -> CorpusDocument:
    # Most passages begin with their title.
    return CorpusDocument(key=key, title=title, text=text if text.startswith(title) else titled_text(title, text))
