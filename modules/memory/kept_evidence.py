"""Selection of chunks of earlier turns for a new turn: those that most and latest answers rested on, in a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

from ..calls.tokens import text_tokens
from ..reader.evidence import render_evidence
from .turns import ChunkRef, QaPair, best_refs

_WORTH = {2: 1.0, 1: 0.75, None: 0.5, 0: 0.05}
"""Value of a chunk for one answer, by the judge's score."""
_WORTH_OF_A_REFUSAL = 0.1
"""Value of a chunk for a refusal, as a share of that for an answer."""
_HALF_LIFE_TURNS = 5.0
"""Turns after which a use counts half as much."""


def ranked_refs(turns: Iterable[QaPair], *, at: int) -> list[ChunkRef]:
    """Return the chunks of several turns, each once with its best score, most valuable at turn ``at`` first.

    Each turn that rests on a chunk adds to its value: more for a higher score, less for an older turn. Among equals the
    higher retrieval score comes first.
    """
    worth: dict[str, float] = {}
    refs: list[ChunkRef] = []
    for turn in sorted(turns, key=lambda turn: turn["turn_number"], reverse=True):
        share = 0.5 ** (max(0, at - turn["turn_number"]) / _HALF_LIFE_TURNS)
        share *= _WORTH_OF_A_REFUSAL if turn["status"] == "refused" else 1.0
        for ref in best_refs(turn["chunks"]):
            worth[ref["chunk_id"]] = worth.get(ref["chunk_id"], 0.0) + share * _WORTH.get(ref["score"], 0.5)
            refs.append(ref)
    return sorted(best_refs(refs), key=lambda ref: worth[ref["chunk_id"]], reverse=True)


def within_tokens(chunks: Sequence[Document], max_tokens: int) -> list[Document]:
    """Return the chunks that fit into the budget, in order; one that does not fit is skipped."""
    kept: list[Document] = []
    left = max_tokens
    for chunk in chunks:
        cost = text_tokens(render_evidence([chunk])) + 2
        if cost <= left:
            kept.append(chunk)
            left -= cost
    return kept
