"""Gold marks by chunk: the words of a supporting fact, cut ones too, and documents of which no more is known."""

from __future__ import annotations

import pytest

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.retrieval import GoldMark, gold_mark

FACT = "Dorsan withstands up to 212 °C in service"
QUESTION = EvalQuestion(
    id="q", question="?", answers=("212 °C",), supporting=("gaskets", "bolts"), facts=(("gaskets", FACT),)
)


@pytest.mark.parametrize(
    ("key", "text", "mark"),
    [
        ("gaskets", f"KV-207. {FACT}; above that it chars.", "fact"),
        ("gaskets", "DORSAN withstands\nup to  212 °C in service.", "fact"),
        ("gaskets", "Gaskets are stored flat and dry.", ""),
        ("gaskets", "and so on. Dorsan withstands up to 212", "fact"),
        ("gaskets", "up to 212 °C in service. Above that", "fact"),
        ("gaskets", "and so on. Dorsan", ""),
        ("bolts", "Bolts are tightened crosswise.", "document"),
        ("ladders", FACT, ""),
    ],
)
def test_chunk_is_gold_by_the_words_that_it_holds(key: str, text: str, mark: GoldMark) -> None:
    assert gold_mark(QUESTION, key, text) == mark
