"""An embedder for tests: no model file, no network, the same vectors everywhere."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from judgetree.modules.embedding.embedder import Embedder


class BagOfWordsEmbedder(Embedder):
    """Counts words in buckets; texts that share words are similar. Chinese characters count as words.

    ``embedded`` lists every text it was asked for, so that a test can tell what was paid for.
    """

    def __init__(self, name: str = "fake:bag", dimension: int = 64) -> None:
        self._name = name
        self._dimension = dimension
        self.embedded: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded.extend(texts)
        return [self._vector(re.findall(r"[一-鿿]|[a-z0-9]+", text.lower())) for text in texts]

    def _vector(self, words: Sequence[str]) -> list[float]:
        vector = [1e-3] * self._dimension  # no text is without direction
        for word in words:
            vector[hashlib.sha256(word.encode()).digest()[0] % self._dimension] += 1.0
        length = math.sqrt(sum(value * value for value in vector))
        return [value / length for value in vector]
