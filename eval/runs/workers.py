"""Runs over several processes by Ray: each worker opens one session a system and has many questions in flight.

The process that was started, the driver, plans the jobs, gives them to the workers and writes the rows, each of them
once. A question whose worker dies is asked again by another one, from its checkpoints and its call journal:
what was paid is not paid again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...graphs.stores.registry import is_postgres
from ...modules.calls.prices import Prices, load_prices
from ...modules.calls.record import Spend
from ...modules.cluster import HERE, connected
from ...modules.errors import SettingsError
from ...modules.index.connection import is_address
from ...modules.llm.factory import is_local
from ...modules.settings import Settings
from ..datasets.dialogue_turns import turn_of
from ..datasets.questions import Dataset
from ..rows.store import Place, RunRow
from .asking import Asking
from .experiment import Experiment
from .job_workers import JobWorkers, WorkerHandle, finish_opening
from .jobs import Job
from .ledger import RunLedger
from .limits import Spending
from .runner import OpenAsking
from .worker import Worker, WorkOrder

if TYPE_CHECKING:
    from types import ModuleType

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


def check_fit_for_workers(workers: Workers, settings: Settings, experiment: Experiment) -> None:
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


def check_shared_files(ray: ModuleType, settings: Settings) -> None:
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
    check_fit_for_workers(workers, settings, experiment)
    with connected(workers.address, workers=workers.count) as ray:
        check_shared_files(ray, settings)
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
    ledger = _start_ledger(ray, order, attempts, load_prices(settings.home), spending.elsewhere)
    options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": 0, "max_concurrency": _UNLIMITED}
    actor_class = ray.remote(Worker).options(**options, scheduling_strategy="SPREAD")
    share, rest = divmod(settings.max_concurrency, workers.count)

    def hand_of(number: int) -> WorkerHandle:
        actor = actor_class.remote()
        return WorkerHandle(actor, lambda holder: actor.open.remote(given, share + (number < rest), ledger, holder))

    hands = [hand_of(number) for number in range(workers.count)]
    deaths = (ray.exceptions.RayActorError,)
    for done, (hand, answer) in enumerate([(hand, hand.open(hand.holder)) for hand in hands], start=1):
        finish_opening(hand, answer, ray.get, deaths)
        report(done, workers.count, "workers")

    @asynccontextmanager
    async def asking(newest: Mapping[Place, RunRow]) -> AsyncIterator[Asking]:
        crew = JobWorkers(hands, ledger, deaths, _rows_before(order.dataset, newest), spending)
        watching = asyncio.get_running_loop().create_task(crew.watch())
        try:
            yield crew
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await crew.aclose()

    try:
        yield asking
    finally:
        for hand in hands:
            ray.kill(hand.actor)


def _sent(ray: ModuleType, order: WorkOrder) -> Any:
    try:
        return ray.put(order)
    except TypeError as error:
        named = ", ".join(map(repr, order.parts)) or "the experiment"
        raise SettingsError(
            f"{named} cannot be sent to workers: {str(error).splitlines()[0][:200]} Name a class or function by its "
            "import path, which each worker makes for itself, or leave out the workers."
        ) from error


def _start_ledger(
    ray: ModuleType, order: WorkOrder, attempts: Sequence[RunRow], prices: Prices, paid_elsewhere: Spend
) -> Any:
    """Start the ledger of a run with limits; None without limits."""
    experiment, settings = order.experiment, order.settings
    rates = {name: getattr(settings, name) for name in ("requests_per_minute", "tokens_per_minute")}
    if not any((experiment.max_calls, experiment.max_tokens, experiment.max_cost, *rates.values())):
        return None
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        node_id=ray.get_runtime_context().get_node_id(), soft=False
    )  # it lives as long as the driver's node, as the run does
    actor = ray.remote(RunLedger).options(num_cpus=0, max_concurrency=_UNLIMITED, scheduling_strategy=here)
    return actor.remote(experiment, list(attempts), prices, paid_elsewhere=paid_elsewhere, **rates)


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
