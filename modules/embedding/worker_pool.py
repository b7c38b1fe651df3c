"""Batches of texts over the workers of a Ray: none is lost with its worker, and finished ones come before an error."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import JudgetreeError, UserError

if TYPE_CHECKING:
    from types import ModuleType

logger = logging.getLogger(__name__)

MOST_DEATHS = 5
"""Workers that may die with the same batch, or one that may die while it opens the embedder, before the work stops."""
_BATCHES_A_WORKER = 2
"""One that it embeds, and one that waits, so that it need not."""
_PATIENCE_S = 10.0
_MOST_EMPTY_WAITS = 6


@dataclass(eq=False, kw_only=True)
class EmbeddingWorkerHandle:
    """A worker as the driver sees it. Both calls return Ray's reference to the outcome, which may be an error."""

    open: Callable[[], Any]
    """Open the embedder. Ray waits for a worker that starts, and repeats the call if it dies."""
    embed: Callable[[list[str]], Any]
    """Embed a batch, which Ray does not repeat."""
    is_up: bool = False
    under_way: int = 0


@dataclass(eq=False)
class _Batch:
    texts: list[str]
    deaths: int = 0


class WorkerPool:
    """Hands batches to the workers that are up; a batch whose worker dies goes to another one."""

    def __init__(self, ray: ModuleType, hands: Sequence[EmbeddingWorkerHandle], batches: Sequence[list[str]]) -> None:
        self._ray = ray
        self._hands = hands
        self._open = deque(_Batch(texts) for texts in batches)
        self._left = len(self._open)
        self._calls: dict[Any, tuple[EmbeddingWorkerHandle, _Batch | None]] = {}
        """Hand and batch by Ray's reference to the outcome; no batch for the opening of the embedder."""
        self._failure: Exception | None = None
        self._has_warned = False
        self._empty_waits = 0

    def results(self) -> Iterator[tuple[list[str], npt.NDArray[np.float32]]]:
        """Yield the texts of each batch and their vectors, in the order in which they come.

        An error is raised after the batches that are under way, since an outcome may arrive before an older one.

        Raises:
            JudgetreeError: The embedder fails, cannot be opened, or five workers died with the same batch.
            ray.exceptions.RayError: A worker died five times while it opened the embedder, or the cluster is gone.
        """
        while self._left:
            if self._failure is None:
                self._hand_out()
            elif all(batch is None for _, batch in self._calls.values()):
                raise self._failure
            done, _ = self._ray.wait(list(self._calls), timeout=_PATIENCE_S)
            self._empty_waits = 0 if done else self._empty_waits + 1
            self._warn_of_waiting()
            for reference in done:
                hand, batch = self._calls.pop(reference)
                vectors = self._outcome(reference, hand, batch)
                if batch is not None and vectors is not None:
                    self._left -= 1
                    yield batch.texts, vectors

    def _hand_out(self) -> None:
        for hand in self._hands:
            if not hand.is_up and not hand.under_way:
                self._note(hand.open(), hand, None)
        for waiting in range(_BATCHES_A_WORKER):
            for hand in self._hands:
                if hand.is_up and hand.under_way == waiting and self._open:
                    batch = self._open.popleft()
                    self._note(hand.embed(batch.texts), hand, batch)

    def _note(self, reference: object, hand: EmbeddingWorkerHandle, batch: _Batch | None) -> None:
        hand.under_way += 1
        self._calls[reference] = hand, batch

    def _outcome(self, reference: object, hand: EmbeddingWorkerHandle, batch: _Batch | None) -> Any:
        """Return the vectors of a call; None if there are none, with the worker or the failure noted."""
        hand.under_way -= 1
        try:
            found = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            # A RaySystemError is an outcome that cannot be read, and no death.
            failed = (self._ray.exceptions.RayTaskError, self._ray.exceptions.RaySystemError)
            if batch is None or isinstance(error, failed):
                self._failure = self._failure or error
            else:
                self._lost(hand, batch, error)
            return None
        if isinstance(found, JudgetreeError):
            self._failure = self._failure or found
            return None
        hand.is_up = True
        return found

    def _lost(self, hand: EmbeddingWorkerHandle, batch: _Batch, error: Exception) -> None:
        """Put back the batch of a worker that died; Ray starts the worker again where there is room."""
        if hand.is_up:
            logger.warning("A worker that embeds died; what it had is embedded by others.")
        hand.is_up = False
        batch.deaths += 1
        self._open.appendleft(batch)
        if batch.deaths == MOST_DEATHS and self._failure is None:
            self._failure = UserError(
                f"{MOST_DEATHS} workers died while they embedded the same {len(batch.texts)} texts, perhaps for want "
                "of memory. What is embedded is saved; run the same command again with fewer workers."
            )
            self._failure.__cause__ = error

    def _warn_of_waiting(self) -> None:
        if any(hand.is_up for hand in self._hands):
            if self._empty_waits == _MOST_EMPTY_WAITS:
                logger.warning(
                    "No batch has come back for %.0f s. The workers that embed are slow, or one is stopped (kill "
                    "-CONT); if it is killed (ps names it ray::_EmbeddingWorker), others embed what it has.",
                    _MOST_EMPTY_WAITS * _PATIENCE_S,
                )
        elif self._empty_waits and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "No worker that embeds has started for %.0f s; waiting. They start slowly, or the Ray cluster has no "
                "core free for them (ray status shows it): then add a machine, or end other work there.",
                _PATIENCE_S,
            )
