"""The RAGAS scores of a run directory: ``ragas.jsonl``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..scoring.scores import Score, ScoreStore
from .metrics import WITH_SUB_ANSWERS, Contexts, MetricName


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """Everything besides the row that decides a score. Scores of different scorers are never mixed."""

    metric: MetricName
    ragas: str
    """Version of RAGAS."""
    prompts: str
    """Version of the metric's prompts."""
    model: str
    endpoint: str
    """Endpoint of the model (host, port and path, or a name); distinguishes models of the same name."""
    embeddings: str
    """Name of the embeddings; ``""`` for a metric without them."""
    replies: str
    """Version of the reply checks."""
    contexts: Contexts | None = None
    """Contexts of a context metric; None for others."""
    options: str = ""
    """Options that differ from RAGAS's defaults, such as "strictness 1"."""

    @property
    def name(self) -> str:
        """Name of the metric, with a suffix if its contexts contain sub-answers."""
        return f"{self.metric}{WITH_SUB_ANSWERS}" if self.contexts == "sub-answers" else self.metric


RagasScore = Score[Scorer]
"""A score of RAGAS."""


class RagasStore(ScoreStore[Scorer]):
    """The RAGAS scores of one run directory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "ragas.jsonl", Scorer)
