"""Turns for tests."""

from __future__ import annotations

from judgetree.modules.memory.turns import MAIN_BRANCH, ChunkRef, QaPair, imported_turn


def make_turn(
    number: int,
    query: str = "",
    answer: str = "",
    *,
    branch_id: str = MAIN_BRANCH,
    turn_id: str | None = None,
    minute: int | None = None,
) -> QaPair:
    """Turn ``number`` of a branch; its time is that many minutes after midnight, unless another minute is given."""
    minute = number if minute is None else minute
    turn = imported_turn(
        query or f"question {number}",
        answer or f"answer {number}",
        parent=None,
        turn_id=f"{branch_id}-{number}" if turn_id is None else turn_id,
        timestamp=f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:00.000000+00:00",
    )
    turn["branch_id"], turn["turn_number"] = branch_id, number
    return turn


def make_ref(chunk_id: str, *, score: int | None = 1, retrieval_score: float | None = 0.5) -> ChunkRef:
    return ChunkRef(
        chunk_id=chunk_id,
        source="a.md",
        score=score,
        retrieval_score=retrieval_score,
        thread_id=f"thread of {chunk_id}",
    )


def ids_of(turns: list[QaPair]) -> list[str]:
    return [turn["turn_id"] for turn in turns]
