"""Turns in processes that are killed: each is forked from a warm one, so that it begins at once.

The warm process reads jobs from its standard input, a JSON object a line, and runs one after the other in a child each.
On its standard output stand ``begun PID`` as a child is about to ask, ``done JSON`` if it was answered, and ``ended``
once the child is gone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from judgetree.graphs.conversation.turn.context import TurnLimits
from judgetree.graphs.conversations import Conversations
from judgetree.modules.calls.messages import Message
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.memory.turns import QaPair
from tests.graphs.conversation.talk import ANSWERS, CLASS, OIL, TalkingLLM, open_conversations, settings_in
from tests.modules.fake_embeddings import BagOfWordsEmbedder

NAME = "killed"
FOLLOW_UP, ANSWER = "And its oil?", ANSWERS[OIL]
CALLS_A_FOLLOW_UP = 3


class CountingLLM(TalkingLLM):
    """Writes each call down in a file before it answers, so that a kill does not take the count along."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def _say(self, messages: Sequence[Message]) -> str:
        with self._log.open("a") as log:
            log.write("call\n")
        return super()._say(messages)


def opened_in(folder: Path) -> Conversations:
    """Conversations that show all turns of a talk to the model."""
    url = (folder / "checkpoints").read_text()
    settings = settings_in(folder, checkpoints=url) if url else settings_in(folder)
    limits = TurnLimits(max_recent_turns=100)
    return open_conversations(folder, CountingLLM(folder / "calls"), limits=limits, settings=settings)


def answer_one(folder: Path, query: str, request_id: str) -> None:
    """Be the child."""
    with opened_in(folder) as talks:
        talk = talks.conversation(NAME)
        talk.turns()  # opens store and memory
        os.write(1, f"begun {os.getpid()}\n".encode())
        result = talk.ask(query, request_id=request_id)
        os.write(1, f"done {json.dumps({'answer': result.answer, 'turn_id': result.turn_id})}\n".encode())


def serve(folder: Path) -> None:
    """Be the warm process."""
    import pymilvus  # noqa: F401 - its children would each take a second for that

    child = 0
    for line in sys.stdin:
        if child:
            os.waitpid(child, 0)
        child = os.fork()
        if not child:
            try:
                answer_one(folder, **json.loads(line))
            except Exception:  # noqa: BLE001 - nobody else would tell of it
                traceback.print_exc()
            finally:
                os._exit(0)
        # Its id stays its own, for whoever is about to kill it, until the next job.
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        os.write(1, b"ended\n")


@dataclass(frozen=True, kw_only=True)
class Talk:
    """What a talk came to whose turns were killed and asked again."""

    kills: int
    asked: tuple[str, ...]
    """Ids of the requests, in order."""
    history: tuple[QaPair, ...]
    remembered: tuple[QaPair, ...]
    calls: int
    """At the model, those of killed turns included."""

    @property
    def is_whole(self) -> bool:
        """Whether state and memory have each turn that was asked for exactly once, with its answer."""
        told = [(turn["request_id"], turn["answer"]) for turn in self.history]
        expected = [(self.asked[0], ANSWERS[CLASS]), *((each, ANSWER) for each in self.asked[1:])]
        here, there = (Counter(turn["turn_id"] for turn in turns) for turns in (self.history, self.remembered))
        return told == expected and here == there and set(here.values()) == {1}

    @property
    def calls_made_twice(self) -> int:
        """Calls beyond those of the same talk without a kill."""
        return self.calls - 1 - CALLS_A_FOLLOW_UP * (len(self.asked) - 1)


class KillableTalk:
    """A talk in a folder, from outside of the processes in which its turns are answered."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        self._jobs: IO[str] = process.stdin
        self._told: IO[str] = process.stdout

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        command = [sys.executable, "-m", "tests.graphs.conversation.killed_talk", str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        ) as process:
            try:
                yield cls(process)
            finally:
                process.stdin.close()  # type: ignore[union-attr]
                process.wait(60)

    def ask(self, query: str, request_id: str) -> float:
        """Ask, and wait for the answer; the seconds that it took."""
        self._begin(query, request_id)
        started = time.perf_counter()
        done = self._told.readline()
        taken_s = time.perf_counter() - started
        assert done.startswith("done "), done
        self._told.readline()
        return taken_s

    def ask_and_kill(self, query: str, request_id: str, *, after_s: float) -> bool:
        """Ask, and kill that process; whether it was killed before it had told the answer."""
        child = self._begin(query, request_id)
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
        return not list(iter(self._told.readline, "ended\n"))

    def _begin(self, query: str, request_id: str) -> int:
        self._jobs.write(json.dumps({"query": query, "request_id": request_id}) + "\n")
        self._jobs.flush()
        begun = self._told.readline()
        assert begun.startswith("begun "), begun
        return int(begun.split()[1])


def kill_turns(folder: Path, *, kills: int, seed: int = 7, checkpoints: str = "") -> Talk:
    """Ask follow-ups; each is killed at a random moment, spread over the time that one takes, and asked again."""
    (folder / "checkpoints").write_text(checkpoints)
    rng = random.Random(seed)
    asked = ["first", "measured"]
    killed = 0
    with KillableTalk.opened(folder) as talk:
        talk.ask(CLASS, "first")
        duration_s = talk.ask(FOLLOW_UP, "measured")
        while killed < kills and len(asked) < 3 * kills + 2:
            asked.append(f"request {len(asked)}")
            moment_s = duration_s * (killed + rng.random()) / kills
            if talk.ask_and_kill(FOLLOW_UP, asked[-1], after_s=moment_s):
                killed += 1
            else:  # the first was measured on a busier machine
                duration_s = min(duration_s, moment_s)
            talk.ask(FOLLOW_UP, asked[-1])
    with opened_in(folder) as talks:
        talk_again = talks.conversation(NAME)
        history, conversation_id = tuple(talk_again.history()), talk_again.conversation_id
    with ConversationMemory(BagOfWordsEmbedder(), uri=settings_in(folder).milvus_address) as memory:
        remembered = tuple(memory.turns_of(conversation_id))
    calls = len((folder / "calls").read_text().splitlines())
    return Talk(kills=killed, asked=tuple(asked), history=history, remembered=remembered, calls=calls)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
