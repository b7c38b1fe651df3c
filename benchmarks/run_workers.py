"""A batch run of 500 judge questions over two Ray workers against one process, on this machine.

The model is inside the processes, answers from the questions' gold, and takes 0.2 s; no other server shares the cores.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Sequence
from pathlib import Path

from judgetree.app.scripted.answers import ScriptedAnswers, parse_prompt
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import RunOptions, run_experiment
from judgetree.evaluation.runs.runner import Progress
from judgetree.evaluation.runs.workers import Workers
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter

from .eval_runs import Workspace, experiment_of, indexed_workspace, settings_of
from .measurement import Row

LATENCY_S = 0.2
CALLS_AT_ONCE = 128
QUESTIONS_AT_ONCE = 256
WORKERS = 2
ROUNDS = 3
_QUESTIONS = "JUDGETREE_BENCH_FAKE_QUESTIONS"
"""Variable that names the questions' file to the processes of the model."""


class FakeModel:
    """Answers in this process, after ``LATENCY_S``, as the scripted server does."""

    model = "fake"

    def __init__(self) -> None:
        self._answers = ScriptedAnswers(pickle.loads(Path(os.environ[_QUESTIONS]).read_bytes()))

    async def complete(
        self, messages: Sequence[Message], *, meter: CallMeter, options: CallOptions, **listeners: object
    ) -> Completion:
        """Answer a prompt."""
        await asyncio.sleep(LATENCY_S)
        return Completion(text=self._answers.reply(parse_prompt(messages)).text, finish_reason="stop")


def given_to_models(workspace: Workspace) -> None:
    """Let the models of this process and of those that it starts know the questions."""
    file = workspace.folder / "questions.pickle"
    file.write_bytes(pickle.dumps(workspace.questions))
    os.environ[_QUESTIONS] = str(file)


def _run(workspace: Workspace, name: str, workers: Workers | None) -> tuple[float, float]:
    """Return the seconds from the first question to the last row, and those of the whole command."""
    experiment = experiment_of(
        workspace,
        "",
        llm=f"{__name__}:FakeModel",
        systems=("judge",),
        topk=3,
        search_type="hybrid",
        max_rec_depth=1,
        concurrency=QUESTIONS_AT_ONCE,
        cache="off",
    )
    started, times = time.perf_counter(), list[float]()

    def note(progress: Progress) -> None:
        times.append(time.perf_counter())

    settings = settings_of(workspace, max_concurrency=CALLS_AT_ONCE)
    out = workspace.run_folder(name)
    summary = run_experiment(experiment, out, settings=settings, options=RunOptions(workers=workers), on_progress=note)
    ended = time.perf_counter()
    if summary.failed or len(RunStore(out).read_rows()) != len(workspace.questions):
        raise AssertionError(summary)
    return times[-1] - times[0], ended - started


def measure() -> list[Row]:
    """Measure both ways in turn, ``ROUNDS`` times each."""
    workspace = indexed_workspace()
    given_to_models(workspace)
    alone = [_run(workspace, f"alone-{number}", None) for number in range(ROUNDS)]
    spread = [_run(workspace, f"spread-{number}", Workers(count=WORKERS)) for number in range(ROUNDS)]
    ratio = min(seconds for seconds, _ in alone) / min(seconds for seconds, _ in spread)
    what = f"{len(workspace.questions)} judge questions, {LATENCY_S} s latency, {CALLS_AT_ONCE} calls at once"
    return [
        Row(f"{what}: seconds in one process", ", ".join(f"{seconds:.1f}" for seconds, _ in alone)),
        Row(f"the same over {WORKERS} workers", ", ".join(f"{seconds:.1f}" for seconds, _ in spread)),
        Row("the quickest of both: times as fast", f"{ratio:.2f}", "≥ 1.5", holds=ratio >= 1.5),
        Row(
            "start and end of the workers besides",
            ", ".join(f"{whole - seconds:.1f} s" for seconds, whole in spread),
        ),
    ]
