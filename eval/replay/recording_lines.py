"""The lines of a recording's file, checked as they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...modules.errors import LoadingError, faults_of
from ...modules.reading.plausible_numbers import plausible_validator
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named
from ...modules.storage.formats import FORMAT_KEY, check_format
from .world import JudgedQuery


@dataclass(frozen=True, kw_only=True)
class RecordedQuestion:
    """A question of a recording."""

    id: str
    question: str
    gold: frozenset[str]
    """Keys of the documents that the answer needs."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """As in ``EvalQuestion``."""
    answers: tuple[str, ...] = ()
    answers_known: bool = True
    lang: str = "en"
    """ISO 639-1 code; selects the variant of the answer metrics."""
    folds_letters: bool = False
    """As in ``EvalQuestion``; False in recordings of older versions."""


@dataclass(frozen=True, kw_only=True)
class RecordedJudgement:
    """The verdicts on what a query finds, and what each of its chunks asks."""

    query: str
    judged: JudgedQuery
    questions: Mapping[str, tuple[str, ...]]
    """Sub-questions by chunk id, one for each try; of every chunk, whatever its verdict."""
    is_expanded: bool = True
    """False on the deepest level, where chunks are judged without questions."""
    unwritten: frozenset[str] = frozenset()
    """Chunks that miss further questions since a call failed or the budget was spent; they are asked again."""

    @property
    def calls(self) -> int:
        """Model calls that judging takes, with those that the cache answered."""
        return self.judged.calls + sum(each.calls for each in self.judged.chunks)

    @property
    def judged_chunks(self) -> int:
        """Number of chunks with a verdict."""
        return sum(each.verdict == "judged" for each in self.judged.chunks)

    @property
    def is_whole(self) -> bool:
        """Whether every chunk was judged and could be asked for all of its questions."""
        return not self.unwritten and self.judged_chunks == len(self.judged.chunks)


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Fingerprint(BaseModel):
    model_config = ConfigDict(extra="allow")
    depth: Annotated[int, Field(ge=0)]
    tries: Annotated[int, Field(ge=1)]


class ChunkLine(_Line):
    """The text of a chunk."""

    chunk: str
    text: str
    metadata: dict[str, object]


class HitsLine(_Line):
    """What a query finds."""

    query: str
    hits: list[tuple[str, Annotated[float, Field(allow_inf_nan=False)]]]


class JudgementLine(_Line):
    """How that is judged."""

    judgement: RecordedJudgement


class QuestionLine(_Line):
    """A question that is to be recorded."""

    question: RecordedQuestion


class DoneLine(_Line):
    """A question of which all is recorded, or, where something is asked again, no longer."""

    question_id: str
    is_done: bool


Line = ChunkLine | HitsLine | JudgementLine | QuestionLine | DoneLine
_LINES: Mapping[str, type[Line]] = {
    "chunk": ChunkLine,
    "hits": HitsLine,
    "judgement": JudgementLine,
    "question": QuestionLine,
    "question_id": DoneLine,
}
"""By the key that only they have."""
_READERS = {kind: plausible_validator(kind) for kind in _LINES.values()}
_ADVICE = "Record it again in another folder."
_OF = TypeAdapter(dict[str, str])


class RecordingFile:
    """The whole lines of a recording; a torn last one, which is being written or was cut off by a kill, is left out."""

    def __init__(self, file: Path) -> None:
        """Read the file.

        Raises:
            LoadingError: Its first line is missing or damaged, or has another format.
        """
        self._file = file
        data = read_named(file, what="the recording", advice=_ADVICE, max_bytes=MAX_DATA_BYTES)
        head, *self._lines = data.split(b"\n")[:-1] or [b""]
        try:
            content = json.loads(head)
            found = content.get(FORMAT_KEY) if isinstance(content, dict) else None
            check_format(found, "recording", where=str(file), remedy="Record it again in another folder.")
            self.of = _OF.validate_python(content.get("of"))
            self.dataset = str(content.get("dataset", ""))
            _Fingerprint.model_validate(self.of)
        except (ValueError, RecursionError) as error:
            raise self.damage(1, error) from error

    def lines(self) -> Iterator[tuple[int, Line]]:
        """Yield the lines after the first, with their numbers.

        Raises:
            LoadingError: A line is damaged.
        """
        for number, text in enumerate(self._lines, start=2):
            if not text.strip():
                continue
            try:
                yield number, _line_of(json.loads(text))
            except (ValueError, RecursionError) as error:
                raise self.damage(number, error) from error

    def damage(self, number: int, error: Exception) -> LoadingError:
        """Return the error of a damaged line."""
        fault = faults_of(error)[0] if isinstance(error, ValidationError) else error
        return LoadingError(f"{self._file}, line {number} is damaged: {fault}. Record it again in another folder.")


def _line_of(content: object) -> Line:
    kinds = [kind for key, kind in _LINES.items() if isinstance(content, dict) and key in content]
    if not kinds:
        raise ValueError(f"unknown line {str(content)[:80]!r}")
    return cast(Line, _READERS[kinds[0]].validate_python(content))
