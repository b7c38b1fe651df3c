"""A few streams of two workers that are killed; ``benchmarks.serving_kills`` has many."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchmarks.serving_kills import LATENCY_S, lead, rows_of
from benchmarks.streaming_clients import Event, Watched, take
from benchmarks.workers import site
from tests.database_servers import require_postgres


@pytest.mark.slow
def test_what_is_cut_off_by_kills_is_taken_over_by_the_other_worker() -> None:
    require_postgres()
    with site(workers=2, latency_s=LATENCY_S) as here:
        outcome = asyncio.run(lead(here, kills=3, streams=8))
    assert [row for row in rows_of(outcome) if not row.holds] == []
    assert len(outcome.kills) == 3
    assert outcome.traffic.broken.total() >= 8, "or nothing was tried"
    assert any(told.attempts > 1 for answers in outcome.traffic.told.values() for told in answers)


def event(name: str, number: int, data: object) -> Event:
    return Event(name=name, id=f"{number}-{'0' * 32}", data=json.dumps(data))


def test_a_watched_tree_is_patched_on() -> None:
    watched = Watched(thread_id="t")
    take(watched, event("snapshot", 1, {"answer": ""}), is_comeback=False)
    take(watched, event("delta", 2, [{"op": "replace", "path": "/answer", "value": "40 mm"}]), is_comeback=True)
    take(watched, event("end", 2, {}), is_comeback=False)
    assert (watched.tree, watched.faults, watched.is_over) == ({"answer": "40 mm"}, [], True)


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (event("snapshot", 2, {"answer": ""}), "a snapshot of what was known"),
        (event("delta", 3, []), "event 3 after 1"),
        (event("delta", 1, []), "event 1 after 1"),
    ],
)
def test_events_that_are_needless_missing_or_doubled_are_noted(second: Event, fault: str) -> None:
    watched = Watched(thread_id="t")
    take(watched, event("snapshot", 1, {"answer": ""}), is_comeback=False)
    take(watched, second, is_comeback=True)
    assert watched.faults == [fault]
