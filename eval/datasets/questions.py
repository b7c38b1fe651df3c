"""The common form of data sets: questions with gold answers, and a corpus of documents with stable keys."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...modules.errors import SettingsError
from ..question_files.read_report import QuestionsRead

JsonScalar = str | int | float | bool | None


def others_in_groups(keys: Collection[str], groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the other documents of each group that holds one of ``keys``."""
    return tuple(each for group in groups if not set(group).isdisjoint(keys) for each in group if each not in keys)


@dataclass(frozen=True, kw_only=True)
class DialogueTurn:
    """Position of a question in a dialogue, which may branch: the turns that lead to it are its path."""

    dialogue_id: str
    """Unique within the data set."""
    number: int
    """Turn number from 1; greater than that of its predecessor."""
    parent: str = ""
    """Id of the preceding question on its path; ``""`` for a first turn, or if that question is not in the set."""
    history: tuple[tuple[str, str], ...] = ()
    """(question, answer) pairs of the earlier turns of its path, oldest first; an unknown answer is ``""``."""
    rewrite: str = ""
    """Stand-alone form of the question written by a human; ``""`` without one."""
    topic_switch: bool | None = None
    """Whether it changes the topic of the preceding turn; None if unknown."""
    relevant_turns: tuple[int, ...] | None = None
    """Numbers of the earlier turns that it needs, ascending; None if unknown."""
    from_history: bool | None = None
    """Whether the evidence of earlier turns answers it; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class EvalQuestion:
    """One question of a data set.

    >>> EvalQuestion(id="q1", question="Who wrote it?", answers=("Cao Xueqin",)).answers_known
    True
    """

    id: str
    """Unique within the data set, and the same at every loading."""
    question: str
    answers: tuple[str, ...]
    """The gold answer, then its aliases; empty for a question that is unanswerable or has unknown answers."""
    answers_known: bool = True
    """False in sets for retrieval alone, where neither an answer nor a refusal can be scored."""
    lang: str = "en"
    """ISO 639-1 code; selects the variant of the answer metrics."""
    folds_letters: bool = False
    """Whether composed and decomposed letters and letters of full width are equal to the answer metrics, which keep to
    the official scripts otherwise; always so in Chinese."""
    type: str = ""
    """The data set's name of the kind: "bridge", "comparison", "2hop", "unanswerable"; ``""`` without one."""
    hops: int | None = None
    """Number of facts that the answer needs; None if unknown."""
    supporting: tuple[str, ...] = ()
    """Keys of the documents that hold the facts, each once, in hop order if known. All of them are needed."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Groups of documents of which any one will do; the first of each stands in ``supporting``.

    To every metric the documents of a group are one: a chunk of one of them counts as all of them.
    """
    distractors: tuple[str, ...] = ()
    """Keys of documents that came with the question and hold none of the facts; empty if none came."""
    facts: tuple[tuple[str, str], ...] = ()
    """(key of a supporting document, its words that state a fact); empty if the data set has no such words."""
    turn: DialogueTurn | None = None
    """Position in a dialogue; None for a question that stands alone."""
    shares: tuple[str, ...] = ()
    """What it has in common with other questions, so that these depend on each other: see ``clusters_of``."""

    def __post_init__(self) -> None:
        for name in ("answers", "supporting", "distractors"):
            if isinstance(given := getattr(self, name), str):
                raise SettingsError(f"{name}={given!r:.80} of {self.id!r} is one text. Give a tuple: ({given!r:.80},).")

    @property
    def gold(self) -> frozenset[str]:
        """Keys of the supporting documents and of those that will do in their place."""
        return frozenset(itertools.chain(self.supporting, *self.alternatives))

    def standing_for(self, key: str) -> frozenset[str]:
        """Return the supporting document ``key`` and the documents that may replace it."""
        return frozenset([key, *(each for group in self.alternatives if group[0] == key for each in group)])

    def stood_for(self, keys: Collection[str]) -> tuple[str, ...]:
        """Return the other documents of each group that holds one of the documents ``keys``.

        >>> either = EvalQuestion(id="q1", question="?", answers=(), supporting=("a",), alternatives=(("a", "b"),))
        >>> either.stood_for(["b"]), either.stood_for(["a"]), either.stood_for(["c"])
        (('a',), ('b',), ())
        """
        return others_in_groups(keys, self.alternatives)

    @property
    def is_answerable(self) -> bool:
        """False if a refusal is the right answer."""
        return bool(self.answers) or not self.answers_known


@dataclass(frozen=True, kw_only=True)
class CorpusDocument:
    """One document to index.

    >>> CorpusDocument(key="ks-1", text="KS-1 needs the oil VG 68.").title
    ''
    """

    key: str
    """Unique within the corpus, and derived from the content, so that pooled duplicates become one document."""
    text: str
    """The text to index: title and body."""
    title: str = ""
    metadata: Mapping[str, JsonScalar] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Questions, and the corpus to search for their answers."""

    name: str
    """"hotpotqa", "musique", …"""
    questions: tuple[EvalQuestion, ...]
    """In file order; turns are grouped by dialogue, a parent before its children."""
    documents: tuple[CorpusDocument, ...] = ()
    """Documents of all questions, in order of first appearance; empty if ``folder`` holds the corpus."""
    folder: Path | None = None
    """Folder of documents to index, for a corpus of files."""
    key_field: str = "document_key"
    """Metadata field of an indexed chunk that holds its key in ``EvalQuestion.supporting``."""
    corpus_digest: str = ""
    """SHA-256 over the corpus, independent of the choice of questions; ``""`` without a corpus."""
    digest: str = ""
    """SHA-256 over questions and corpus; equal digests mean equal data sets."""
    malformed: tuple[tuple[int, str], ...] = ()
    """(row number from 1, fault) of the rows that were left out."""

    read: QuestionsRead | None = None
    """What was read of a file of one's own; None for other data sets."""

    def fingerprint(self) -> dict[str, str]:
        """Return the digest that distinguishes data sets given as objects."""
        return {"digest": self.digest}

    @property
    def is_conversational(self) -> bool:
        """Whether some questions are turns of dialogues."""
        return any(question.turn is not None for question in self.questions)
