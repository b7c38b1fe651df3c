"""The RAGAS metrics on offer, the rows that each applies to, and their inputs.

Names and definitions are those of RAGAS 0.4, ``ragas.metrics.collections``. This module does not import RAGAS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ...graphs.rag.search_tree import SearchTree
from ...modules.errors import SettingsError
from ..datasets.questions import EvalQuestion
from ..rows.store import RunRow
from ..scoring.sample import evidence_of

MetricName = Literal[
    "faithfulness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "answer_correctness",
    "factual_correctness",
]
Contexts = Literal["chunks", "sub-answers"]
"""Contexts of a metric. chunks: the text of every chunk of the tree, each once. sub-answers: the passages shown to the
reader, which contain model-written answers to sub-questions."""
Input = Literal["user_input", "response", "retrieved_contexts", "reference"]
NotApplicable = Literal[
    "question failed", "answer refused", "unanswerable question", "no gold answer", "nothing retrieved"
]
"""Why a metric does not apply to a row."""

WITH_SUB_ANSWERS = "[with sub-answers]"
"""Suffix of the column of a score whose contexts contain sub-answers."""
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class RagasMetric:
    """One metric; its scores are in [``lowest``, 1], higher is better."""

    name: MetricName
    class_name: str
    """Name of the class in ``ragas.metrics.collections``."""
    inputs: tuple[Input, ...]
    measures: str
    """Description in a few words."""
    embeds: bool = False
    """Whether it needs embeddings."""
    scores_refusals: bool = False
    """Whether refusals are scored."""
    lowest: float = 0.0
    options: Mapping[str, int] = field(default_factory=dict)
    """Further arguments of the class."""

    @property
    def takes_contexts(self) -> bool:
        """Whether the retrieved chunks are an input."""
        return "retrieved_contexts" in self.inputs

    def why_not(self, row: RunRow, question: EvalQuestion) -> NotApplicable | None:
        """Return why the metric does not apply to a row; None if it does."""
        if row.status == "failed":
            return "question failed"
        if "reference" in self.inputs and not question.answers:
            return "unanswerable question" if question.answers_known else "no gold answer"
        if "retrieved_contexts" in self.inputs and not any(chunk.depth == 0 for chunk in row.chunks):
            return "nothing retrieved"
        if "response" in self.inputs and row.status == "refused" and not self.scores_refusals:
            return "answer refused"
        return None

    def checked(self, value: object) -> float:
        """Validate a score and clip rounding errors beyond the range.

        Raises:
            ValueError: The score is NaN, not a number, or out of range.
        """
        number = float(value) if isinstance(value, int | float) else math.nan
        if math.isnan(number):
            raise ValueError("RAGAS returned no number, as it does for a reply with nothing to count")
        if not self.lowest - _ROUNDING <= number <= 1 + _ROUNDING:
            raise ValueError(f"RAGAS returned {number:g}, which is outside of [{self.lowest:g}, 1]")
        return min(max(number, self.lowest), 1.0)


RAGAS_METRICS: Mapping[MetricName, RagasMetric] = {
    metric.name: metric
    for metric in (
        RagasMetric(
            name="faithfulness",
            class_name="Faithfulness",
            inputs=("user_input", "response", "retrieved_contexts"),
            measures="statements of the answer that the evidence supports; refusals make none",
        ),
        RagasMetric(
            name="answer_relevancy",
            class_name="AnswerRelevancy",
            inputs=("user_input", "response"),
            measures="cosine of the question and one that the answer would answer; refusals answer none",
            embeds=True,
            lowest=-1.0,
            # RAGAS takes the mean over three generated questions, which are equal at temperature 0.
            options={"strictness": 1},
        ),
        RagasMetric(
            name="context_precision",
            class_name="ContextPrecision",
            inputs=("user_input", "reference", "retrieved_contexts"),
            measures="average precision of the evidence's order, by use for the gold answer",
        ),
        RagasMetric(
            name="context_recall",
            class_name="ContextRecall",
            inputs=("user_input", "retrieved_contexts", "reference"),
            measures="statements of the gold answer that the evidence supports",
        ),
        RagasMetric(
            name="answer_correctness",
            class_name="AnswerCorrectness",
            inputs=("user_input", "response", "reference"),
            measures="3/4 F1 over statements of answer and gold answer, 1/4 their cosine",
            embeds=True,
            scores_refusals=True,
            lowest=-0.25,
        ),
        RagasMetric(
            name="factual_correctness",
            class_name="FactualCorrectness",
            inputs=("response", "reference"),
            measures="F1 over claims of answer and gold answer, to two decimals",
            scores_refusals=True,
        ),
    )
}
"""By name, in the order of tables. Context metrics leave out systems that do not retrieve."""


def metrics_named(names: str | None) -> tuple[RagasMetric, ...]:
    """Parse a list such as "faithfulness,context_recall"; the result is in the registry's order, None gives all.

    Raises:
        SettingsError: A name is unknown, or the list is empty.
    """
    wanted = list(RAGAS_METRICS) if names is None else names.replace(",", " ").split()
    if unknown := sorted(set(wanted) - set(RAGAS_METRICS)):
        raise SettingsError(f"No such RAGAS metrics: {', '.join(unknown)}. Allowed: {', '.join(get_args(MetricName))}.")
    if not wanted:
        raise SettingsError(f"--metrics names none. Allowed: {', '.join(get_args(MetricName))}.")
    return tuple(metric for name, metric in RAGAS_METRICS.items() if name in wanted)


def contexts_of(tree: SearchTree, contexts: Contexts) -> tuple[str, ...]:
    """Collect the contexts of a metric from a tree; chunks in search order, the question's own first, each once."""
    if contexts == "sub-answers":
        return evidence_of(tree)
    return tuple({chunk.chunk_id: chunk.text for chunk in tree.chunk_nodes()}.values())


def inputs_of(
    metric: RagasMetric, row: RunRow, question: EvalQuestion, evidence: tuple[str, ...]
) -> dict[Input, str | list[str]]:
    """Collect the inputs of ``ascore``; the reference is the first gold answer."""
    given: dict[Input, str | list[str]] = {
        "user_input": row.question,
        "response": row.prediction,
        "retrieved_contexts": list(evidence),
        "reference": question.answers[0] if question.answers else "",
    }
    return {name: given[name] for name in metric.inputs}
