"""Which embedder fills which dense field of a collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from .collection_schema import DENSE_FIELD, CollectionInfo
from .errors import CollectionError

if TYPE_CHECKING:
    from .collection_content import Progress

Vector = npt.NDArray[np.float32]
Embedders = Mapping[str, Embeddings]
"""Dense field to its embedder, in the order of the fields."""
EmbedderSource = Embeddings | Embedders | Callable[[float], Embeddings]
"""An embedder, one by dense field, or a function that chooses one by the documents' share of CJK letters (0 to 1)."""

_BATCH = 64


def resolve_embedders(source: EmbedderSource, cjk_share: float) -> Embedders:
    """The embedders by field; a single one fills the field ``dense``."""
    if isinstance(source, Embeddings):
        return {DENSE_FIELD: source}
    if isinstance(source, Mapping):
        return source
    return {DENSE_FIELD: source(cjk_share)}


def embedder_name(embedder: object) -> str:
    """What a collection remembers of an embedder: its ``name``, else its class and ``model``."""
    name = getattr(embedder, "name", None)
    if isinstance(name, str) and name:
        return name
    model = getattr(embedder, "model", None) or getattr(embedder, "model_name", None)
    return type(embedder).__name__ + (f":{model}" if model else "")


def refuse_other_embedders(collection: str, info: CollectionInfo, embedders: Embedders) -> None:
    """Make sure that the collection's vectors come from these embedders.

    Raises:
        CollectionError: They come from others.
    """
    given = {field: embedder_name(embedder) for field, embedder in embedders.items()}
    if given != dict(info.embedders):
        raise CollectionError(
            f"The collection {collection!r} was indexed with {_listed(info.embedders)}, not with {_listed(given)}, and "
            "vectors of different models cannot be compared. Use the same embedder, or index under another name."
        )


def embed_texts(embedders: Embedders, texts: Sequence[str], on_progress: Progress) -> list[dict[str, Vector]]:
    """Vectors by field, one mapping a text, in the order of the texts.

    Raises:
        ModelCallError: An embedding endpoint failed.
    """
    vectors: list[dict[str, Vector]] = []
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        columns = {field: embedder.embed_documents(batch) for field, embedder in embedders.items()}
        vectors.extend(
            {field: np.asarray(column[row], dtype=np.float32) for field, column in columns.items()}
            for row in range(len(batch))
        )
        on_progress(len(vectors), len(texts), "embed")
    return vectors


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({field})" for field, name in names.items())
