"""What the ``logprob`` judge's thresholds may be fitted on, and which passages it is asked about."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...modules.errors import SettingsError
from ..datasets.questions import Dataset
from ..rows.store import RunStore

DISTRACTORS = 2
MIN_QUESTIONS = 20
"""With fewer, a threshold is not fitted."""
POOL = 5_000
"""Documents, from the first of the file, that distractors are looked for in: a whole Wikipedia would take minutes."""

_TRAIN = re.compile(r"(?<![a-z])train(?:ing|set)?(?![a-z])", re.IGNORECASE)
_HELD_BACK = re.compile(
    r"(?<![a-z])(?:test(?:ing|set)?|dev(?:set|elopment)?|val(?:id|idation|set)?)(?![a-z])", re.IGNORECASE
)
_SHOWN = 3


# --- what may be fitted on ---


def refuse_held_back(name: str, split: str | None) -> None:
    """Do nothing if the data are those of a training split, as far as their names tell.

    The rule: neither the file's name nor the split holds the word test, dev, val, valid or validation; and the split is
    "train", or the file's name holds the word train. Folders above the file do not count.

    Args:
        name: Name of the file or, for sets in a folder, of the folder.
        split: As the user named it; None if not.

    Raises:
        SettingsError: They are not; figures reported on questions that thresholds were fitted on would flatter them.
    """
    for told in (name, split or ""):
        if found := _HELD_BACK.search(told):
            raise SettingsError(
                f"{told!r} is kept for reporting ({found[0]!r} in its name): thresholds fitted on it would flatter "
                "what is reported on it. Calibrate on a training split."
            )
    if split not in (None, "train"):
        raise SettingsError(f"split={split!r} is not allowed. Thresholds are fitted on --split train alone.")
    if split is None and not _TRAIN.search(name):
        raise SettingsError(
            f"Nothing in the name {name!r} says which split it is. If these questions are for training, and nothing is "
            "reported on them, add --split train."
        )


def refuse_reported(dataset: Dataset, whole_digest: str, store: RunStore) -> None:
    """Do nothing if no question of the data set has been asked in a run.

    Args:
        dataset: The questions to fit on.
        whole_digest: Digest of the data set that they are chosen from.
        store: The run.

    Raises:
        SettingsError: The run was asked of the same data set, or shares a question by id or wording; or is no run.
    """
    manifest = store.read_manifest()
    if manifest is None:
        raise SettingsError(f"{store.folder} holds no run. Give the folder that `judgetree eval run --out` wrote.")
    identity = manifest.get("identity")
    rows = store.read_rows()
    asked = {row.question_id for row in rows} | {_wording(row.question) for row in rows}
    shared = [each.id for each in dataset.questions if each.id in asked or _wording(each.question) in asked]
    if isinstance(identity, dict) and identity.get("dataset_digest") == whole_digest:
        raise SettingsError(f"The run {store.folder} was asked of this very data set. Calibrate on another split.")
    if shared:
        named = ", ".join(shared[:_SHOWN]) + (", …" if len(shared) > _SHOWN else "")
        raise SettingsError(
            f"{len(shared)} of these questions were asked in the run {store.folder} ({named}). Calibrate on others."
        )


def _wording(question: str) -> str:
    return " ".join(question.casefold().split())


# --- which passages are asked about ---


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question with the passages it needs and the likeliest of those it does not."""

    question: str
    gold: tuple[str, ...]
    distractors: tuple[str, ...]
    """Likeliest first."""
    is_single_hop: bool = False
    """Whether its one gold passage answers it alone."""


class Bm25:
    """BM25 over a handful or some thousands of passages, in memory.

    Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with Lucene's IDF, which is never negative.
    """

    def __init__(self, passages: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> None:
        texts = [_words(passage) for passage in passages]
        mean_length = sum(map(len, texts)) / max(len(texts), 1)
        self._count = len(texts)
        self._weights: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, text in enumerate(texts):
            damping = k1 * (1 - b + b * len(text) / mean_length) if mean_length else k1
            for word, times in Counter(text).items():
                self._weights[word].append((at, times * (k1 + 1) / (times + damping)))

    def scores(self, query: str) -> list[float]:
        """Of the passages, in their order; higher is more alike. A word that the query repeats counts again."""
        scores = [0.0] * self._count
        for word in _words(query):
            holding = self._weights.get(word, ())
            idf = math.log(1 + (self._count - len(holding) + 0.5) / (len(holding) + 0.5))
            for at, weight in holding:
                scores[at] += idf * weight
        return scores

    def likeliest(self, query: str, n: int, *, without: Iterable[int] = ()) -> list[int]:
        """Places of the ``n`` best passages, best first, the earlier of two that tie; ``without`` are passed over."""
        scores, out = self.scores(query), set(without)
        ranked = sorted((at for at in range(self._count) if at not in out), key=lambda at: (-scores[at], at))
        return ranked[:n]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def cases_of(dataset: Dataset, *, distractors: int = DISTRACTORS, pool: int = POOL) -> list[Case]:
    """The cases of all questions that have gold documents, in their order; passages are whole, as they are indexed.

    Distractors come from the first ``pool`` documents of the corpus.

    Raises:
        SettingsError: The data set brings no documents, or fewer than ``MIN_QUESTIONS`` questions have gold ones.
    """
    if not dataset.documents:
        raise SettingsError(
            f"The data set {dataset.name!r} does not say which passages its questions need. Calibrate on one that "
            "does: hotpotqa, 2wiki, musique, beir."
        )
    near = dataset.documents[:pool]
    texts = {document.key: document.text for document in dataset.documents}
    places = {document.key: at for at, document in enumerate(near)}
    search = Bm25([document.text for document in near])
    cases = []
    for question in dataset.questions:
        gold = [key for key in question.supporting if key in texts]
        near_gold = [places[key] for key in gold if key in places]
        likeliest = search.likeliest(question.question, distractors, without=near_gold) if gold else []
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
