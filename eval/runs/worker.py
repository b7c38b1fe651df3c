"""One worker of a run: a process that opens its sessions once and has many questions in flight."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...graphs.config.variants import read_variant
from ...modules.background_loop import background_loop
from ...modules.calls.prices import load_prices
from ...modules.errors import UserError
from ...modules.parts import export_objects, import_objects
from ...modules.settings import Settings
from ..datasets.questions import Dataset
from ..rows.store import Place, RunRow, RunStore
from .asking import Asking, JobResult, asking_here
from .experiment import Experiment
from .jobs import Job
from .ledger import RemoteLedger, WorkerLimits
from .limits import Spending
from .services import Services

_MOST_SAID = 300


@dataclass(frozen=True, kw_only=True)
class WorkOrder:
    """What a worker needs to open its sessions."""

    experiment: Experiment
    dataset: Dataset
    settings: Settings
    folder: Path
    run_id: str
    jobs: tuple[Job, ...]
    """One job of each system, repeat and freshness."""
    parts: Mapping[str, object]
    """Parts of one's own that were given as objects, by their names in experiment and settings."""


def order_of(services: Services, store: RunStore, run_id: str, jobs: Sequence[Job]) -> WorkOrder:
    """Return the order for workers that ask these jobs with the services of this process."""
    kinds = {(job.system, job.repeat, job.fresh): job for job in jobs}
    return WorkOrder(
        experiment=services.experiment,
        dataset=services.dataset,
        settings=services.settings,
        folder=store.folder.resolve(),
        run_id=run_id,
        jobs=tuple(kinds.values()),
        parts=export_objects(
            {
                *_texts(services.experiment.model_dump()),
                *_texts(services.settings.model_dump()),
                *_texts_of_variants(services.experiment.systems),
            }
        ),
    )


def _texts_of_variants(labels: Iterable[str]) -> Iterator[str]:
    """Yield the names of systems, and the texts among the options that they have of their own."""
    for variant in map(read_variant, labels):
        yield variant.system
        yield from _texts(variant.options.given)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, inside lists and mappings too."""
    if isinstance(value, str):
        yield str(value)
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in _texts(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in _texts(each))


@dataclass(frozen=True)
class NotOpened:
    """The answer of a worker that Ray has started anew while none of its questions was under way."""


class Worker:
    """One process that asks questions; Ray runs its methods on a loop of its own.

    Errors are returned, not raised: Ray would raise them with its own text.
    """

    def __init__(self) -> None:
        self._newest: dict[Place, RunRow] = {}
        self._opening = asyncio.Lock()
        self._asking: Asking | None = None
        self._services = ExitStack()
        self._closing = AsyncExitStack()

    async def open(
        self, order: WorkOrder, max_concurrency: int, ledger: RemoteLedger | None, holder: str
    ) -> UserError | None:
        """Open index, models and sessions; does nothing the second time. ``holder`` names it in the ledger."""
        try:
            settings = order.settings.model_copy(update={"max_concurrency": max_concurrency})
            import_objects(order.parts)
            async with self._opening:
                if self._asking is None:
                    opened = _services_of(order, settings, ledger, holder)
                    services = await asyncio.to_thread(self._services.enter_context, opened)
                    opening = asking_here(services, RunStore(order.folder), order.run_id, order.jobs, self._newest)
                    self._asking = await background_loop().arun(self._closing.enter_async_context(opening))
        except UserError as error:
            return error
        except KeyboardInterrupt as error:
            return _interrupted("index, models and parts were opened", error)
        return None

    async def ask(self, job: Job, before: Sequence[RunRow]) -> JobResult | UserError | NotOpened | None:
        """Answer one job, see ``Asking``; ``before`` are the rows of the turns that it may follow."""
        if self._asking is None:
            return NotOpened()
        self._newest.update({row.place: row for row in before})
        try:
            return await background_loop().arun(self._asking.ask(job))
        except UserError as error:
            return error
        except KeyboardInterrupt as error:
            return _interrupted(f"the question {job.question.id!r} of {job.system} was asked", error)

    async def ping(self) -> str:
        """Return this process and its machine."""
        return f"Process {os.getpid()} on {socket.gethostname()}"

    async def close(self) -> None:
        """Close sessions, models and index."""
        await background_loop().arun(self._closing.aclose())
        await asyncio.to_thread(self._services.close)


def _interrupted(meanwhile: str, error: KeyboardInterrupt) -> UserError:
    """Return the error for a part that raised KeyboardInterrupt: Ctrl-C is the driver's, and no signal reaches a loop.

    Raised here, it would stop the loop that Ray runs this worker on: the driver would fail without a reason, or wait
    for ever.
    """
    said = f": {str(error)[:_MOST_SAID]}" if str(error) else ""
    return UserError(
        f"A part of the run raised KeyboardInterrupt in a worker while {meanwhile}{said}. Finished rows are kept; let "
        "the part raise another exception, and run the same command to go on."
    )


def _services_of(order: WorkOrder, settings: Settings, ledger: RemoteLedger | None, holder: str) -> Services:
    prices = load_prices(settings.home)
    if ledger is None:
        return Services(
            order.experiment, order.dataset, settings, Spending(order.experiment, prices=prices), is_indexed=True
        )
    remote = _Remote(ledger)
    limits = WorkerLimits(remote, holder, prices)
    return Services(order.experiment, order.dataset, settings, limits, admissions=remote, is_indexed=True)


class _Remote:
    """The ledger in its actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def reserve(self, holder: str, thread_id: str, expected: object) -> Any:
        return await self._actor.reserve.remote(holder, thread_id, expected)

    async def settle(self, number: int, actual: object) -> None:
        await self._actor.settle.remote(number, actual)

    async def admit(self, endpoint: str, tokens: int) -> Any:
        return await self._actor.admit.remote(endpoint, tokens)

    async def correct(self, number: int, tokens: int) -> None:
        await self._actor.correct.remote(number, tokens)

    async def pause(self, endpoint: str, for_s: float, spread_s: float) -> None:
        await self._actor.pause.remote(endpoint, for_s, spread_s)
