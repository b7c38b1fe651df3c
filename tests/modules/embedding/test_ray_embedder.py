"""Embedding and indexing by the workers of a real Ray: the vectors and collections of one process."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judgetree.modules.cluster import HERE, connected
from judgetree.modules.embedding import cores
from judgetree.modules.embedding.cache import Vector, VectorCache
from judgetree.modules.embedding.embedder import CachedEmbedder, Embedder, create_embeddings
from judgetree.modules.embedding.ray_embedder import RayEmbedder, _EmbeddingWorker
from judgetree.modules.errors import DependencyError, SettingsError, UserError
from judgetree.modules.index.connection import connect
from judgetree.modules.index.content import stored_files, stored_vectors
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from tests.database_servers import LiteServer
from tests.modules.fake_embeddings import BagOfWordsEmbedder

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::ResourceWarning")]
COUNT, BATCH = 60, 16


@pytest.fixture(scope="module")
def ray() -> Iterator[object]:
    """One Ray for the tests that embed, which each would start otherwise."""
    pytest.importorskip("ray")
    with connected(HERE, workers=2) as started:
        yield started


class NotingEmbedder(BagOfWordsEmbedder):
    """Notes in a folder what it embeds, and what becomes of its process at a text of a given word."""

    def __init__(self, folder: Path, *, dies_at: str = "", fails_at: str = "", dies_by: int = signal.SIGKILL) -> None:
        super().__init__()
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.dies_at = dies_at
        self.fails_at = fails_at
        self.dies_by = dies_by

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        words = {word for text in texts for word in text.split()}
        if self.dies_at in words and not (killed := self.folder / "killed").exists():
            killed.touch()
            os.kill(os.getpid(), self.dies_by)
        if self.fails_at in words:
            raise RuntimeError("no room on the device")
        (self.folder / uuid.uuid4().hex).write_text("\n".join(texts))
        return super().embed_documents(texts)

    def noted(self) -> Counter[str]:
        files = (file for file in self.folder.iterdir() if file.name != "killed")
        return Counter(text for file in files for text in file.read_text().splitlines())


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.md").write_text(f"Norm n{number} names drum d{number % 7}.")
    return folder


def index_of(embedder: Embedder, corpus: Path, uri: str, *, in_place: bool = False) -> Index:
    """An index in a collection of its own; ``in_place`` has Lite's engine changed as a server is."""
    index = Index(embedder, corpus, None, f"ray_{uuid.uuid4().hex[:12]}", uri=uri, token="")
    if in_place:
        index._connection = replace(connect(uri), is_lite=False)
    return index


def spread_over(embedder: Embedder, *, workers: int) -> RayEmbedder:
    return RayEmbedder(embedder, workers=workers, texts_a_batch=BATCH)


def vectors_of(index: Index) -> dict[str, Vector]:
    client, name = index.connection.client, index.vector_store_name
    ids = [chunk_id for file in stored_files(index.connection, name).values() for chunk_id in file.chunk_ids]
    return {chunk_id: found["dense"] for chunk_id, found in stored_vectors(client, name, ids, ["dense"]).items()}


def hits_of(index: Index) -> list[tuple[str, float]]:
    found = Retriever(index, topk=5).get_similar_chunk_with_score("Which norm names drum d3?")
    return [(chunk.page_content, score) for chunk, score in found]


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_the_collection_is_that_of_one_process_although_a_worker_is_killed(
    lite_server: LiteServer, corpus: Path, tmp_path: Path
) -> None:
    embedder = NotingEmbedder(tmp_path / "noted", dies_at="n30")
    cached = CachedEmbedder(embedder, VectorCache(tmp_path / "vectors.sqlite"))
    progress: list[tuple[int, int]] = []
    with (
        index_of(BagOfWordsEmbedder(), corpus, lite_server.uri) as alone,
        index_of(spread_over(cached, workers=2), corpus, lite_server.uri) as spread,
    ):
        spread.on_progress = lambda done, total, stage: progress.append((done, total)) if stage == "embed" else None
        alone.get_index_done()
        report = spread.get_index_done()
        assert (report.chunks, report.embedded, progress[0], progress[-1]) == (COUNT, COUNT, (0, COUNT), (COUNT, COUNT))
        assert (tmp_path / "noted" / "killed").exists()
        noted = embedder.noted()
        assert (len(noted), noted.total() <= COUNT + 2 * BATCH) == (COUNT, True), "two batches were lost at most"
        expected = vectors_of(alone)
        found = vectors_of(spread)
        assert found.keys() == expected.keys()
        assert max(float(np.abs(found[each] - expected[each]).max()) for each in expected) < 1e-6
        assert spread.content_digest() == alone.content_digest()
        assert hits_of(spread) == hits_of(alone)
        again = spread.get_index_done()
        assert (again.embedded, again.unchanged, again.chunks) == (0, COUNT, COUNT)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_after_a_failure_only_the_rest_is_embedded_and_a_server_is_changed_in_place(
    lite_server: LiteServer, corpus: Path, tmp_path: Path
) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    first, second = NotingEmbedder(tmp_path / "first", fails_at="n9"), NotingEmbedder(tmp_path / "second")
    with index_of(BagOfWordsEmbedder(), corpus / "0.md", lite_server.uri, in_place=True) as index:
        index.get_index_done()
        index.embed_model = spread_over(CachedEmbedder(first, cache), workers=1)
        with pytest.raises(UserError, match=r"fake:bag failed on [0-9]+ texts.*RuntimeError: no room on the device"):
            index.add_new_files(corpus)
        index.embed_model = spread_over(CachedEmbedder(second, cache), workers=2)
        report = index.add_new_files(corpus)
        assert report.chunks == len(vectors_of(index)) == COUNT
        assert first.noted().keys() & second.noted().keys() == set()
        assert (first.noted() + second.noted()).total() == COUNT - 1


