"""Recordings of searches: what each query finds and how its chunks are judged, in a file that grows and is never read
by a live search.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_core.documents import Document
from pydantic import TypeAdapter, ValidationError

from ...modules.errors import LoadingError
from ...modules.formats import FORMAT_KEY, format_of, refuse_other_format
from ..rows.json_lines import append_line, cut_torn_end
from .world import JudgedQuery, NotRecorded, RecordedWorld, tokens_of

FILE_NAME = "recording.jsonl"
Hits = list[tuple[Document, float]]
"""(chunk, retrieval score), best first."""


@dataclass(frozen=True, kw_only=True)
class RecordedQuestion:
    """A question of a recording."""

    id: str
    question: str
    gold: frozenset[str]
    """Keys of the documents that the answer needs."""
    answers: tuple[str, ...] = ()
    answers_known: bool = True
    lang: str = "en"
    """ISO 639-1 code; selects the variant of the answer metrics."""


@dataclass(frozen=True, kw_only=True)
class RecordedJudgement:
    """The verdicts on what a query finds, and what each of its chunks asks."""

    query: str
    judged: JudgedQuery
    questions: Mapping[str, tuple[str, ...]]
    """Sub-questions by chunk id, one for each try; of every chunk, whatever its verdict."""
    calls: int = 0
    """Model calls that judging took."""
    tokens: int = 0


_QUESTION = TypeAdapter(RecordedQuestion)
_JUDGEMENT = TypeAdapter(RecordedJudgement)
_NOT_WRITTEN = {"judged": {"chunks": {"__all__": {"tokens"}}}}
"""What the chunks say themselves."""


class Recording:
    """A recording in a file; one process at a time may add to it.

    Every distinct query is searched and judged once, however many chunks ask it: a recording is a graph of queries,
    which replays unfold into trees.
    """

    def __init__(self, file: Path, *, of: Mapping[str, str] | None = None) -> None:
        """Read the file, or begin it.

        ``of`` is the fingerprint of search, judge and writer, with ``depth`` and ``tries``; None takes that of the
        file.

        Raises:
            LoadingError: There is no file and ``of`` is None, or it has another format, is damaged, or is a recording
                of something else.
        """
        self.file = file
        self.of: dict[str, str] = dict(of or {})
        self.questions: dict[str, RecordedQuestion] = {}
        self._chunks: dict[str, Document] = {}
        self._hits: dict[str, Hits] = {}
        self._judgements: dict[str, RecordedJudgement] = {}
        if file.exists():
            cut_torn_end(file)
            self._read(of)
        elif of is None:
            raise LoadingError(f"{file} does not exist. `judgetree eval record` makes a recording.")
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write({FORMAT_KEY: format_of("recording"), "of": self.of})

    @property
    def depth(self) -> int:
        """Levels of sub-questions that were recorded."""
        return int(self.of["depth"])

    @property
    def tries(self) -> int:
        """Sub-questions of each chunk that were recorded, where as many could be written."""
        return int(self.of["tries"])

    @property
    def queries(self) -> int:
        """Number of distinct queries that were searched."""
        return len(self._hits)

    def hits(self, query: str) -> Hits:
        """Return what a query finds.

        Raises:
            NotRecorded: It was not searched.
        """
        try:
            return self._hits[query]
        except KeyError:
            raise NotRecorded(query) from None

    async def search(self, query: str, ask: Callable[[str], Awaitable[Hits]]) -> Hits:
        """Return what a query finds; one that was not searched before is searched by ``ask`` and recorded."""
        if query not in self._hits:
            found = await ask(query)
            for chunk, _ in found:
                chunk_id = str(chunk.metadata["chunk_id"])
                if chunk_id not in self._chunks:
                    self._write({"chunk": chunk_id, "text": chunk.page_content, "metadata": chunk.metadata})
                    self._chunks[chunk_id] = chunk
            self._write({"hits": [[str(each.metadata["chunk_id"]), score] for each, score in found], "query": query})
            self._hits[query] = found
        return self._hits[query]

    def judgement(self, query: str) -> RecordedJudgement | None:
        """Return the judgement of a query; None if it was not judged."""
        return self._judgements.get(query)

    def add_judgement(self, judgement: RecordedJudgement) -> None:
        """Record the judgement of a query."""
        self._write({"judgement": _JUDGEMENT.dump_python(judgement, mode="json", exclude=_NOT_WRITTEN)})
        self._judgements[judgement.query] = judgement

    def add_question(self, question: RecordedQuestion) -> None:
        """Record a question, once."""
        if question.id not in self.questions:
            self._write({"question": _QUESTION.dump_python(question, mode="json")})
            self.questions[question.id] = question

    def worlds(self) -> dict[str, RecordedWorld]:
        """Return the questions as they were judged, by id."""
        tokens = {key: tokens_of(chunk) for key, chunk in self._chunks.items()}
        queries = {query: _with_tokens(each.judged, tokens) for query, each in self._judgements.items()}
        questions = {query: each.questions for query, each in self._judgements.items()}
        return {
            key: RecordedWorld(
                question=each.question, gold=each.gold, queries=queries, questions=questions, tries=self.tries
            )
            for key, each in self.questions.items()
        }

    def _write(self, line: dict[str, object]) -> None:
        append_line(self.file, json.dumps(line, ensure_ascii=True, default=str).encode())

    def _read(self, of: Mapping[str, str] | None) -> None:
        try:
            head, *lines = (json.loads(line) for line in self.file.read_bytes().split(b"\n") if line)
            refuse_other_format(head.get(FORMAT_KEY), "recording", where=str(self.file), remedy="Record it again.")
            self.of = dict(head["of"])
            for line in lines:
                self._take(line)
        except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
            raise LoadingError(f"{self.file} is damaged: {type(error).__name__}: {error}. Record it again.") from error
        names = sorted(name for name in {*self.of, *(of or {})} if self.of.get(name) != (of or {}).get(name))
        if of is not None and names:
            parts = "; ".join(f"{name}: {self.of.get(name)!r:.80} then, {of.get(name)!r:.80} now" for name in names)
            raise LoadingError(f"{self.file} is the recording of something else ({parts}). Give another folder.")

    def _take(self, line: Mapping[str, object]) -> None:
        match line:
            case {"chunk": str(key), "text": str(text), "metadata": dict(metadata)}:
                self._chunks[key] = Document(page_content=text, metadata=metadata)
            case {"query": str(query), "hits": list(hits)}:
                self._hits[query] = [(self._chunks[key], float(score)) for key, score in hits]
            case {"judgement": judged}:
                judgement = _JUDGEMENT.validate_python(judged)
                self._judgements[judgement.query] = judgement
            case {"question": asked}:
                question = _QUESTION.validate_python(asked)
                self.questions[question.id] = question
            case _:
                raise ValueError(f"unknown line {str(line)[:80]!r}")


def _with_tokens(judged: JudgedQuery, tokens: Mapping[str, int]) -> JudgedQuery:
    return replace(judged, chunks=tuple(replace(each, tokens=tokens[each.chunk_id]) for each in judged.chunks))
