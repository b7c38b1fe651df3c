"""What a run has to ask: one question to one system, as often as it is repeated."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from ...graphs.result import Mode
from ..datasets.questions import EvalQuestion
from .experiment import Experiment
from .store import RunRow

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000003")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question to one system."""

    system: Mode
    question: EvalQuestion
    repeat: int
    attempt: int

    @property
    def place(self) -> tuple[str, str, int]:
        """As in ``RunRow.place``."""
        return (self.system, self.question.id, self.repeat)


def plan_jobs(
    experiment: Experiment,
    questions: Sequence[EvalQuestion],
    rows: Sequence[RunRow],
    *,
    retry_failed: bool = False,
    force: bool = False,
) -> list[Job]:
    """What is still to be asked, question by question, so that systems can be compared at any moment.

    ``retry_failed`` asks failed questions again, ``force`` all of them, each as a new attempt.
    """
    newest = {row.place: row for row in rows}
    jobs = []
    for repeat in range(experiment.repeats):
        for question in questions:
            for system in experiment.systems:
                row = newest.get((system, question.id, repeat))
                again = row is not None and (force or (retry_failed and row.status == "failed"))
                if row is None or again:
                    attempt = row.attempt + 1 if row is not None else 0
                    jobs.append(Job(system=system, question=question, repeat=repeat, attempt=attempt))
    return jobs


def thread_id_of(run_id: str, job: Job) -> str:
    """The thread of a job: the same one whenever the same run comes to it again."""
    parts = (run_id, job.system, job.question.id, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))
