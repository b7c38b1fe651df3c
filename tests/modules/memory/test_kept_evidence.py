"""Which chunks of earlier turns are kept."""

from __future__ import annotations

from judgetree.modules.memory.kept_evidence import ranked_refs, within_tokens
from tests.graphs.fakes import chunk
from tests.modules.turn_factory import make_ref, make_turn


def test_evidence_that_is_used_and_new_is_kept() -> None:
    turns = [make_turn(number) for number in (1, 2, 8, 9)]
    turns[0]["chunks"] = [make_ref("often", score=1), make_ref("old", score=2)]
    turns[1]["chunks"] = [make_ref("often", score=1)]
    turns[2]["chunks"] = [make_ref("often", score=1), make_ref("useless", score=0)]
    turns[3]["chunks"] = [make_ref("refused", score=2), make_ref("both", score=None)]
    turns[3]["status"] = "refused"
    order = [ref["chunk_id"] for ref in ranked_refs(turns, at=10)]
    assert order == ["often", "old", "refused", "both", "useless"]
    sized = [chunk("large", "word " * 300), chunk("small", "word"), chunk("next", "word " * 30)]
    assert [each.metadata["chunk_id"] for each in within_tokens(sized, 80)] == ["small", "next"]
    assert within_tokens(sized, 0) == []
