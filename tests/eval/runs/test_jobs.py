"""What is to be asked of dialogues: whole conversations, each of one attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.rows.store import RunRow
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.jobs import Job, chains_of, conversation_name_of, plan_jobs, thread_id_of
from tests.eval.runs.test_spending import ROW

OWN = Experiment(dataset="x:y", systems=("naive", "judge"))
TURNS = [
    EvalQuestion(
        id=f"{dialogue}{number}",
        question=f"And {number}?",
        answers=("yes",),
        turn=DialogueTurn(dialogue_id=dialogue, number=number, parent=f"{dialogue}{number - 1}" if number > 1 else ""),
    )
    for dialogue in "ab"
    for number in (1, 2, 3)
]


def row(question_id: str, *, attempt: int = 0, status: str = "answered", system: str = "naive") -> RunRow:
    return replace(ROW, system=system, question_id=question_id, repeat=0, attempt=attempt, status=status)  # type: ignore[arg-type]


def left(*rows: RunRow, **options: object) -> dict[str, int]:
    """Questions that are to be asked of the naive system, with their attempts."""
    jobs = plan_jobs(OWN, TURNS, rows, **options)  # type: ignore[arg-type]
    return {job.question.id: job.attempt for job in jobs if job.system == "naive"}


B = {"b1": 0, "b2": 0, "b3": 0}
ANEW = {"a1": 1, "a2": 1, "a3": 1, **B}


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ((), {}, {"a1": 0, "a2": 0, "a3": 0, **B}),
        ((row("a1"), row("a2")), {}, {"a3": 0, **B}),
        ((row("a1"), row("a2", status="failed")), {}, {"a3": 0, **B}),
        ((row("a1"), row("a2", status="failed")), {"retry": "failed"}, ANEW),
        ((row("a1"), row("a2")), {"retry": "failed"}, {"a3": 0, **B}),
        ((row("a1"),), {"force": True}, ANEW),
        ((row("a1", attempt=1), row("a2"), row("a3")), {}, {"a2": 1, "a3": 1, **B}),
        ((row("a1", attempt=1), row("a2", status="failed")), {"retry": "failed"}, {"a2": 1, "a3": 1, **B}),
    ],
)
def test_dialogue_is_asked_again_as_a_whole(
    rows: tuple[RunRow, ...], options: dict[str, object], expected: dict[str, int]
) -> None:
    assert left(*rows, **options) == expected


def test_turns_whose_history_is_given_are_asked_again_one_by_one() -> None:
    given = OWN.model_copy(update={"history": "given", "systems": ("naive",)})
    rows = [row(question.id) for question in TURNS[:2]] + [row("a3", status="failed")]
    again = plan_jobs(given, TURNS[:3], rows, retry="failed")
    assert [(job.question.id, job.attempt) for job in again] == [("a3", 1)]


def test_dialogue_is_one_chain_in_its_order() -> None:
    jobs = plan_jobs(OWN, TURNS, [])
    chains = chains_of(jobs, by_dialogue=True)
    assert [chain.place for chain in chains] == [
        (system, dialogue, 0) for dialogue in "ab" for system in ("naive", "judge")
    ]
    assert [job.question.id for job in chains[0].jobs] == ["a1", "a2", "a3"]
    assert [chain.place for chain in chains_of(jobs, by_dialogue=False)] == [job.place for job in jobs]


def test_conversation_is_that_of_run_system_dialogue_repeat_and_attempt() -> None:
    job = Job(system="naive", question=TURNS[0], repeat=0, attempt=0)
    others = [
        replace(job, system="judge"),
        replace(job, repeat=1),
        replace(job, attempt=1),
        replace(job, question=TURNS[3]),
    ]
    ids = [conversation_name_of("run", each, by_dialogue=True) for each in (job, *others)]
    ids += [
        conversation_name_of("other run", job, by_dialogue=True),
        conversation_name_of("run", job, by_dialogue=False),
    ]
    assert len({*ids, thread_id_of("run", job)}) == len(ids) + 1
    follow_up = replace(job, question=TURNS[1])
    assert conversation_name_of("run", follow_up, by_dialogue=True) == ids[0]
    assert conversation_name_of("run", follow_up, by_dialogue=False) != ids[-1]
