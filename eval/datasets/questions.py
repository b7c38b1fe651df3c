"""What every data set becomes: questions with gold answers, and a corpus of documents with stable keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

JsonScalar = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class DialogueTurn:
    """Where a question stands in a dialogue. Dialogues may branch: what leads up to a question is its path."""

    dialogue_id: str
    """Unique within the data set."""
    number: int
    """From 1 on; greater than that of the turn before it on its path."""
    parent: str = ""
    """Id of the question before it on its path; ``""`` for a first turn, and where that question is not in the set."""
    history: tuple[tuple[str, str], ...] = ()
    """(question, answer) from the first turn of its path on; an answer is ``""`` where there is none to tell."""
    rewrite: str = ""
    """The question as a human put it to be understood alone; ``""`` where nobody did."""
    topic_switch: bool | None = None
    """Whether it leaves the topic of the turn before it; None where the data set does not say."""
    relevant_turns: tuple[int, ...] | None = None
    """Numbers of the earlier turns that it needs, ascending; None where the data set does not say."""
    from_history: bool | None = None
    """Whether what was found for earlier turns answers it; None where the data set does not say."""


@dataclass(frozen=True, kw_only=True)
class EvalQuestion:
    """One question of a data set."""

    id: str
    """Unique within the data set, the same at every loading."""
    question: str
    answers: tuple[str, ...]
    """The gold answer, then its aliases; empty for a question that cannot be answered, or whose answer is unknown."""
    answers_known: bool = True
    """False in sets made for retrieval alone: neither an answer nor a refusal can be marked right or wrong."""
    lang: str = "en"
    """ISO 639-1 code; decides which of the two metric variants is used."""
    type: str = ""
    """The data set's own name of the kind: "bridge", "comparison", "2hop", "unanswerable"; ``""`` where it has none."""
    hops: int | None = None
    """Facts that the answer needs; None where the data set does not say."""
    supporting: tuple[str, ...] = ()
    """Keys of the documents that hold them, in hop order where that is known, each once."""
    facts: tuple[tuple[str, str], ...] = ()
    """(key of a supporting document, its words that hold a fact), as far as the data set knows these words."""
    turn: DialogueTurn | None = None
    """None for a question that stands alone."""

    @property
    def is_answerable(self) -> bool:
        """False where a refusal is the right answer."""
        return bool(self.answers) or not self.answers_known


@dataclass(frozen=True, kw_only=True)
class CorpusDocument:
    """One document that is indexed as it is."""

    key: str
    """Unique within the corpus and derived from the content, so that pooled duplicates are one."""
    text: str
    """What is indexed: title and body."""
    title: str = ""
    metadata: Mapping[str, JsonScalar] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Questions and the corpus that they are asked of."""

    name: str
    """"hotpotqa", "musique", …"""
    questions: tuple[EvalQuestion, ...]
    """In file order; where they are turns, each dialogue's stand together, a parent before its children."""
    documents: tuple[CorpusDocument, ...] = ()
    """Pooled over all questions, in order of first appearance; empty where ``folder`` holds the corpus."""
    folder: Path | None = None
    """Folder of documents to index, for data sets that come as files."""
    key_field: str = "document_key"
    """Metadata field of an indexed chunk that holds the key which ``EvalQuestion.supporting`` names."""
    corpus_digest: str = ""
    """SHA-256 over the corpus alone, so it does not change with the choice of questions; ``""`` where there is none."""
    digest: str = ""
    """SHA-256 over questions and corpus: two data sets with the same digest ask the same."""
    malformed: tuple[tuple[int, str], ...] = ()
    """(row number from 1 on, what is wrong) of the rows that were left out."""

    @property
    def is_conversational(self) -> bool:
        """Whether there are turns of dialogues among the questions."""
        return any(question.turn is not None for question in self.questions)
