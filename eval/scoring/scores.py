"""The scores of a run directory: one line for each scored row and metric, with what scored it and what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from ...modules.calls.messages import version_of
from ...modules.errors import LoadingError
from ...modules.reading.plausible_numbers import RecordReader
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named
from ...modules.storage.atomic import write_atomic
from ..rows.json_lines import append_line, cut_torn_end
from ..rows.payments import Payments
from ..rows.store import RunRow

_ADVICE = "Delete it; its scores are then computed again."


class NamedScorer(Protocol):
    """Protocol of a scorer: everything besides the row that decides a score."""

    @property
    def name(self) -> str:
        """Name of the metric in reports."""
        ...


ScorerT = TypeVar("ScorerT", bound=NamedScorer)

RowKey = tuple[str, str, int, int]
"""System, question, repeat and attempt."""


@dataclass(frozen=True, kw_only=True)
class Score(Generic[ScorerT]):
    """The outcome of scoring one row with one metric."""

    system: str
    question_id: str
    repeat: int
    attempt: int
    scorer: ScorerT
    value: float | None
    """The score; None if scoring failed, or if the metric has none for this row."""
    problem: str
    """Why scoring failed; ``""`` otherwise."""
    calls: int
    """Chat calls that reached a model, failed ones included."""
    cached_calls: int
    """Chat calls answered by the cache."""
    prompt_tokens: int
    """Prompt tokens of ``calls``."""
    completion_tokens: int
    """Completion tokens of ``calls``."""
    embedded_texts: int
    """Texts embedded by the model or read from the cache."""
    seconds: float
    """Wall time, waiting for the model included."""

    @property
    def row(self) -> RowKey:
        """Key of the scored row."""
        return (self.system, self.question_id, self.repeat, self.attempt)


def work_of(scorer: NamedScorer) -> str:
    """Return the name under which the payments for a scorer are noted; unset fields do not change it."""
    stated = {name: value for name, value in vars(scorer).items() if value not in ("", None)}
    return version_of(json.dumps(stated, sort_keys=True))


def row_key(row: RunRow) -> RowKey:
    """Return the key under which the scores of a row are stored."""
    return (row.system, row.question_id, row.repeat, row.attempt)


class ScoreStore(Generic[ScorerT]):
    """The scores of one kind of one run directory, appended as whole lines."""

    def __init__(self, file: Path, scorer: type[ScorerT]) -> None:
        """``scorer``: the class of the scorers in the file."""
        self._file = file
        self._adapter: RecordReader[Score[ScorerT]] = RecordReader(Score[scorer])  # type: ignore[valid-type]

    def payments_for(self, scorers: Iterable[NamedScorer]) -> Payments:
        """Return the payments for some scorers in the same directory."""
        return Payments(self._file.parent, {work_of(scorer) for scorer in scorers})

    def append(self, score: Score[ScorerT]) -> None:
        """Append a score; it survives a kill as soon as this returns.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
        """
        append_line(self._file, self._adapter.dump_json(score))

    def remove(self, name: str) -> None:
        """Delete every score by a metric, whatever its version. What they cost still counts as paid.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it is unchanged.
        """
        kept = [score for score in self.read() if score.scorer.name != name]
        write_atomic(self._file, b"".join(self._adapter.dump_json(score) + b"\n" for score in kept))

    def mend(self) -> None:
        """Cut off the torn last line that a kill left."""
        cut_torn_end(self._file)

    def read(self) -> list[Score[ScorerT]]:
        """Read every score, in the order in which they finished; a last line cut off by a kill is skipped.

        Raises:
            LoadingError: Another line is damaged.
        """
        if not self._file.exists():
            return []
        data = read_named(self._file, what="the scores in", advice=_ADVICE, max_bytes=MAX_DATA_BYTES)
        lines = data.decode("utf-8", "replace").split("\n")
        scores = []
        for number, line in enumerate(lines[:-1], start=1):  # the last part is empty or torn
            try:
                scores.append(self._adapter.validate_json(line))
            except ValidationError as error:
                fault = error.errors()[0]["msg"]
                raise LoadingError(
                    f"{self._file}, line {number} is damaged: {fault}. Delete it; its score is then computed again."
                ) from error
        return scores


def finished(scores: Iterable[Score[ScorerT]], *, retry_failed: bool = False) -> set[tuple[RowKey, ScorerT]]:
    """Collect what is scored already; ``retry_failed`` leaves out scores whose newest attempt failed."""
    newest = {(score.row, score.scorer): score for score in scores}
    return {key for key, score in newest.items() if not score.problem or not retry_failed}


def current_scores(scores: Iterable[Score[ScorerT]]) -> dict[str, dict[RowKey, Score[ScorerT]]]:
    """Collect the newest score of each row by name of the scorer; of several scorers of a name, the latest counts."""
    kept = list(scores)
    scorers = {score.scorer.name: score.scorer for score in kept}
    current: dict[str, dict[RowKey, Score[ScorerT]]] = {}
    for score in kept:
        if score.scorer == scorers[score.scorer.name]:
            current.setdefault(score.scorer.name, {})[score.row] = score
    return current
