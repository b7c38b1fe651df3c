"""Rows that are embedded while they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.modules.embedding.ray_embedder import RayEmbedder
from judgetree.modules.index.connection import connect
from judgetree.modules.index.index import Index
from tests.database_servers import LiteServer
from tests.modules.fake_embeddings import BagOfWordsEmbedder

BATCH = 600


class OpenWorkers(RayEmbedder):
    """Embeds in this process; notes whether its workers would still run."""

    def __init__(self) -> None:
        super().__init__(BagOfWordsEmbedder(), workers=1)
        self.is_open = False

    def embed_batches(self, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
        self.is_open = True
        try:
            for start in range(0, len(texts), BATCH):
                vectors = BagOfWordsEmbedder().embed_documents(texts[start : start + BATCH])
                yield dict(enumerate(vectors, start))
        finally:
            self.is_open = False


@pytest.mark.parametrize("stage", ["embed", "write"])
def test_workers_end_with_an_update_that_fails(lite_server: LiteServer, tmp_path: Path, stage: str) -> None:
    (tmp_path / "a.txt").write_text(" ".join(f"Norm {number}." for number in range(2 * BATCH)))
    embedder = OpenWorkers()

    def fail(done: int, total: int, now: str) -> None:
        if now == stage and done:
            raise RuntimeError(f"{embedder.is_open}")

    uri = lite_server.uri
    with Index(embedder, tmp_path / "a.txt", None, f"ends_{stage}", uri=uri, token="", on_progress=fail) as index:
        index._connection = replace(connect(uri), is_lite=False)  # rows are written as they come, as on a server
        with pytest.raises(RuntimeError, match="True") as failed:
            index.get_index_done(12, 0)
    assert not embedder.is_open, f"although {failed.value!r} still holds its frames"
