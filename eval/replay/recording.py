"""Recordings of searches: what each query finds and how its chunks are judged, in a file that grows and is never read
by a live search.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from langchain_core.documents import Document
from pydantic import TypeAdapter

from ...modules.errors import LoadingError
from ...modules.storage.formats import FORMAT_KEY, format_of
from ..datasets.questions import others_in_groups
from ..rows.folder_kinds import RECORDING_FILE
from ..rows.json_lines import append_line, cut_torn_end
from .recording_lines import (
    ChunkLine,
    DoneLine,
    HitsLine,
    JudgementLine,
    Line,
    QuestionLine,
    RecordedJudgement,
    RecordedQuestion,
    RecordingFile,
)
from .world import JudgedQuery, NotRecorded, RecordedWorld, tokens_of

FILE_NAME = RECORDING_FILE
Hits = list[tuple[Document, float]]
"""(chunk, retrieval score), best first."""


_QUESTION = TypeAdapter(RecordedQuestion)
_JUDGEMENT = TypeAdapter(RecordedJudgement)
_NOT_WRITTEN = {"judged": {"chunks": {"__all__": {"tokens", "text"}}}}
"""What the chunks say themselves."""


class SearchRecording:
    """A recording in a file; one process at a time may add to it.

    Every distinct query is searched and judged once, however many chunks ask it: a recording is a graph of queries,
    which replays unfold into trees.
    """

    def __init__(self, file: Path, *, of: Mapping[str, str] | None = None, dataset: str = "") -> None:
        """Read the file, or begin it.

        ``of`` is the fingerprint of search, judge and writer, with ``depth`` and ``tries``, of a recording that grows;
        None takes that of the file, and only reads, also while another process records. ``dataset`` is the spec of the
        data set, which pages name; that of the file goes before.

        Raises:
            LoadingError: There is no file and ``of`` is None, or it has another format, is damaged, or is a recording
                of something else.
        """
        self.file = file
        self.of: dict[str, str] = dict(of or {})
        self.dataset = dataset
        self.questions: dict[str, RecordedQuestion] = {}
        """All that were to be recorded, by id."""
        self._done: set[str] = set()
        self._chunks: dict[str, Document] = {}
        self._hits: dict[str, Hits] = {}
        self._judgements: dict[str, RecordedJudgement] = {}
        if of is not None:
            cut_torn_end(file)
        if file.exists() and (of is None or file.stat().st_size):
            self._read(of)
        elif of is None:
            raise LoadingError(f"{file} does not exist. `judgetree eval record` makes a recording.")
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write({FORMAT_KEY: format_of("recording"), "of": self.of, "dataset": dataset})

    @property
    def depth(self) -> int:
        """Levels of sub-questions that were recorded."""
        return int(self.of["depth"])

    @property
    def tries(self) -> int:
        """Sub-questions of each chunk that were recorded, where as many could be written."""
        return int(self.of["tries"])

    @property
    def finished(self) -> dict[str, RecordedQuestion]:
        """Questions of which everything is recorded, to the depth and the tries, by id."""
        return {key: each for key, each in self.questions.items() if key in self._done}

    @property
    def unknown(self) -> int:
        """Number of verdicts that are unknown since the judge failed."""
        return sum(chunk.verdict == "unknown" for each in self._judgements.values() for chunk in each.judged.chunks)

    @property
    def unwritten(self) -> int:
        """Number of chunks that miss further questions since a call failed."""
        return sum(len(each.unwritten) for each in self._judgements.values())

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
            found = list(
                {str(chunk.metadata["chunk_id"]): (chunk, score) for chunk, score in await ask(query)}.values()
            )
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

    def mark(self, question_id: str, *, is_done: bool) -> None:
        """Record that everything of a question is recorded, or no longer is."""
        if is_done != (question_id in self._done):
            self._write({"question_id": question_id, "is_done": is_done})
            self._mark(question_id, is_done=is_done)

    def worlds(self) -> dict[str, RecordedWorld]:
        """Return the finished questions as they were judged, by id."""
        passages = {key: (tokens_of(chunk), chunk.page_content) for key, chunk in self._chunks.items()}
        queries = {query: _with_passages(each.judged, passages) for query, each in self._judgements.items()}
        questions = {query: each.questions for query, each in self._judgements.items()}
        return {
            key: RecordedWorld(
                question=each.question,
                gold=each.gold,
                queries=_with_alternatives(queries, each.alternatives),
                questions=questions,
                tries=self.tries,
            )
            for key, each in self.finished.items()
        }

    def _write(self, line: dict[str, object]) -> None:
        append_line(self.file, json.dumps(line, ensure_ascii=True, default=str).encode())

    def _read(self, of: Mapping[str, str] | None) -> None:
        read = RecordingFile(self.file)
        self.of, self.dataset = read.of, read.dataset
        names = sorted(name for name in {*self.of, *(of or {})} if self.of.get(name) != (of or {}).get(name))
        if of is not None and names:
            parts = "; ".join(f"{name}: {self.of.get(name)!r:.80} then, {of.get(name)!r:.80} now" for name in names)
            raise LoadingError(f"{self.file} is the recording of something else ({parts}). Give another folder.")
        for number, line in read.lines():
            try:
                self._take(line)
            except ValueError as error:
                raise read.damage(number, error) from error
        self._done = {key for key in self._done if self._has_all_of(self.questions[key])}

    def _has_all_of(self, question: RecordedQuestion) -> bool:
        """Return whether every query of a question is judged, and asks on above the deepest level.

        A finished mark alone does not say so: lines may have been lost or taken out.
        """
        level, seen = [question.question], {question.question}
        for depth in range(self.depth + 1):
            found = [self._judgements.get(query) for query in level]
            if any(each is None or (depth < self.depth and not each.is_expanded) for each in found):
                return False
            asked = (query for each in found if each for questions in each.questions.values() for query in questions)
            level = [query for query in dict.fromkeys(asked) if query not in seen]
            seen.update(level)
        return True

    def _take(self, line: Line) -> None:
        match line:
            case ChunkLine():
                _require(str(line.metadata.get("chunk_id")) == line.chunk, "its chunk has another id")
                self._chunks[line.chunk] = Document(page_content=line.text, metadata=line.metadata)
            case HitsLine():
                _require({key for key, _ in line.hits} <= self._chunks.keys(), "it finds a chunk without a text")
                _require(len(dict(line.hits)) == len(line.hits), "it finds a chunk twice")
                self._hits[line.query] = [(self._chunks[key], score) for key, score in line.hits]
            case JudgementLine():
                judgement = line.judgement
                found = [str(chunk.metadata["chunk_id"]) for chunk, _ in self._hits.get(judgement.query, [])]
                judged = [(each.rank, each.chunk_id) for each in judgement.judged.chunks]
                _require(judged == list(enumerate(found)), "it does not judge what its query finds")
                _require({*judgement.questions, *judgement.unwritten} <= {*found}, "it asks an unknown chunk")
                self._judgements[judgement.query] = judgement
            case QuestionLine():
                self.questions[line.question.id] = line.question
            case DoneLine():
                _require(line.question_id in self.questions, "its question is unknown")
                self._mark(line.question_id, is_done=line.is_done)

    def _mark(self, question_id: str, *, is_done: bool) -> None:
        (self._done.add if is_done else self._done.discard)(question_id)


def _require(is_met: bool, fault: str) -> None:
    if not is_met:
        raise ValueError(fault)


def _with_alternatives(
    queries: Mapping[str, JudgedQuery], groups: Sequence[Sequence[str]]
) -> Mapping[str, JudgedQuery]:
    """Let chunks count as all documents of the groups of which any one will do."""
    if not groups:
        return queries
    return {
        query: replace(
            judged,
            chunks=tuple(
                replace(each, keys=each.keys.union(others_in_groups(each.keys, groups))) for each in judged.chunks
            ),
        )
        for query, judged in queries.items()
    }


def _with_passages(judged: JudgedQuery, passages: Mapping[str, tuple[int, str]]) -> JudgedQuery:
    chunks = []
    for each in judged.chunks:
        tokens, text = passages[each.chunk_id]
        chunks.append(replace(each, tokens=tokens, text=text))
    return replace(judged, chunks=tuple(chunks))
