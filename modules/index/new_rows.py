"""The rows of an update's new chunks, with their vectors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from ..embedding.cache import Vector
from ..errors import CollectionError
from ..language.search_form import SearchForm, text_to_embed
from ..progress import StageProgress
from .content import Row
from .dense_fields import Embedders, embed_chunks
from .plan import UpdatePlan, to_row
from .schema import CollectionInfo

Vectors = Mapping[str, Vector]
"""The vectors of one chunk by field."""


class NewRows:
    """The rows of new chunks: a sized iterable that embeds while it is read, which is possible once."""

    def __init__(
        self,
        plan: UpdatePlan,
        embedders: Embedders,
        known: Mapping[str, Vectors],
        on_progress: StageProgress,
        *,
        form: SearchForm,
    ) -> None:
        """``known``: stored vectors by chunk id and field; ``form``: that of the collection."""
        self.embedding_s = 0.0
        """Seconds of embedding so far."""
        self._chunks = {str(chunk.metadata["chunk_id"]): chunk for chunk in plan.chunks}
        self._wanted = len(self._chunks) - len(known)
        self._computed: set[str] = set()
        self._form = form
        texts = {chunk_id: text_to_embed(text, form) for chunk_id, text in plan.texts().items()}
        vectors = embed_chunks(embedders, texts, known, on_progress, computed=self._computed)
        self._embedding = self._timed(vectors)
        self._vectors: Iterator[tuple[str, Vectors]] = self._embedding
        self._dimensions: Mapping[str, int] = {}
        self._collection = ""

    @property
    def embedded(self) -> int:
        """Number of chunks that a model has embedded so far."""
        return len(self._computed)

    @property
    def cached(self) -> int:
        """Number of chunks whose vectors an embedder had saved, once all rows were read."""
        return self._wanted - len(self._computed)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Row]:
        for chunk_id, vectors in self._vectors:
            if (found := _lengths(vectors)) != self._dimensions:
                raise CollectionError(
                    f"The embedder gives vectors of length {found}, the collection {self._collection!r} takes "
                    f"{dict(self._dimensions)}. Use the embedder of the collection, or index under another name."
                )
            yield to_row(self._chunks[chunk_id], vectors, self._form)

    def described(self, collection: str, info: CollectionInfo) -> CollectionInfo:
        """Return the description of the collection with the length of each field's vectors.

        Embeds the first batch of a new collection, to learn it. Rows whose vectors have another length raise a
        ``CollectionError`` as they are read.
        """
        self._collection, self._dimensions = collection, info.dimensions
        if not self._dimensions and (first := next(self._vectors, None)) is not None:
            self._dimensions = _lengths(first[1])
            self._vectors = itertools.chain([first], self._vectors)
        return replace(info, dimensions=self._dimensions)

    def close(self) -> None:
        """End the embedding, with its workers if it has any; rows that were not read are lost."""
        self._embedding.close()

    def _timed(self, vectors: Iterator[tuple[str, Vectors]]) -> Generator[tuple[str, Vectors]]:
        while True:
            started = time.monotonic()
            found = next(vectors, None)
            self.embedding_s += time.monotonic() - started
            if found is None:
                return
            yield found


def _lengths(vectors: Vectors) -> dict[str, int]:
    return {field: len(vector) for field, vector in vectors.items()}