class OpenModel(BagOfWordsEmbedder):
    """Holds what cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Unopened(BagOfWordsEmbedder):
    """Can be opened on the driver's machine alone."""

    def __setstate__(self, state: dict[str, object]) -> None:
        raise DependencyError("The model's package is not installed here.")


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_an_embedder_that_workers_cannot_have_is_refused_with_the_reason() -> None:
    with pytest.raises(SettingsError, match=r"fake:bag cannot be sent to workers: .*lock"):
        spread_over(OpenModel(), workers=1).embed_documents(["a"])
    with pytest.raises(DependencyError, match="not installed here"):
        spread_over(Unopened(), workers=1).embed_documents(["a"])


class Quitting(BagOfWordsEmbedder):
    """Ends the process in place of raising an error, at a text or as it is opened."""

    def __init__(self, *, when_opened: bool) -> None:
        super().__init__()
        self.when_opened = when_opened

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        if self.when_opened:
            sys.exit("no licence")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        sys.exit("no licence")


@pytest.mark.parametrize("when_opened", [True, False])
def test_an_embedder_that_quits_is_an_error_and_no_death_of_its_worker(
    monkeypatch: pytest.MonkeyPatch, when_opened: bool
) -> None:
    monkeypatch.setattr(cores, "_share", None)  # a worker narrows its process to one core
    worker = _EmbeddingWorker(pickle.dumps(Quitting(when_opened=when_opened)), "mine")
    failure = worker.embed(["Norm n1"])
    what = "cannot be opened in a worker" if when_opened else "failed on 1 texts, the first of which begins 'Norm n1'"
    assert f"The embedding model mine {what}: SystemExit: no licence." in str(failure)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_worker_that_is_ended_from_outside_ends(monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
    ending = kind()
    if kind is SystemExit:
        ending.ray_terminate_msg = "The process receives a SIGTERM."  # type: ignore[attr-defined]

    class Ended(BagOfWordsEmbedder):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ending

    monkeypatch.setattr(cores, "_share", None)
    worker = _EmbeddingWorker(pickle.dumps(BagOfWordsEmbedder()), "mine")
    assert worker.open() is None
    worker._embedder = Ended()
    with pytest.raises(kind):
        worker.embed(["Norm n1"])


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_an_embedder_that_quits_stops_the_work_and_a_worker_that_is_terminated_does_not(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="SystemExit: no licence"):
        spread_over(Quitting(when_opened=False), workers=1).embed_documents(["a"])
    terminated = NotingEmbedder(tmp_path / "noted", dies_at="b", dies_by=signal.SIGTERM)
    assert len(spread_over(terminated, workers=1).embed_documents(["a", "b"])) == 2
    assert (tmp_path / "noted" / "killed").exists()


def test_what_cannot_be_spread_is_refused_before_a_ray_is_started() -> None:
    endpoint = create_embeddings("http://127.0.0.1:1/v1#bge", load_settings(), cache=False)
    with pytest.raises(SettingsError, match="answers behind an endpoint"):
        RayEmbedder(endpoint, workers=2)
    with pytest.raises(SettingsError, match="workers=0: at least one worker embeds"):
        RayEmbedder(BagOfWordsEmbedder(), workers=0)
    with pytest.raises(SettingsError, match="texts_a_batch=0: a batch has at least one text"):
        RayEmbedder(BagOfWordsEmbedder(), workers=1, texts_a_batch=0)
