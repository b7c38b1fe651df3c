"""Embedding by many processes: actors of Ray that open the embedder once, and get batches of texts."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from ..cluster import HERE, connected
from ..errors import JudgetreeError, SettingsError, UserError
from .cache import Vector
from .cores import use_cores
from .embedder import CachedEmbedder, Embedder, EndpointEmbedder, embedder_name
from .vectors import SavedBatch, checked_vectors, in_order, placed, places_of
from .worker_pool import MOST_DEATHS, EmbeddingWorkerHandle, WorkerPool

if TYPE_CHECKING:
    from types import ModuleType

TEXTS_A_BATCH = 256
"""Some four seconds of one core."""
_CORES_A_WORKER = 1
_START_SHOWN = 60
_MOST_SAID = 500


class RayEmbedder(Embedder):
    """An embedder whose documents are embedded by the workers of a Ray; queries are embedded in this process.

    A worker takes one core, and one GPU with ``uses_gpu``. A batch whose worker or machine dies is embedded by another
    one. Vectors that the given embedder has saved are not embedded again, and those of finished batches are saved by
    this process.

    >>> from judgetree import create_embeddings, load_settings
    >>> embedder = RayEmbedder(create_embeddings("local:minilm", load_settings()), workers=2)

    Args:
        embedder: A local one, or any LangChain ``Embeddings``. It is copied to the workers, so it must be picklable.
        workers: Number of worker processes, at least 1. The cluster may have room for fewer; then those work.
        address: ``local`` for a Ray on this machine, which is started for the work and ended with it; or the address of
            a cluster, on whose machines judgetree and the packages of the embedder are installed.
        uses_gpu: Give each worker a GPU, if the cluster has any.
        texts_a_batch: Texts that a worker embeds at once; those of two batches are embedded again if it dies.

    Raises:
        SettingsError: A number is less than 1, or the embedder is behind an endpoint, whose limits and not this
            machine's cores decide its speed.
    """

    def __init__(
        self,
        embedder: Embeddings,
        *,
        workers: int,
        address: str = HERE,
        uses_gpu: bool = False,
        texts_a_batch: int = TEXTS_A_BATCH,
    ) -> None:
        if workers < 1:
            raise SettingsError(f"{workers=}: at least one worker embeds.")
        if texts_a_batch < 1:
            raise SettingsError(f"{texts_a_batch=}: a batch has at least one text.")
        self.workers = workers
        self.address = address
        self.uses_gpu = uses_gpu
        self.texts_a_batch = texts_a_batch
        self._given = embedder
        self._cache = embedder.cache if isinstance(embedder, CachedEmbedder) else None
        self._model = embedder.inner if isinstance(embedder, CachedEmbedder) else embedder
        if isinstance(self._model, EndpointEmbedder):
            raise SettingsError(
                f"The embedding model {self.name} answers behind an endpoint: its limits decide how fast it is, "
                "and more processes would only share them. Leave out --workers and --ray, or choose a local embedder."
            )

    @property
    def name(self) -> str:
        """The given embedder's name, since the vectors are the same."""
        return embedder_name(self._given)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._given.dimension if isinstance(self._given, Embedder) else len(self.embed_query("dimension"))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order. See ``embed_batches``."""
        return in_order(texts, self.embed_batches(texts))

    def embed_batches(self, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
        """Yield vectors by the position of their texts, batch after batch as they come, and saved ones first.

        Raises:
            UserError: A worker cannot open the embedder, it fails, or five workers died with the same batch.
            DependencyError: The extra ``ray`` is not installed.
            SettingsError: There is no cluster at the address, or the embedder cannot be copied to workers.
        """
        places = places_of(texts)
        saved = self._cache.get_many(self.name, list(places)) if self._cache else {}
        if saved:
            yield SavedBatch(placed(places, saved))
        if missing := [text for text in places if text not in saved]:
            for batch in self._spread_out(missing):
                yield placed(places, batch)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text, embedded in this process."""
        return self._given.embed_query(text)

    def _spread_out(self, texts: Sequence[str]) -> Iterator[Mapping[str, Vector]]:
        with connected(self.address, workers=self.workers) as ray, _ray_errors(ray, self.name):
            copied = _copied(ray, self._model, self.name)
            gpus = 1 if self.uses_gpu and ray.cluster_resources().get("GPU") else 0
            size = self.texts_a_batch
            batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
            with _started(ray, copied, self.name, workers=min(self.workers, len(batches)), gpus=gpus) as hands:
                for batch, found in WorkerPool(ray, hands, batches).results():
                    vectors = dict(zip(batch, found, strict=True))
                    if self._cache:
                        self._cache.put_many(self.name, vectors)
                    yield vectors


