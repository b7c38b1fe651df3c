"""What an embedder returns is checked before anything is saved, whoever wrote the embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from judgetree.modules.embedding.embedder import Embedder
from judgetree.modules.embedding.vectors import checked_vectors, in_order, placed, places_of
from judgetree.modules.errors import UserError
from judgetree.modules.index.index import Index

NAN, INFINITE = float("nan"), float("inf")
BAD: list[tuple[object, str]] = [
    ([[1.0, 2.0]], "returned 1 vectors for 2 texts"),
    ([[1.0, 2.0]] * 3, "returned 3 vectors for 2 texts"),
    ([[1.0, 2.0], [NAN, 2.0]], "no list of finite numbers for 'The second text'"),
    ([[INFINITE, 2.0], [1.0, 2.0]], "no list of finite numbers for 'The first text'"),
    ([[1.0, 2.0], [1e39, 2.0]], "no list of finite numbers"),
    ([1.0, 2.0], "no list of finite numbers"),
    ([[], []], "no list of finite numbers"),
    ([["a", "b"], [1.0, 2.0]], "no list of finite numbers"),
    ([[1.0, 2.0], [1.0]], "returned vectors of lengths 1, 2"),
    (None, "returned NoneType and no list of vectors"),
]
TEXTS = ["The first text", "The second\n text"]


class Returning(Embeddings):
    """Returns the same whatever it is asked."""

    def __init__(self, vectors: object) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.vectors  # type: ignore[return-value]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 2.0]


class NamedReturning(Returning, Embedder):
    """The same with a name, as an embedder of ours."""

    name = "mine"
    dimension = 2


@pytest.mark.parametrize(("vectors", "said"), BAD)
def test_bad_vectors_are_refused(vectors: object, said: str) -> None:
    with pytest.raises(UserError, match=said):
        checked_vectors("mine", TEXTS, vectors)


@pytest.mark.parametrize("vectors", [[[1.0, 2.0], [3.0, 4.0]], np.ones((2, 2)), ((1, 2), (3, 4))])
def test_one_vector_a_text_is_returned(vectors: object) -> None:
    assert np.asarray(checked_vectors("mine", TEXTS, vectors)).shape == (2, 2)
    assert checked_vectors("mine", [], []) == []


@pytest.mark.parametrize("kind", [Returning, NamedReturning])
@pytest.mark.parametrize(("vectors", "said"), [BAD[0], BAD[1], BAD[2], BAD[-1]])
def test_no_chunk_is_lost_with_a_missing_vector(
    tmp_path: Path, kind: Callable[[object], Embeddings], vectors: object, said: str
) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    with (
        Index(kind(vectors), tmp_path, None, "c", uri=str(tmp_path / "milvus.db")) as index,
        pytest.raises(UserError, match=said.split(" for ", maxsplit=1)[0]),
    ):
        index.get_index_done()


def test_batches_of_the_loop_are_checked_too() -> None:
    async def embed() -> None:
        async for _ in NamedReturning([[1.0, 2.0]]).aembed_batches(TEXTS):
            pass

    with pytest.raises(UserError, match="mine returned 1 vectors for 2 texts"):
        asyncio.run(embed())


def test_equal_texts_share_a_vector() -> None:
    texts = ["a", "b", "a"]
    assert places_of(texts) == {"a": [0, 2], "b": [1]}
    batches = [placed(places_of(texts), {text: np.array([ord(text)], dtype=np.float32)}) for text in ("b", "a")]
    assert in_order(texts, batches) == [[97.0], [98.0], [97.0]]
