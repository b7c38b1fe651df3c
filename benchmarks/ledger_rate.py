"""Admissions a second that the ledger of a run sustains with 2 and with 8 workers, which do nothing else.

The processor time of the ledger's process says what it could do on a core of its own, however busy the machine is.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.ledger import RunLedger
from judgetree.modules.calls.prices import Prices
from judgetree.modules.cluster import HERE, connected

from .measurement import Row

ADMISSIONS = 2000
AT_ONCE = 16
MANY = 1_000_000_000
_UNLIMITED = 100_000


class _Timed(RunLedger):
    async def cpu_s(self) -> float:
        """Return the processor time of this process."""
        return time.process_time()


class _Caller:
    async def admit(self, ledger: Any, count: int) -> None:
        """Ask for admissions, ``AT_ONCE`` at once."""

        async def one_by_one() -> None:
            for _ in range(count // AT_ONCE):
                await ledger.admit.remote("model", 100)

        await asyncio.gather(*(one_by_one() for _ in range(AT_ONCE)))


def _measured(ray: Any, workers: int) -> list[Row]:
    experiment = Experiment.model_validate({"dataset": "hotpotqa:x.json"})
    ledger = ray.remote(_Timed).options(num_cpus=0, max_concurrency=_UNLIMITED)
    actor = ledger.remote(experiment, [], Prices({}), requests_per_minute=MANY)
    callers = [ray.remote(_Caller).options(num_cpus=0).remote() for _ in range(workers)]
    ray.get([caller.admit.remote(actor, AT_ONCE) for caller in callers])
    count = ADMISSIONS // workers // AT_ONCE * AT_ONCE
    before, started = ray.get(actor.cpu_s.remote()), time.perf_counter()
    ray.get([caller.admit.remote(actor, count) for caller in callers])
    wall_s, cpu_s = time.perf_counter() - started, ray.get(actor.cpu_s.remote()) - before
    made = count * workers
    for each in (actor, *callers):
        ray.kill(each)
    return [
        Row(f"{workers} workers: admissions a second", f"{made / wall_s:,.0f}"),
        Row(f"{workers} workers: the ledger's CPU an admission", f"{cpu_s / made * 1000:.2f} ms"),
    ]


def measure() -> list[Row]:
    """Measure with 2 and with 8 workers."""
    with connected(HERE, workers=2) as ray:
        return [row for workers in (2, 8) for row in _measured(ray, workers)]
