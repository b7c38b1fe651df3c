"""Training data for the ``logprob`` judge's thresholds: which splits are allowed, which passages are rated."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...modules.errors import SettingsError
from ...modules.judge.contract import Score
from ...modules.retriever.bm25 import Bm25
from ..datasets.questions import Dataset
from ..rows.store import RunStore, part_of

DISTRACTORS = 2
MIN_QUESTIONS = 20
"""Fewest questions to fit a threshold on."""
POOL = 5_000
"""Number of documents to search for distractors, from the first; a whole Wikipedia would take minutes."""

_TRAIN = re.compile(r"(?<![a-z])train(?:ing|set)?(?![a-z])", re.IGNORECASE)
_HELD_BACK = re.compile(
    r"(?<![a-z])(?:test(?:ing|set)?|dev(?:set|elopment)?|val(?:id|idation|set)?)(?![a-z])", re.IGNORECASE
)
_SHOWN = 3


def check_not_held_back(name: str, split: str | None) -> None:
    """Check by name that the data are a training split.

    Neither the file's name nor the split may contain the word test, dev, val, valid or validation, and one of them must
    contain "train". Folders above the file do not count.

    Args:
        name: Name of the file or, for folder formats, of the folder.
        split: The split that the user gave; None without one.

    Raises:
        SettingsError: The data are not known to be a training split.
    """
    for label in (name, split or ""):
        if found := _HELD_BACK.search(label):
            raise SettingsError(
                f"{label!r} is held back for reporting ({found[0]!r} in its name): thresholds fitted on it would "
                "inflate the figures reported on it. Calibrate on a training split."
            )
    if split not in (None, "train"):
        raise SettingsError(f"split={split!r} is not allowed. Only --split train can be fitted on.")
    if split is None and not _TRAIN.search(name):
        raise SettingsError(
            f"The name {name!r} does not say which split it is. If these questions are for training, and nothing is "
            "reported on them, add --split train."
        )


def check_not_reported(dataset: Dataset, whole_digest: str, store: RunStore) -> None:
    """Check that no question of the data set was asked in a run.

    Args:
        dataset: The questions to fit on.
        whole_digest: Digest of the data set that they were chosen from.
        store: The run.

    Raises:
        SettingsError: The run used the same data set, shares a question by id or wording, or is not a run.
    """
    manifest = store.read_manifest()
    if manifest is None:
        raise SettingsError(f"{store.folder} is not a run. Give the folder that `judgetree eval run --out` wrote.")
    rows = store.read_rows()
    asked = {row.question_id for row in rows} | {_wording(row.question) for row in rows}
    shared = [each.id for each in dataset.questions if each.id in asked or _wording(each.question) in asked]
    if part_of(manifest, "identity").get("dataset_digest") == whole_digest:
        raise SettingsError(f"The run {store.folder} used this same data set. Calibrate on another split.")
    if shared:
        named = ", ".join(shared[:_SHOWN]) + (", …" if len(shared) > _SHOWN else "")
        raise SettingsError(
            f"{len(shared)} of these questions were asked in the run {store.folder} ({named}). Calibrate on others."
        )


def _wording(question: str) -> str:
    return " ".join(question.casefold().split())


@dataclass(frozen=True, kw_only=True)
class ScoredPassage:
    """A passage whose right score for a query is known."""

    text: str
    score: Score
    """2 = answers the query alone, 1 = holds a needed fact, 0 = does not help."""
    weight: float = 1.0
    """Number of passages that it stands for, where passages were drawn unevenly."""


@dataclass(frozen=True, kw_only=True)
class ScoredCase:
    """A query with passages to rate."""

    query: str
    gold: tuple[ScoredPassage, ...]
    """Passages that score 1 or 2."""
    others: tuple[ScoredPassage, ...]
    """Passages that score 0."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question with its gold passages and its likeliest distractors."""

    question: str
    gold: tuple[str, ...]
    distractors: tuple[str, ...]
    """Best BM25 score first."""
    is_single_hop: bool = False
    """Whether its one gold passage answers it alone."""

    def scored(self) -> ScoredCase:
        """Return the passages with their right scores."""
        score: Score = 2 if self.is_single_hop else 1
        return ScoredCase(
            query=self.question,
            gold=tuple(ScoredPassage(text=text, score=score) for text in self.gold),
            others=tuple(ScoredPassage(text=text, score=0) for text in self.distractors),
        )


FOUND = 5
"""Hits of a query that ``found_share`` counts."""


def found_share(dataset: Dataset, *, pool: int = POOL) -> float:
    """Return the share of gold among the likeliest ``FOUND`` documents of a question by BM25, over all questions.

    Kept within [0.01, 0.99]; gold documents count that are among the first ``pool``.
    """
    near = dataset.documents[:pool]
    search = Bm25([document.text for document in near])
    hits = [
        near[at].key in question.gold
        for question in dataset.questions
        if question.supporting
        for at in search.likeliest(question.question, FOUND)
    ]
    return min(max(sum(hits) / max(len(hits), 1), 0.01), 0.99)


def cases_of(dataset: Dataset, *, pool: int = POOL) -> list[Case]:
    """Build the cases of all questions with gold documents, in order; passages are whole documents.

    Distractors come from the first ``pool`` documents of the corpus.

    Raises:
        SettingsError: The data set has no documents, or fewer than ``MIN_QUESTIONS`` questions have gold documents.
    """
    if not dataset.documents:
        raise SettingsError(
            f"The data set {dataset.name!r} has no gold passages. Calibrate on one that has: hotpotqa, 2wiki, musique, "
            "beir."
        )
    near = dataset.documents[:pool]
    texts = {document.key: document.text for document in dataset.documents}
    places = {document.key: at for at, document in enumerate(near)}
    search = Bm25([document.text for document in near])
    cases = []
    for question in dataset.questions:
        gold = [key for key in question.supporting if key in texts]
        near_gold = [places[key] for key in question.gold if key in places]
        likeliest = search.likeliest(question.question, DISTRACTORS, without=near_gold) if gold else []
        if likeliest:
            case = Case(
                question=question.question,
                gold=tuple(texts[key] for key in gold),
                distractors=tuple(near[at].text for at in likeliest),
                is_single_hop=question.hops == 1 and len(question.supporting) == 1,
            )
            cases.append(case)
    if len(cases) < MIN_QUESTIONS:
        raise SettingsError(
            f"{len(cases)} questions with gold documents are too few to fit a threshold. Give {MIN_QUESTIONS} or more; "
            "some hundred are better."
        )
    return cases
