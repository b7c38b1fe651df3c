"""Runs over several processes by Ray: each worker opens one session a system and has many questions in flight.

The process that was started, the driver, plans the jobs, gives them to the workers and writes the rows, each of them
once. A question whose worker dies is asked again by another one, from its checkpoints and its call journal:
what was paid is not paid again.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ...graphs.threads.checkpoints import is_postgres
from ...modules.calls.prices import Prices, load_prices
from ...modules.cluster import HERE, connected
from ...modules.errors import SettingsError, UserError
from ...modules.index.connection import is_address
from ...modules.llm.factory import is_local
from ...modules.settings import Settings
from ..datasets.dialogue_turns import turn_of
from ..datasets.questions import Dataset
from ..rows.store import Place, RunRow
from .asking import Asked, Asking
from .experiment import Experiment
from .jobs import Job
from .ledger import Ledger
from .limits import Spending
from .runner import OpenAsking
from .worker import Worker, WorkOrder

if TYPE_CHECKING:
    from types import ModuleType

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
_UNLIMITED = 100_000
"""Calls that an actor may have under way; what limits them is the experiment's concurrency."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where the questions of a run are asked.

    >>> Workers(count=2).address
    'local'
    """

    count: int
    """Number of worker processes, at least 1."""
    address: str = HERE
    """``local`` for a Ray of this run on this machine; or the address of a cluster."""


@dataclass(eq=False)
class _Hand:
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
class _AskingWorkers:
    """Gives each job to the worker with the fewest; gives it to another one if that one dies."""

    hands: Sequence[_Hand]
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

    async def ask(self, job: Job) -> Asked | None:
        """Answer one job, see ``Asking``."""
        for _ in range(MOST_DEATHS):
            hand = await self._free_hand()
            hand.busy += 1
            try:
                asked = await hand.actor.ask.remote(job, self.before(job))
            except self.deaths as error:
                self._lost(hand, error)
                continue
            finally:
                hand.busy -= 1
            if isinstance(asked, UserError):
                raise asked
            if self.ledger is not None:
                await self._book(asked)
            return asked if isinstance(asked, Asked) else None
        raise UserError(
            f"{MOST_DEATHS} workers died while they asked the question {job.question.id!r} of {job.system}, and others "
            "beside it, perhaps for want of memory. Finished rows are kept; run the same command with fewer workers, "
            "or without --workers, to go on."
        )

    async def _book(self, asked: Asked | None) -> None:
        try:
            if asked is None:
                self.spending.adopt(*(await self.ledger.standing.remote()))
            else:
                await self.ledger.add.remote(asked.row)
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

    async def _ping(self, hand: _Hand) -> None:
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
        for revival in self._revivals:
            revival.cancel()
        closing = [asyncio.ensure_future(_awaited(hand.actor.close.remote())) for hand in self.hands if hand.is_up]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSING_S)
        for task in closing:
            task.cancel()

    async def _free_hand(self) -> _Hand:
        async with self._changed:
            while not (up := [hand for hand in self.hands if hand.is_up]):
                reasons = [hand.given_up for hand in self.hands if hand.given_up is not None]
                if len(reasons) == len(self.hands):
                    raise reasons[0]
                await self._changed.wait()
        return min(up, key=lambda hand: hand.busy)

    def _lost(self, hand: _Hand, error: Exception) -> None:
        if hand.is_up:  # each of its questions finds it dead
            logger.warning("A worker died; another one is started, and its questions are asked again.")
            logger.info("It died of: %s", error)
            hand.is_up = False
            revival = asyncio.get_running_loop().create_task(self._revive(hand))
            self._revivals.add(revival)
            revival.add_done_callback(self._revivals.discard)

    async def _revive(self, hand: _Hand) -> None:
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

    async def _open_again(self, hand: _Hand) -> UserError | None:
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


def refuse_unfit(workers: Workers, settings: Settings, experiment: Experiment) -> None:
    """Check that a run can be spread over these workers.

    Raises:
        SettingsError: A model runs inside the process, there are more workers than calls at once, or a cluster cannot
            reach the index or the checkpoints.
    """
    local = [spec for spec in (settings.llm_spec, settings.judge_spec) if is_local(spec)]
    if local:
        raise SettingsError(
            f"The model {local[0]!r} answers one call at a time on this machine, so that workers would wait for it. "
            "Leave out --workers, or name a model behind an endpoint."
        )
    if workers.count > settings.max_concurrency:
        raise SettingsError(
            f"{workers.count} workers share {settings.max_concurrency} calls at once (JUDGETREE_MAX_CONCURRENCY). "
            "Give at most as many workers, or set it higher."
        )


def refuse_files_of_one_machine(ray: ModuleType, settings: Settings) -> None:
    """Check that every node of a cluster reaches index and checkpoints.

    Raises:
        SettingsError: There are nodes on other machines, and the index or the checkpoints are files of this one.
    """
    machines = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    shared = is_postgres(settings.checkpoint_url) and is_address(settings.milvus_address)
    if len(machines) > 1 and not shared:
        raise SettingsError(
            f"The cluster has {len(machines)} machines, but the index or the checkpoints are files of this one. Set "
            "JUDGETREE_MILVUS_URI to the address of a Milvus server and JUDGETREE_CHECKPOINTS to a PostgreSQL URL."
        )


@contextmanager
def open_cluster(workers: Workers, settings: Settings, experiment: Experiment) -> Iterator[ModuleType]:
    """Start or reach the Ray of a run, before its index is opened: a process with an open index forks badly.

    Raises:
        SettingsError: The run cannot be spread, or Ray cannot be reached.
        DependencyError: The extra ``ray`` is not installed.
    """
    refuse_unfit(workers, settings, experiment)
    with connected(workers.address, workers=workers.count) as ray:
        refuse_files_of_one_machine(ray, settings)
        yield ray


@contextmanager
def crew_of(
    ray: ModuleType,
    workers: Workers,
    order: WorkOrder,
    spending: Spending,
    attempts: Sequence[RunRow],
    on_setup: Callable[[int, int, str], None] | None,
) -> Iterator[OpenAsking]:
    """Start the workers of a run and open their sessions; the end of the block ends them.

    Raises:
        UserError: A worker cannot open the index or a model.
    """
    settings, report = order.settings, on_setup or (lambda done, total, stage: None)
    report(0, workers.count, "workers")
    given = _sent(ray, order)
    ledger = _start_ledger(ray, order, attempts, load_prices(settings.home))
    options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": 0, "max_concurrency": _UNLIMITED}
    actor_class = ray.remote(Worker).options(**options, scheduling_strategy="SPREAD")
    share, rest = divmod(settings.max_concurrency, workers.count)

    def hand_of(number: int) -> _Hand:
        actor = actor_class.remote()
        return _Hand(actor, lambda holder: actor.open.remote(given, share + (number < rest), ledger, holder))

    hands = [hand_of(number) for number in range(workers.count)]
    deaths = (ray.exceptions.RayActorError,)
    for done, (hand, answer) in enumerate([(hand, hand.open(hand.holder)) for hand in hands], start=1):
        finish_opening(hand, answer, ray.get, deaths)
        report(done, workers.count, "workers")

    @asynccontextmanager
    async def asking(newest: Mapping[Place, RunRow]) -> AsyncIterator[Asking]:
        crew = _AskingWorkers(hands, ledger, deaths, _rows_before(order.dataset, newest), spending)
        watching = asyncio.get_running_loop().create_task(crew.watch())
        try:
            yield crew
        finally:
            watching.cancel()
            await crew.aclose()

    try:
        yield asking
    finally:
        for hand in hands:
            ray.kill(hand.actor)


def finish_opening(
    hand: _Hand,
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


def _sent(ray: ModuleType, order: WorkOrder) -> Any:
    try:
        return ray.put(order)
    except TypeError as error:
        named = ", ".join(map(repr, order.parts)) or "the experiment"
        raise SettingsError(
            f"{named} cannot be sent to workers: {str(error).splitlines()[0][:200]} Name a class or function by its "
            "import path, which each worker makes for itself, or leave out the workers."
        ) from error


def _start_ledger(ray: ModuleType, order: WorkOrder, attempts: Sequence[RunRow], prices: Prices) -> Any:
    """Start the ledger of a run with limits; None without limits."""
    experiment, settings = order.experiment, order.settings
    rates = {name: getattr(settings, name) for name in ("requests_per_minute", "tokens_per_minute")}
    if not any((experiment.max_calls, experiment.max_tokens, experiment.max_cost, *rates.values())):
        return None
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        node_id=ray.get_runtime_context().get_node_id(), soft=False
    )  # it lives as long as the driver's node, as the run does
    actor = ray.remote(Ledger).options(num_cpus=0, max_concurrency=_UNLIMITED, scheduling_strategy=here)
    return actor.remote(experiment, list(attempts), prices, **rates)


def _rows_before(dataset: Dataset, newest: Mapping[Place, RunRow]) -> Callable[[Job], Sequence[RunRow]]:
    """Return a function from a job to the rows of its dialogue; none for a question that stands alone."""
    dialogues: dict[str, list[str]] = {}
    for question in dataset.questions:
        if question.turn is not None:
            dialogues.setdefault(turn_of(question).dialogue_id, []).append(question.id)

    def before(job: Job) -> Sequence[RunRow]:
        if job.question.turn is None:
            return ()
        places = ((job.system, each, job.repeat) for each in dialogues.get(job.dialogue_id, ()))
        return [newest[place] for place in places if place in newest]

    return before
