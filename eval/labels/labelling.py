"""One annotator's work on a run: the passages that are left, what is saved, and what may be shown afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...graphs.tree.nodes import VerdictLabel
from ...modules.digests import text_digest
from ...modules.errors import LoadingError, SettingsError, UserError
from ...modules.judge.contract import Score
from ...modules.storage.texts import check_id
from ..datasets.questions import EvalQuestion
from ..metrics.retrieval import GoldMark, best_gold_mark
from ..rows.store import Manifest, RunStore
from ..rows.trees import TreeStore
from ..runs.jobs import dataset_of
from ..runs.manifest import experiment_in
from .passages import draw_passages, found_passages
from .store import FoundPassage, Label, LabelStore, newest_labels

DEFAULT_COUNT = 100


@dataclass(frozen=True, kw_only=True)
class LabelPlan:
    """The passages that the annotators of a run label.

    >>> LabelPlan(count=50, overlap=10).overlap
    10

    Raises:
        SettingsError: ``count`` or ``overlap`` is out of range.
    """

    count: int = DEFAULT_COUNT
    """Number of passages to draw from the run."""
    seed: int = 0
    """Seed of the draw; annotators who are to be compared take the same."""
    systems: tuple[str, ...] | None = None
    """Systems whose passages are drawn; None for those with verdicts, or for all if none has verdicts."""
    overlap: int | None = None
    """Number of passages that every annotator labels; the others go to one annotator each, but for what two have
    open at a time. None shares all."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise SettingsError(f"count={self.count!r} is no number of passages. Allowed: 1 or more.")
        if self.overlap is not None and self.overlap < 0:
            raise SettingsError(f"overlap={self.overlap!r} is no number of passages. Allowed: 0 or more.")


@dataclass(frozen=True, kw_only=True)
class Reveal:
    """What is shown of a passage once its annotator has judged it."""

    verdict: VerdictLabel
    """The judge's verdict."""
    gold: GoldMark | None
    """Whether it holds a supporting fact of the data set's question; None where the data set names none."""


class Labelling:
    """The work of one annotator in a run directory. Several may work at once, in one process or in many.

    ::

        work = Labelling("runs/a", "ada")
        work.save(work.due()[0].id, 1, note="names the vessel")
    """

    def __init__(self, folder: Path | str, annotator: str, plan: LabelPlan | None = None) -> None:
        """Draw the passages; it reads the run's trees, some seconds for a thousand of them.

        Raises:
            SettingsError: The annotator's name or the plan is not usable.
            LoadingError: The folder is no run, holds no passages, or is damaged.
        """
        check_id("The annotator's name", annotator)
        if not annotator.strip():
            raise SettingsError("The annotator's name is empty. Give one with --annotator.")
        self.folder = Path(folder)
        self.annotator = annotator.strip()
        self._plan = plan or LabelPlan()
        self.store = LabelStore(self.folder)
        run = RunStore(self.folder)
        manifest, rows = run.read_manifest(), run.read_rows()
        if manifest is None or not rows:
            raise LoadingError(
                f"{self.folder} holds no finished question. Run `judgetree eval run --out {self.folder} …` first."
            )
        found = found_passages(rows, TreeStore(self.folder), systems=self._plan.systems)
        self.passages = self._in_own_order(draw_passages(found, self._plan.count, seed=self._plan.seed))
        """The drawn passages, those of a question together; what is not shared by all in an order of one's own."""
        if not self.passages:
            raise LoadingError(f"No query of {self.folder} found a passage, so there is nothing to label.")
        self._by_id = {passage.id: passage for passage in self.passages}
        self._keys = {(row.thread_id, key): keys for row in rows for key, keys in row.keys_by_chunk.items()}
        self._questions = _questions_of(manifest)

    def mine(self) -> Mapping[str, Label]:
        """Return this annotator's newest label of each drawn passage, by passage id."""
        newest = newest_labels(self.store.read())
        return {key: label for (key, who), label in newest.items() if who == self.annotator and key in self._by_id}

    def due(self) -> list[FoundPassage]:
        """Return the drawn passages that this annotator has left, in order."""
        newest = newest_labels(self.store.read())
        mine = {key for key, who in newest if who == self.annotator}
        taken = {key for key, who in newest if who != self.annotator}
        return [
            passage
            for place, passage in enumerate(self.passages)
            if passage.id not in mine and (place < self._overlap or passage.id not in taken)
        ]

    @property
    def _overlap(self) -> int:
        return self._plan.count if self._plan.overlap is None else self._plan.overlap

    def _in_own_order(self, drawn: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
        """Return what all label, then the rest in an order that differs by annotator, who else would meet at each."""

        def own_place(passage: FoundPassage) -> bytes:
            return text_digest(f"{self.annotator}\n{passage.question_id}")

        return (*drawn[: self._overlap], *sorted(drawn[self._overlap :], key=own_place))

    def save(self, passage_id: str, score: Score | None, *, note: str = "", seconds: float | None = None) -> Label:
        """Save a label; the annotator's earlier one of that passage no longer counts.

        Raises:
            SettingsError: The passage is none of the draw, or the note cannot be kept.
            WritingError: The file cannot be written; it is unchanged.
        """
        if passage_id not in self._by_id:
            raise SettingsError(f"{passage_id!r:.80} is none of the {len(self.passages)} drawn passages.")
        label = Label(
            annotator=self.annotator,
            score=score,
            note=note.strip(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=seconds,
            passage=self._by_id[passage_id],
        )
        self.store.append(label)
        return label

    def reveal(self, passage_id: str) -> Reveal:
        """Return the judge's verdict on a drawn passage, and whether the data set calls it gold."""
        passage = self._by_id[passage_id]
        question = self._questions.get(passage.question_id)
        if question is None or not question.supporting:
            return Reveal(verdict=passage.verdict, gold=None)
        keys = self._keys.get((passage.thread_id, passage.chunk_id), frozenset())
        return Reveal(verdict=passage.verdict, gold=best_gold_mark(question, keys, passage.text))


def _questions_of(manifest: Manifest) -> Mapping[str, EvalQuestion]:
    """Return the questions of a run's data set by id; empty if it cannot be read any more."""
    try:
        dataset = dataset_of(experiment_in(manifest))
    except UserError:
        return {}
    return {question.id: question for question in dataset.questions}
