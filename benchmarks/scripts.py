"""Which local embedder finds the passage of a question, by language: 12 pairs each, ``data/scripts_qa.jsonl``.

A question is searched among the 12 passages of its language, which are of one subject.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.settings import load_settings

from .measurement import Row

PAIRS = Path(__file__).parents[1] / "data" / "scripts_qa.jsonl"
MODELS = ("local:minilm", "local:use")

Pair = Mapping[str, str]


def measure() -> list[Row]:
    """Search by both models, nothing cached: a few seconds."""
    return [
        Row(f"{pairs[0]['script']}, {language}: best hit right, {' and '.join(MODELS)}", _shown(pairs))
        for language, pairs in read_pairs().items()
    ]


def read_pairs() -> dict[str, list[Pair]]:
    """Return the pairs by language, in the order of the file."""
    found: dict[str, list[Pair]] = {}
    for line in PAIRS.read_text(encoding="utf-8").splitlines():
        pair: Pair = json.loads(line)
        found.setdefault(pair["lang"], []).append(pair)
    return found


def best_right(model: str, pairs: Sequence[Pair]) -> int:
    """Return the number of questions whose nearest passage is their own."""
    embedder = create_embeddings(model, load_settings(), cache=False)
    asked, there = (
        np.asarray(embedder.embed_documents([pair[key] for pair in pairs])) for key in ("question", "passage")
    )
    return int((np.argmax(asked @ there.T, axis=1) == np.arange(len(pairs))).sum())


def _shown(pairs: Sequence[Pair]) -> str:
    return " and ".join(str(best_right(model, pairs)) for model in MODELS) + f" of {len(pairs)}"
