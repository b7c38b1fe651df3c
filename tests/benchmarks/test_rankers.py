"""The pure parts of the benchmark of rankers."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from benchmarks.rankers import PACKED, RANKERS, RRF, Seen, chosen_within, packed
from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.modules.reader.evidence_choice import passage_tokens

LONG = "The river rises in the hills. " * 12


def passages(*texts: str) -> list[Document]:
    return [Document(page_content=text, metadata={"key": str(place)}) for place, text in enumerate(texts)]


def test_packing_takes_short_passages_and_skips_no_fitting_one_for_its_likeness() -> None:
    chunks = passages("One mill.", LONG, "One mill.", "A poet.")
    most = sum(passage_tokens(chunk) for chunk in chunks) - passage_tokens(chunks[1])
    assert packed(chunks, most) == [chunks[0], chunks[2], chunks[3]]
    assert packed(chunks[1:2], 5) == chunks[1:2], "the first is shown if nothing fits"


def test_all_choose_from_the_same_passages_within_the_limit() -> None:
    chunks = passages("One mill.", LONG, "One mill.", "A poet.")
    chosen = chosen_within([chunks], 60)
    assert set(chosen) == {RRF, PACKED, *RANKERS}
    for (seen,) in chosen.values():
        assert seen
        assert sum(map(passage_tokens, seen)) <= 60


def test_a_question_is_scored_by_what_its_reader_sees() -> None:
    question = EvalQuestion(id="q", question="Who?", answers=("a poet",), supporting=("0", "3"))
    chunks = passages("One mill.", LONG, "One mill.", "A poet.")
    assert Seen.of(question, chunks, "key") == Seen(all_found=1.0, answered=1.0, repeats=pytest.approx(0.5, abs=0.1))
    assert Seen.of(question, chunks[:3:2], "key") == Seen(all_found=0.0, answered=0.0, repeats=pytest.approx(1.0))
