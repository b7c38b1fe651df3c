"""The RAGAS scores of a run directory: ``ragas.jsonl``, one line a scored row and metric, with what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ...modules.errors import LoadingError
from ..rows.json_lines import append_line, cut_torn_end
from ..rows.store import RunRow
from .metrics import WITH_SUB_ANSWERS, Contexts, MetricName


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """All that decides a score besides the row. Scores of different scorers are never mixed."""

    metric: MetricName
    ragas: str
    """Version of the library."""
    prompts: str
    """Version of the metric's prompts."""
    model: str
    endpoint: str
    """Of the model: host, port and path, or a name of its own; models of one name are told apart by it."""
    embeddings: str
    """``""`` for a metric that embeds nothing."""
    replies: str
    """Version of how replies are got and checked."""
    contexts: Contexts | None = None
    """What a context metric was given; None for others."""
    options: str = ""
    """Options of the metric that are not RAGAS's own, such as "strictness 1"."""

    @property
    def name(self) -> str:
        """The metric's name, and that its contexts hold sub-answers if they do."""
        return f"{self.metric}{WITH_SUB_ANSWERS}" if self.contexts == "sub-answers" else self.metric


RowKey = tuple[str, str, int, int]
"""System, question, repeat and attempt."""


@dataclass(frozen=True, kw_only=True)
class RagasScore:
    """What came of scoring one row with one metric."""

    system: str
    question_id: str
    repeat: int
    attempt: int
    scorer: Scorer
    value: float | None
    """None where the scoring failed."""
    problem: str
    """Why it failed; ``""`` otherwise."""
    calls: int
    """Chat calls that a model answered, or failed to."""
    cached_calls: int
    """Chat calls that the cache answered."""
    prompt_tokens: int
    """Of ``calls``."""
    completion_tokens: int
    """Of ``calls``."""
    embedded_texts: int
    """Texts whose vector was needed, from the model or from the cache."""
    seconds: float
    """Wall time, queueing at the model included."""

    @property
    def row(self) -> RowKey:
        """The row it belongs to."""
        return (self.system, self.question_id, self.repeat, self.attempt)


_SCORE = TypeAdapter(RagasScore)


def row_key(row: RunRow) -> RowKey:
    """The key under which scores of a row stand."""
    return (row.system, row.question_id, row.repeat, row.attempt)


class RagasStore:
    """The scores beside the rows of one run directory. They are appended whole, like rows."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ragas.jsonl"

    def append(self, score: RagasScore) -> None:
        """Add a score; it survives the process as soon as this returns.

        Raises:
            WritingError: The disk is full, or the file cannot be written; it holds the scores that it held before.
        """
        append_line(self._file, _SCORE.dump_json(score))

    def mend(self) -> None:
        """Cut off the torn end that a kill in the middle of a write has left."""
        cut_torn_end(self._file)

    def read(self) -> list[RagasScore]:
        """Every score, in the order in which they were finished; a last line that was cut off is left out.

        Raises:
            LoadingError: Another line is damaged.
        """
        if not self._file.exists():
            return []
        lines = self._file.read_text(encoding="utf-8", errors="replace").split("\n")
        scores = []
        for number, line in enumerate(lines[:-1], start=1):  # what follows the last line break is torn, or nothing
            try:
                scores.append(_SCORE.validate_json(line))
            except ValidationError as error:
                fault = error.errors()[0]["msg"]
                raise LoadingError(
                    f"{self._file}, line {number} is damaged: {fault}. Take it out; that score is then made again."
                ) from error
        return scores


def finished(scores: Iterable[RagasScore], *, retry_failed: bool = False) -> set[tuple[RowKey, Scorer]]:
    """What need not be scored again; ``retry_failed`` leaves out where the newest try failed."""
    newest = {(score.row, score.scorer): score for score in scores}
    return {key for key, score in newest.items() if score.value is not None or not retry_failed}


def current_scores(scores: Iterable[RagasScore]) -> dict[str, dict[RowKey, RagasScore]]:
    """The newest score of each row by ``Scorer.name``, of one scorer a name: the one of the name's last line."""
    kept = list(scores)
    scorers = {score.scorer.name: score.scorer for score in kept}
    current: dict[str, dict[RowKey, RagasScore]] = {}
    for score in kept:
        if score.scorer == scorers[score.scorer.name]:
            current.setdefault(score.scorer.name, {})[score.row] = score
    return current