class _EmbeddingWorker:
    """One process that embeds. Errors are returned, not raised: Ray would raise them with its own text."""

    def __init__(self, copied: bytes, name: str) -> None:
        use_cores(_CORES_A_WORKER)
        self._copied = copied
        self._name = name
        self._embedder: Embeddings | None = None

    def open(self) -> JudgetreeError | None:
        """Open the embedder."""
        if self._embedder is None:
            try:
                self._embedder = pickle.loads(self._copied)
            except BaseException as error:  # noqa: BLE001 - of any embedder
                _let_end(error)
                return _explained(
                    error, f"{self._name} cannot be opened in a worker", "Install its packages on every machine of Ray."
                )
        return None

    def embed(self, texts: list[str]) -> npt.NDArray[np.float32] | JudgetreeError:
        """Return the vectors of the texts, one a row."""
        if (unopened := self.open()) is not None:  # sent to a worker that died, it comes to the one in its place
            return unopened
        assert self._embedder is not None
        try:
            vectors = checked_vectors(self._name, texts, self._embedder.embed_documents(texts))
            return np.asarray(vectors, dtype=np.float32)
        except BaseException as error:  # noqa: BLE001 - of any embedder
            _let_end(error)
            start = " ".join(texts[0][:_START_SHOWN].split())
            what = f"{self._name} failed on {len(texts)} texts, the first of which begins {start!r}"
            return _explained(error, what, "The same command embeds only what is not yet in the vector cache.")


def _let_end(error: BaseException) -> None:
    """Raise an error that ends this worker from outside; any other, SystemExit too, would kill each worker in turn."""
    if isinstance(error, KeyboardInterrupt) or hasattr(error, "ray_terminate_msg"):  # Ray's SystemExit after a SIGTERM
        raise error


def _explained(error: BaseException, what: str, to_do: str) -> JudgetreeError:
    if isinstance(error, JudgetreeError):
        return error
    said = f"{type(error).__name__}: {str(error)[:_MOST_SAID]}".rstrip(".: ")
    return UserError(f"The embedding model {what}: {said}. {to_do}")


@contextmanager
def _started(
    ray: ModuleType, copied: bytes, name: str, *, workers: int, gpus: int
) -> Iterator[list[EmbeddingWorkerHandle]]:
    """Start workers, which end with the block."""
    # With retries, Ray holds a call back while the worker starts, however long; it counts real deaths only.
    options = {"num_cpus": _CORES_A_WORKER, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": MOST_DEATHS - 1}
    actor_class = ray.remote(_EmbeddingWorker).options(**options, scheduling_strategy="SPREAD")
    actors = [actor_class.remote(copied, name) for _ in range(workers)]
    try:
        yield [
            EmbeddingWorkerHandle(open=actor.open.remote, embed=actor.embed.options(max_task_retries=0).remote)
            for actor in actors
        ]
    finally:
        for actor in actors:
            ray.kill(actor)


def _copied(ray: ModuleType, embedder: Embeddings, name: str) -> bytes:
    """Return an embedder in bytes.

    Raises:
        SettingsError: It cannot be pickled.
    """
    try:
        copied: bytes = ray.cloudpickle.dumps(embedder)
    except Exception as error:  # of any embedder
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")
        raise SettingsError(
            f"The embedder {name} cannot be sent to workers: {said}. Let it open its model at its first text, or leave "
            "out the workers."
        ) from error
    return copied


@contextmanager
def _ray_errors(ray: ModuleType, name: str) -> Iterator[None]:
    """Raise an error of Ray as one that says what to do.

    Raises:
        UserError: Workers died again and again, cannot start, or the cluster is gone.
    """
    try:
        yield
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())[-300:]
        raise UserError(
            f"The workers that embed with {name} fail: {said} What is embedded is saved; give them more memory, see "
            "that judgetree and the embedder are installed on every machine, and run the same command again."
        ) from error
