"""The pool of workers with a Ray whose outcomes the test orders."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from judgetree.modules.embedding.worker_pool import MOST_DEATHS, EmbeddingWorkerHandle, WorkerPool
from judgetree.modules.errors import UserError


class Died(Exception):
    """Of Ray, when a worker dies."""


class Failed(Died):
    """Of Ray, when a task raises."""


class Unreadable(Died):
    """Of Ray, when an outcome cannot be read."""


class OrderedRay:
    """Gives outcomes by the text of a batch, the last call first; an exception is raised, None keeps a call waiting."""

    exceptions = SimpleNamespace(RayError=Died, RayTaskError=Failed, RaySystemError=Unreadable)

    def __init__(self, **outcomes: object) -> None:
        self.outcomes = outcomes
        self.embedded: list[str] = []
        self.waits = 0

    def hand(self) -> EmbeddingWorkerHandle:
        return EmbeddingWorkerHandle(open=lambda: ("open", object()), embed=self._embed)

    def _embed(self, texts: list[str]) -> tuple[str, object]:
        self.embedded.append(texts[0])
        return texts[0], object()

    def wait(self, calls: list[tuple[str, object]], timeout: float) -> tuple[list[tuple[str, object]], object]:
        self.waits += 1
        is_late = calls[-1][0] in ("open", "slow") and self.waits <= self.outcomes.get("late", 0)
        return ([] if is_late else calls[-1:]), None

    def get(self, call: tuple[str, object]) -> object:
        found = self.outcomes.get(call[0])
        if isinstance(found, Died):
            raise found
        return found


def pool_of(ray: OrderedRay, *batches: str) -> WorkerPool:
    return WorkerPool(ray, [ray.hand()], [[text] for text in batches])  # type: ignore[arg-type]


def test_a_finished_batch_comes_before_the_error_of_a_later_one() -> None:
    ray = OrderedRay(good="vectors", bad=UserError("no room"))
    results = pool_of(ray, "good", "bad", "never").results()
    assert next(results) == (["good"], "vectors")
    with pytest.raises(UserError, match="no room"):
        next(results)
    assert ray.embedded == ["good", "bad"]


@pytest.mark.parametrize("kind", [Failed, Unreadable])
def test_an_error_of_ray_in_one_call_is_no_death_and_ends_the_work(kind: type[Died]) -> None:
    ray = OrderedRay(bad=kind("not copied"))
    with pytest.raises(kind, match="not copied"):
        list(pool_of(ray, "bad", "never").results())


def test_the_work_stops_after_five_deaths_with_the_same_batch() -> None:
    ray = OrderedRay(deadly=Died("worker"), good="vectors")
    found: list[str] = []
    with pytest.raises(UserError, match="5 workers died while they embedded the same 1 texts") as stopped:
        found.extend(texts[0] for texts, _ in pool_of(ray, "deadly", "good").results())
    assert (ray.embedded.count("deadly"), found) == (MOST_DEATHS, ["good"])
    assert isinstance(stopped.value.__cause__, Died)


def test_waiting_for_a_free_core_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    ray = OrderedRay(good="vectors", late=3)
    with caplog.at_level(logging.WARNING):
        assert len(list(pool_of(ray, "good").results())) == 1
    assert [message.partition(";")[0] for message in caplog.messages] == ["No worker that embeds has started for 10 s"]


def test_workers_that_return_no_batch_for_a_minute_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    for late, warnings in ((5, 0), (20, 1)):
        caplog.clear()
        ray = OrderedRay(slow="vectors", late=late)
        pool = pool_of(ray, "slow")
        pool._hands[0].is_up = True
        with caplog.at_level(logging.WARNING):
            assert len(list(pool.results())) == 1
        assert len(caplog.messages) == warnings
    assert "No batch has come back for 60 s" in caplog.text
