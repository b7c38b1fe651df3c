"""Questions of one conversation that processes with wrong clocks ask in turn, as two servers of one home do.

Each process reads jobs from its standard input, a JSON object a line: the question, its request id, and by how many
seconds its clock is wrong from then on; ``null`` lets it stand. On its standard output stands ``{}`` once it is ready,
and then for each job the answer with the number of its turn.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from judgetree.modules.memory.turns import QaPair
from judgetree.modules.settings import Settings
from tests.graphs.conversation.talk import CLASS, OIL, SCREW, TalkingLLM, open_conversations, settings_in
from tests.wrong_clock import WrongClock

QUESTIONS = [CLASS, OIL, SCREW]
_PROCESS = """
import sys
from tests.wrong_clock import WrongClock
clock = WrongClock()
from tests.graphs.conversation.skewed_talk import serve
serve(*sys.argv[1:], clock)
"""


def serve(folder: str, checkpoints: str, clock: WrongClock) -> None:
    """Be one of the processes."""
    settings = _settings(Path(folder), checkpoints)
    with open_conversations(settings.home, TalkingLLM(), settings=settings) as talks:
        talk = talks.conversation(_name_in(settings.home))
        talk.turns()
        os.write(1, b"{}\n")
        for line in sys.stdin:
            job = json.loads(line)
            clock.set(job["offset_s"])
            asked = talks.conversation(job["name"]) if job["name"] else talk
            result = asked.ask(job["query"], request_id=job["request_id"])
            number = result.turn["turn_number"] if result.turn else 0
            clock.set(0)  # else closing, and what runs in the background, would wait for a clock that stands
            os.write(1, (json.dumps({"answer": result.answer, "number": number}) + "\n").encode())


@dataclass(frozen=True)
class Job:
    """A question for one of the processes."""

    process: int
    query: str
    request_id: str
    offset_s: float | None
    name: str = ""
    """Name of the conversation; "" for the one that all processes share."""


class SkewedTalk:
    """The processes, from outside."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, checkpoints: str = "", *, processes: int = 2) -> Iterator[Self]:
        command = [sys.executable, "-c", _PROCESS, str(folder), checkpoints]
        with ExitStack() as stack:
            started: list[subprocess.Popen[str]] = []
            for _ in range(processes):
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
                )
                stack.enter_context(process)
                assert process.stdin is not None and process.stdout is not None
                stack.callback(process.stdin.close)
                assert process.stdout.readline() == "{}\n"
                started.append(process)
            yield cls(started)

    def ask(self, jobs: Sequence[Job]) -> list[dict[str, object]]:
        """Ask the questions, those of several processes at once, and wait for all answers; in the order of the jobs."""
        for job in jobs:
            pipe = self._processes[job.process].stdin
            assert pipe is not None
            document = {"query": job.query, "request_id": job.request_id, "offset_s": job.offset_s, "name": job.name}
            pipe.write(json.dumps(document) + "\n")
            pipe.flush()
        pipes = [self._processes[job.process].stdout for job in jobs]
        return [json.loads(pipe.readline()) for pipe in pipes if pipe is not None]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the processes answered, and what is left of it in the store."""

    answered: tuple[str, ...]
    """Ids of the requests that were answered, in the order in which they were asked."""
    numbers: tuple[int, ...]
    """Numbers of their turns, as their processes said."""
    kept: tuple[QaPair, ...]
    """All turns of the conversation, as ``turns`` lists them."""
    seen: int
    """Turns of the active branch, by the summary of the conversation."""

    @property
    def lost(self) -> int:
        """Number of answered turns that are gone."""
        return len(set(self.answered) - {turn["request_id"] for turn in self.kept})

    @property
    def doubled(self) -> int:
        """Number of turns whose number in their branch, or whose request, another turn has."""
        places = [(turn["branch_id"], turn["turn_number"]) for turn in self.kept]
        requests = [turn["request_id"] for turn in self.kept]
        return max(len(each) - len(set(each)) for each in (places, requests))


def talk_with_jumping_clocks(folder: Path, checkpoints: str = "", *, turns: int, seed: int = 7) -> Told:
    """Ask questions on two processes whose clocks jump by up to two minutes; each third time both at once."""
    rng = random.Random(seed)
    answered: list[str] = []
    numbers: list[int] = []
    with SkewedTalk.opened(folder, checkpoints) as talk:
        while len(answered) < turns:
            asked = [0, 1] if len(answered) % 3 == 2 else [rng.randrange(2)]
            jobs = [
                Job(each, rng.choice(QUESTIONS), f"request {len(answered) + at}", rng.choice([60, -60, 0, None]))
                for at, each in enumerate(asked)
            ]
            numbers += [int(str(each["number"])) for each in talk.ask(jobs)]
            answered += [job.request_id for job in jobs]
    settings = _settings(folder, checkpoints)
    with open_conversations(folder, TalkingLLM(), settings=settings) as talks:
        name = _name_in(folder)
        kept = tuple(talks.conversation(name).turns())
        (seen,) = (each.turns for each in talks.summaries() if each.name == name)
    return Told(answered=tuple(answered), numbers=tuple(numbers), kept=kept, seen=seen)


def talk_in_many(folder: Path, checkpoints: str = "", *, conversations: int, turns: int, seed: int = 7) -> list[Told]:
    """Ask each turn of each conversation on one of two processes, which go through them in different orders."""
    rng = random.Random(seed)
    jobs = [
        Job(number % 2, QUESTIONS[turn % 3], f"request {name} {turn}", 0, f"{name} in {folder.name}")
        for name in range(conversations)
        for turn, number in enumerate(rng.sample(range(turns), turns))
    ]
    rng.shuffle(jobs)
    with SkewedTalk.opened(folder, checkpoints) as talk:
        numbers = [int(str(each["number"])) for each in talk.ask(jobs)]
    told = []
    with open_conversations(folder, TalkingLLM(), settings=_settings(folder, checkpoints)) as talks:
        seen = {each.name: each.turns for each in talks.summaries()}
        for name in dict.fromkeys(job.name for job in jobs):
            own = [(job.request_id, number) for job, number in zip(jobs, numbers, strict=True) if job.name == name]
            answered, places = zip(*own, strict=True)
            kept = tuple(talks.conversation(name).turns())
            told.append(Told(answered=answered, numbers=places, kept=kept, seen=seen[name]))
    return told


def _name_in(folder: Path) -> str:
    """Return the name of the conversation, which others may share the database with."""
    return f"skewed in {folder.name}"


def _settings(folder: Path, checkpoints: str) -> Settings:
    return settings_in(folder, **({"checkpoints": checkpoints} if checkpoints else {}))
