"""What the reader gets to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.evidence import render_evidence, usable_chunks
from judgetree.modules.prompts import REFUSAL


def chunk(text: str, **metadata: object) -> Document:
    return Document(page_content=text, metadata={"source": f"{text}.md", **metadata})


scores = st.sampled_from([0, 1, 2, None])


@given(st.lists(scores, max_size=8))
def test_usable_chunks_are_those_not_scored_zero_or_all(given_scores: list[int | None]) -> None:
    chunks = [chunk(str(number), score=score) for number, score in enumerate(given_scores)]
    usable = usable_chunks(chunks)
    expected = [found for found in chunks if found.metadata["score"] != 0]
    assert usable == (expected or chunks)


def test_usable_chunks_that_were_never_judged_are_all_of_them() -> None:
    chunks = [chunk("a"), chunk("b")]
    assert usable_chunks(chunks) == chunks
    assert usable_chunks([]) == []


def test_evidence_numbers_passages_and_names_their_sources() -> None:
    assert render_evidence([chunk("a"), chunk("b")]) == "[1] a.md\na\n\n[2] b.md\nb"
    assert render_evidence([]) == ""


def test_evidence_shows_the_sub_question_with_its_answer_below_its_own_passage() -> None:
    chunks = [chunk("a", score=1, next_query="Who?", sub_answer="Ada"), chunk("b", score=1, next_query="Where?")]
    assert render_evidence(chunks) == ("[1] a.md\na\nSupplementary question: Who?\nAnswer: Ada\n\n[2] b.md\nb")


@pytest.mark.parametrize(
    "sub_answer", ["", None, "  ", REFUSAL, "I can’t answer this question", "我无法回答这个问题。"]
)
def test_evidence_leaves_out_a_sub_answer_that_is_no_knowledge(sub_answer: str | None) -> None:
    assert render_evidence([chunk("a", score=1, next_query="Who?", sub_answer=sub_answer)]) == "[1] a.md\na"
