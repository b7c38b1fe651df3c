"""The jobs of a run: the chosen questions, each for every system and repeat.

Questions that stand alone are independent, and so are turns with a given history. If a system leads its own
conversations, one worker asks a dialogue turn by turn, and a turn that failed or is forced repeats its whole dialogue
in a new conversation; calls that equal the old conversation's come from the model cache.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...modules.digests import text_digest
from ...modules.index.content import TITLE
from ...modules.prebuilt.files import is_prebuilt
from ..datasets.dialogue_turns import turn_of, with_parents
from ..datasets.questions import Dataset, EvalQuestion
from ..datasets.registry import has_corpus_ids, load_dataset
from ..datasets.rows import keyed_by_title, select_questions
from ..metrics.damage import REPLY_DAMAGE
from ..rows.store import Place, RunRow
from .experiment import Experiment


def dataset_of(experiment: Experiment) -> Dataset:
    """Read the whole data set of an experiment, over the folder, collection or prebuilt index that it searches.

    In a collection, documents of the data set are known by their titles, unless they have ids.

    Raises:
        UserError: The data set or the folder cannot be read.
    """
    dataset = load_dataset(
        experiment.dataset,
        split=experiment.split,
        columns=experiment.columns,
        folder=experiment.corpus_folder,
        by_title=is_prebuilt(experiment.retriever),
        separator=experiment.separator,
        encoding=experiment.encoding,
        skip_bad_rows=experiment.skip_bad_rows,
    )
    is_titled = bool(dataset.documents) and not has_corpus_ids(experiment.dataset)
    return keyed_by_title(dataset, TITLE) if experiment.collection is not None and is_titled else dataset


def choose_questions(dataset: Dataset, experiment: Experiment) -> Dataset:
    """Choose the questions that ``limit``, ``sample`` and ``ids`` name, in file order, over the same corpus.

    Turns that are answered in the system's own conversations bring the earlier turns of their path (``with_paths``).

    Raises:
        SettingsError: ``ids`` names a question that the data set lacks.
    """
    chosen = select_questions(dataset, limit=experiment.limit, ids=experiment.ids)
    questions: Sequence[EvalQuestion] = chosen.questions
    if experiment.sample is not None:
        questions = draw(questions, experiment.sample, seed=experiment.seed)
    return with_paths(dataset, [question.id for question in questions], experiment)


def with_paths(dataset: Dataset, chosen: Collection[str], experiment: Experiment) -> Dataset:
    """Keep the chosen questions and, unless the history is given, the earlier turns of their paths.

    Raises:
        SettingsError: ``chosen`` is empty or names a question that the data set lacks.
    """
    if experiment.history == "given":
        return select_questions(dataset, ids=chosen)
    return with_parents(dataset, chosen)


def draw(questions: Iterable[EvalQuestion], size: int, *, seed: int) -> list[EvalQuestion]:
    """Draw ``size`` of the questions at random, or all if there are fewer; a larger size keeps the smaller draw.

    Each kind (``type`` and ``hops``) has its share of the draw, to within about one question, and each question the
    same chance. All is decided by the SHA-256 of seed and names, so that the result does not depend on the order of the
    questions, the machine or the version of Python.
    """
    kinds: dict[tuple[str, int | None], list[EvalQuestion]] = {}
    for question in sorted(questions, key=lambda each: text_digest(str(seed), each.id)):
        kinds.setdefault((question.type, question.hops), []).append(question)
    placed: list[tuple[float, bytes, EvalQuestion]] = []
    for name, kind in kinds.items():
        offset = int.from_bytes(text_digest(str(seed), "kind", *map(str, name))[:6]) / 2**48
        placed += (
            ((place + offset) / len(kind), text_digest(str(seed), question.id), question)
            for place, question in enumerate(kind)
        )
    return [question for *_, question in sorted(placed, key=lambda each: each[:2])][:size]


Retry = Literal["failed", "incomplete"]
"""Which finished questions to ask again: the failed ones, or the failed and degraded ones."""

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000003")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question for one system."""

    system: str
    question: EvalQuestion
    repeat: int
    attempt: int
    fresh: bool = False
    """Whether the model cache must not be read, because a reply in it damaged the previous attempt."""

    @property
    def place(self) -> Place:
        """System, question and repeat, as in ``RunRow.place``."""
        return (self.system, self.question.id, self.repeat)

    @property
    def dialogue_id(self) -> str:
        """Id of the question's dialogue; a question that stands alone is its own dialogue."""
        return turn_of(self.question).dialogue_id


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Jobs that one worker does in order: the turns of a dialogue, or a single question."""

    jobs: tuple[Job, ...]
    """One or more jobs of the same system, repeat and attempt."""
    place: Place
    """The place of the question, or of the dialogue."""


def plan_jobs(
    experiment: Experiment,
    questions: Sequence[EvalQuestion],
    rows: Sequence[RunRow],
    *,
    retry: Retry | None = None,
    force: bool = False,
) -> list[Job]:
    """List the jobs that are left, question by question, so that systems are comparable at any moment.

    ``retry`` repeats failed or incomplete questions, ``force`` all of them, each as a new attempt. The turns of a
    conversation are repeated together, and a started attempt is finished first: its rows belong to one conversation.
    """
    newest = {row.place: row for row in rows}
    asked_together: dict[str, list[EvalQuestion]] = {}
    by_dialogue = leads_conversations(experiment, questions)
    for question in questions:
        group = turn_of(question).dialogue_id if by_dialogue else question.id
        asked_together.setdefault(group, []).append(question)
    jobs: list[Job] = []
    for repeat in range(experiment.repeats):
        for turns in asked_together.values():
            for system in experiment.systems:
                done = [row for turn in turns if (row := newest.get((system, turn.id, repeat))) is not None]
                attempt, fresh = max((row.attempt for row in done), default=0), False
                done = [row for row in done if row.attempt == attempt]
                if (force and done) or any(is_retried(row, retry) for row in done):
                    attempt, done, fresh = attempt + 1, [], any(map(needs_new_replies, done))
                answered = {row.question_id for row in done}
                jobs += (
                    Job(system=system, question=turn, repeat=repeat, attempt=attempt, fresh=fresh)
                    for turn in turns
                    if turn.id not in answered
                )
    return jobs


def is_retried(row: RunRow, retry: Retry | None) -> bool:
    """Whether a finished question is asked again; always True if its endpoint was unusable."""
    if retry is None or row.setup_failed:
        return row.setup_failed
    return row.completeness == "failed" if retry == "failed" else row.completeness != "complete"


def needs_new_replies(row: RunRow) -> bool:
    """Whether the model cache would reproduce the damage."""
    return not REPLY_DAMAGE.isdisjoint(row.damage)


def leads_conversations(experiment: Experiment, questions: Iterable[EvalQuestion]) -> bool:
    """Whether the systems answer the questions in their own conversations."""
    return experiment.history == "own" and any(question.turn is not None for question in questions)


def chains_of(jobs: Sequence[Job], *, by_dialogue: bool) -> list[Chain]:
    """Group jobs into chains, in the order of their first jobs: one per dialogue, or one per job."""
    if not by_dialogue:
        return [Chain(jobs=(job,), place=job.place) for job in jobs]
    chains: dict[Place, list[Job]] = {}
    for job in jobs:
        chains.setdefault((job.system, job.dialogue_id, job.repeat), []).append(job)
    return [Chain(jobs=tuple(chain), place=place) for place, chain in chains.items()]


def thread_id_of(run_id: str, job: Job) -> str:
    """Return the thread of a job, always the same for the same run."""
    parts = (run_id, job.system, job.question.id, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))


def conversation_name_of(run_id: str, job: Job, *, by_dialogue: bool) -> str:
    """Return the conversation of a job's dialogue or question; each repeat and attempt has its own."""
    talk = ("dialogue", job.dialogue_id) if by_dialogue else ("turn", job.question.id)
    parts = (run_id, job.system, *talk, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))
