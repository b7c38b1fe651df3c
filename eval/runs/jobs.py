"""What a run has to ask: the chosen questions, each to one system, as often as it is repeated.

Questions that stand alone are independent of each other, and so are turns of dialogues whose history is given. Where a
system leads its own conversation, a dialogue is asked by one worker, turn after turn, and is what is asked again: a
turn that failed, or that is asked by force, needs the turns before it in a new conversation, so its dialogue is asked
anew as a whole. What the new conversation asks like the old one comes out of the model cache.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...graphs.rag.result import SystemName
from ..datasets.dialogue_turns import with_parents
from ..datasets.questions import Dataset, EvalQuestion
from ..datasets.rows import select_questions
from ..metrics.damage import REPLY_DAMAGE
from ..rows.store import RunRow
from .experiment import Experiment


def choose_questions(dataset: Dataset, experiment: Experiment) -> Dataset:
    """The data set with the questions that ``limit``, ``sample`` and ``ids`` name, in file order; the corpus stays.

    A turn that is answered in its own conversation comes with those before it on its path (see ``with_paths``).

    Raises:
        SettingsError: ``ids`` names a question that the data set does not have.
    """
    chosen = select_questions(dataset, limit=experiment.limit, ids=experiment.ids)
    names = [question.id for question in chosen.questions]
    if experiment.sample is not None:
        names = draw(names, experiment.sample, seed=experiment.seed)
    return with_paths(dataset, names, experiment)


def with_paths(dataset: Dataset, chosen: Collection[str], experiment: Experiment) -> Dataset:
    """The data set with the chosen questions, and all that must be answered for them to be asked.

    Turns bring along those before them on their paths, unless their history is given.

    Raises:
        SettingsError: ``chosen`` is empty or names a question that the data set does not have.
    """
    if experiment.history == "given":
        return select_questions(dataset, ids=chosen)
    return with_parents(dataset, chosen)


def draw(ids: Iterable[str], size: int, *, seed: int) -> list[str]:
    """So many of the ids at random, all of them if there are no more; with a larger size, the same and others.

    The order of the ids does not matter: those with the smallest SHA-256 of seed and id are taken, which is the same
    on every machine and in every version of Python.
    """
    return sorted(ids, key=lambda each: hashlib.sha256(f"{seed}\x00{each}".encode()).digest())[:size]


Retry = Literal["failed", "incomplete"]
"""Which finished questions are asked again: those that failed, or these and the degraded ones."""

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000003")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question to one system."""

    system: SystemName
    question: EvalQuestion
    repeat: int
    attempt: int
    fresh: bool = False
    """Whether no reply may come from the model cache, since one that it holds has damaged the attempt before."""

    @property
    def place(self) -> tuple[str, str, int]:
        """As in ``RunRow.place``."""
        return (self.system, self.question.id, self.repeat)

    @property
    def dialogue_id(self) -> str:
        """The dialogue that the question belongs to; one that stands alone is a dialogue by itself."""
        return _dialogue_of(self.question)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Jobs that one worker does one after the other: the turns of a dialogue, or a single question."""

    jobs: tuple[Job, ...]
    """At least one; all of one system, repeat and attempt."""
    place: tuple[str, str, int]
    """What no two workers may be at: the place of a question, or that of a dialogue."""

    @property
    def attempt(self) -> int:
        """That of all its jobs."""
        return self.jobs[0].attempt

    def is_done(self, newest: Mapping[tuple[str, str, int], RunRow]) -> bool:
        """Whether all its jobs have their rows, which stand in ``newest`` by their places."""
        return all(is_answered(job, newest) for job in self.jobs)


def is_answered(job: Job, newest: Mapping[tuple[str, str, int], RunRow]) -> bool:
    """Whether a job has its row among the newest by their places."""
    row = newest.get(job.place)
    return row is not None and row.attempt >= job.attempt


def plan_jobs(
    experiment: Experiment,
    questions: Sequence[EvalQuestion],
    rows: Sequence[RunRow],
    *,
    retry: Retry | None = None,
    force: bool = False,
) -> list[Job]:
    """What is still to be asked, question by question, so that systems can be compared at any moment.

    ``retry`` asks questions again that failed, or that are not complete, ``force`` all of them, each as a new attempt.
    The turns of a conversation are asked again together, and an attempt that was begun is finished: their rows are of
    one conversation.
    """
    newest = {row.place: row for row in rows}
    if leads_conversations(experiment, questions):
        return _plan_dialogues(experiment, questions, newest, retry=retry, force=force)
    jobs = []
    for repeat in range(experiment.repeats):
        for question in questions:
            for system in experiment.systems:
                row = newest.get((system, question.id, repeat))
                if row is None:
                    jobs.append(Job(system=system, question=question, repeat=repeat, attempt=0))
                elif force or is_retried(row, retry):
                    number, fresh = row.attempt + 1, needs_new_replies(row)
                    jobs.append(Job(system=system, question=question, repeat=repeat, attempt=number, fresh=fresh))
    return jobs


def is_retried(row: RunRow, retry: Retry | None) -> bool:
    """Whether a finished question is to be asked again; always where an endpoint could not be used at all."""
    if retry is None or row.setup_failed:
        return row.setup_failed
    return row.completeness == "failed" if retry == "failed" else row.completeness != "complete"


def needs_new_replies(row: RunRow) -> bool:
    """Whether asking again from the model cache would give the same damage."""
    return not REPLY_DAMAGE.isdisjoint(row.damage)


def leads_conversations(experiment: Experiment, questions: Iterable[EvalQuestion]) -> bool:
    """Whether the systems answer the questions in conversations of their own."""
    return experiment.history == "own" and any(question.turn is not None for question in questions)


def chains_of(jobs: Sequence[Job], *, by_dialogue: bool) -> list[Chain]:
    """The jobs as chains, in the order of their first ones: one a dialogue, or else one a job."""
    if not by_dialogue:
        return [Chain(jobs=(job,), place=job.place) for job in jobs]
    chains: dict[tuple[str, str, int], list[Job]] = {}
    for job in jobs:
        chains.setdefault((job.system, job.dialogue_id, job.repeat), []).append(job)
    return [Chain(jobs=tuple(chain), place=place) for place, chain in chains.items()]


def thread_id_of(run_id: str, job: Job) -> str:
    """The thread of a job: the same one whenever the same run comes to it again."""
    parts = (run_id, job.system, job.question.id, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))


def conversation_name_of(run_id: str, job: Job, *, by_dialogue: bool) -> str:
    """The conversation of a job: of its dialogue, or of its question alone; each repeat and attempt has its own."""
    talk = ("dialogue", job.dialogue_id) if by_dialogue else ("turn", job.question.id)
    parts = (run_id, job.system, *talk, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))


def _plan_dialogues(
    experiment: Experiment,
    questions: Sequence[EvalQuestion],
    newest: Mapping[tuple[str, str, int], RunRow],
    *,
    retry: Retry | None,
    force: bool,
) -> list[Job]:
    dialogues: dict[str, list[EvalQuestion]] = {}
    for question in questions:
        dialogues.setdefault(_dialogue_of(question), []).append(question)
    jobs: list[Job] = []
    for repeat in range(experiment.repeats):
        for turns in dialogues.values():
            for system in experiment.systems:
                rows = [row for turn in turns if (row := newest.get((system, turn.id, repeat))) is not None]
                attempt = max((row.attempt for row in rows), default=0)
                done, fresh = [row for row in rows if row.attempt == attempt], False
                if (force and rows) or any(is_retried(row, retry) for row in done):
                    attempt, done, fresh = attempt + 1, [], any(map(needs_new_replies, done))
                answered = {row.question_id for row in done}
                left = (turn for turn in turns if turn.id not in answered)
                jobs += (
                    Job(system=system, question=turn, repeat=repeat, attempt=attempt, fresh=fresh) for turn in left
                )
    return jobs


def _dialogue_of(question: EvalQuestion) -> str:
    return question.turn.dialogue_id if question.turn else question.id
