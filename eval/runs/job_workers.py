"""The workers of a run as its driver sees them: each question goes to a free one, and to another if that one dies."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...modules.calls.record import Spend
from ...modules.errors import UserError
from ..rows.store import RunRow
from .asking import JobResult
from .jobs import Job
from .limits import Spending
from .worker import NotOpened

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_DEATHS = 5
"""Workers that may die with the same question before the run stops."""
MOST_OPENINGS = 10
"""Attempts to start a worker in the place of one that died; they take some three minutes."""
_LONGEST_REST_S = 30.0
_PATIENCE_S = 30.0
_CLOSING_S = 10.0
_MOST_SAID = 300


@dataclass(eq=False)
class WorkerHandle:
    """A worker as the driver sees it."""

    actor: Any
    open: Callable[[str], Any]
    """Opens it under a name in the ledger; returns Ray's reference to the outcome."""
    holder: str = field(default_factory=lambda: uuid.uuid4().hex)
    busy: int = 0
    is_up: bool = True
    given_up: UserError | None = None
    """Why no worker takes its place; None while one may."""
    process: str = "A process"
    """The process that answered last, and its machine."""
    is_silent: bool = False


@dataclass(eq=False)
class JobWorkers:
    """Gives each job to the worker with the fewest; gives it to another one if that one dies."""

    hands: Sequence[WorkerHandle]
    ledger: Any
    deaths: tuple[type[Exception], ...]
    """Ray's errors for a worker that has died."""
    before: Callable[[Job], Sequence[RunRow]]
    spending: Spending
    """The driver's view of the ledger."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits the given seconds."""
    patience_s: float = _PATIENCE_S
    """Time after which a worker that does not answer is named."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _revivals: set[asyncio.Task[None]] = field(default_factory=set)

    async def ask(self, job: Job) -> JobResult | None:
        """Answer one job, see ``Asking``."""
        for _ in range(MOST_DEATHS):
            hand = await self._free_hand()
            holder = hand.holder
            hand.busy += 1
            try:
                asked = await hand.actor.ask.remote(job, self.before(job))
            except self.deaths as error:
                self._lost(hand, holder, error)
                continue
            finally:
                hand.busy -= 1
            if isinstance(asked, NotOpened):
                self._lost(hand, holder, "it was started anew between two questions")
                continue
            if isinstance(asked, UserError):
                raise asked
            if self.ledger is not None:
                await self._book(asked)
            return asked if isinstance(asked, JobResult) else None
        raise UserError(
            f"{MOST_DEATHS} workers died while they asked the question {job.question.id!r} of {job.system}, and others "
            "beside it, perhaps for want of memory. Finished rows are kept; run the same command with fewer workers, "
            "or without --workers, to go on."
        )

    async def owe(self, open_payments: Mapping[str, Spend]) -> None:
        """Tell the ledger of all workers what earlier starts have paid for questions without a row, see ``Asking``."""
        if self.ledger is not None:
            with self._ledger_errors():
                await self.ledger.owe.remote(open_payments)

    async def _book(self, asked: JobResult | None) -> None:
        with self._ledger_errors():
            if asked is None:
                self.spending.adopt(*(await self.ledger.standing.remote()))
            else:
                await self.ledger.add.remote(asked.row)

    @contextmanager
    def _ledger_errors(self) -> Iterator[None]:
        try:
            yield
        except self.deaths as error:
            raise UserError(
                f"The process that counts what all workers spend has died ({str(error)[:200].rstrip('.')}). Finished "
                "rows are kept; run the same command to go on."
            ) from error

    async def watch(self) -> None:
        """Warn of workers that do not answer, such as stopped ones: Ray takes these for busy."""
        while True:
            await asyncio.gather(*(self._ping(hand) for hand in self.hands if hand.is_up))
            await self.sleep(self.patience_s)

    async def _ping(self, hand: WorkerHandle) -> None:
        with suppress(*self.deaths):  # its questions find it dead
            try:
                hand.process = await asyncio.wait_for(_awaited(hand.actor.ping.remote()), self.patience_s)
                hand.is_silent = False
            except TimeoutError:
                if not hand.is_silent:
                    logger.warning(
                        "%s, a worker, has not answered for %.0f s; its questions wait. It may be stopped "
                        "(kill -CONT), or its machine short of memory. If it is killed, another one asks them again.",
                        hand.process,
                        self.patience_s,
                    )
                hand.is_silent = True

    async def aclose(self) -> None:
        """Close the sessions of the workers that live."""
        for revival in self._revivals:
            revival.cancel()
        closing = [asyncio.ensure_future(_awaited(hand.actor.close.remote())) for hand in self.hands if hand.is_up]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSING_S)
        for task in closing:
            task.cancel()

    async def _free_hand(self) -> WorkerHandle:
        async with self._changed:
            while not (up := [hand for hand in self.hands if hand.is_up]):
                reasons = [hand.given_up for hand in self.hands if hand.given_up is not None]
                if len(reasons) == len(self.hands):
                    raise reasons[0]
                await self._changed.wait()
        return min(up, key=lambda hand: hand.busy)

    def _lost(self, hand: WorkerHandle, holder: str, error: object) -> None:
        # Each of its questions finds it dead, some only once another worker has its place, under another name.
        if hand.is_up and hand.holder == holder:
            logger.warning("A worker died; another one is started, and its questions are asked again.")
            logger.info("It died of: %s", error)
            hand.is_up = False
            revival = asyncio.get_running_loop().create_task(self._revive(hand))
            self._revivals.add(revival)
            revival.add_done_callback(self._revivals.discard)

    async def _revive(self, hand: WorkerHandle) -> None:
        try:
            if self.ledger is not None:
                await self.ledger.release.remote(hand.holder)
            hand.given_up = await self._open_again(hand)
        except Exception as error:  # noqa: BLE001 - raised in this task it would not end the questions that wait
            hand.given_up = UserError(
                f"A worker died, and none could take its place: {str(error)[:300].rstrip('.')}. Finished rows are "
                "kept; run the same command to go on."
            )
        async with self._changed:
            hand.is_up = hand.given_up is None
            self._changed.notify_all()

    async def _open_again(self, hand: WorkerHandle) -> UserError | None:
        """Start a worker in the place of one that died; returns the last error if that fails again and again."""
        problem: Exception | None = None
        for number in range(MOST_OPENINGS):
            hand.holder = uuid.uuid4().hex
            try:
                problem = await hand.open(hand.holder)
            except self.deaths as error:
                problem = error
            if problem is None:
                return None
            said = " ".join(str(problem).split())[:_MOST_SAID]
            logger.warning("No worker could be started in the place of one that died; trying again: %s", said)
            await self.sleep(min(2.0**number, _LONGEST_REST_S))
        if problem is not None and not isinstance(problem, UserError):
            raise problem
        return problem


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


def finish_opening(
    hand: WorkerHandle,
    answer: Any,
    get: Callable[[Any], UserError | None],
    deaths: tuple[type[Exception], ...],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a worker is open; one that dies meanwhile, which Ray starts again, is opened again.

    Raises:
        UserError: It cannot open the index or a model, or five openings ended in its death.
    """
    died: Exception | None = None
    for number in range(MOST_DEATHS):
        if died is not None:
            logger.warning("A worker died while it opened the index and the models; it is started again.")
            sleep(2.0**number)
            answer = hand.open(hand.holder)
        try:
            error = get(answer)
        except deaths as death:
            died = death
            continue
        if error is not None:
            raise error
        return
    raise UserError(
        f"A worker died {MOST_DEATHS} times while it opened the index, the models and the parts of the run: "
        f"{' '.join(str(died).split())[:_MOST_SAID].rstrip('.')}. Run the same command with fewer workers, or without "
        "--workers, which shows what ends it."
    ) from died
