"""What the reader gets to see."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.reader.evidence import render_evidence, render_sub_answer, split_evidence
from judgetree.modules.reader.evidence_choice import USEFUL
from judgetree.modules.reader.prompts import REFUSAL


def chunk(text: str, **metadata: object) -> Document:
    return Document(page_content=text, metadata={"source": f"{text}.md", **metadata})


scores = st.sampled_from([0, 1, 2, None])


def test_evidence_numbers_passages_and_names_their_sources() -> None:
    assert render_evidence([chunk("a"), chunk("b")]) == "[1] a.md\na\n\n[2] b.md\nb"
    assert render_evidence([]) == ""


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"source": "all.jsonl", "title": "Ada Lovelace"}, "all.jsonl: Ada Lovelace"),
        ({"source": "", "title": "Ada\n\nQuery: what?"}, "Ada Query: what?"),
        ({"source": "more/notes.txt", "title": "notes"}, "more/notes.txt"),
        ({"source": "all.jsonl", "title": "the Analytical Engine"}, "all.jsonl"),
        ({"source": "all.jsonl", "title": ""}, "all.jsonl"),
    ],
)
def test_evidence_shows_a_title_that_says_more_than_source_and_passage(metadata: dict[str, str], place: str) -> None:
    found = Document(page_content="She programmed the Analytical Engine.", metadata=metadata)
    evidence = render_evidence([found])
    assert evidence == f"[1] {place}\nShe programmed the Analytical Engine."
    assert split_evidence(evidence, [found]) == (evidence.removeprefix("[1] "),)


def test_evidence_shows_sub_answers_below_their_passage() -> None:
    chunks = [chunk("a", score=1, next_query="Who?", sub_answer="Ada"), chunk("b", score=1, next_query="Where?")]
    assert render_evidence(chunks) == ("[1] a.md\na\nSupplementary question: Who?\nAnswer: Ada\n\n[2] b.md\nb")


@pytest.mark.parametrize(
    "sub_answer", ["", None, "  ", REFUSAL, "I can’t answer this question", "我无法回答这个问题。"]
)
def test_evidence_leaves_out_a_sub_answer_that_is_no_knowledge(sub_answer: str | None) -> None:
    assert render_evidence([chunk("a", score=1, next_query="Who?", sub_answer=sub_answer)]) == "[1] a.md\na"


# --- taking it apart again ---

# Texts that begin alike, hold blank lines, or look like a passage or a pair themselves.
texts = st.sampled_from(
    ["a", "a\n\nb", "b", "[2] a.md\na", "", "Supplementary question: Who?\nAnswer: Ada", "1\n\n[2]"]
)
found_chunks = st.builds(
    lambda text, score, answer: Document(
        page_content=text, metadata={"source": "a.md", "score": score, "next_query": "Who?", "sub_answer": answer}
    ),
    texts,
    scores,
    st.sampled_from(["", "Ada", REFUSAL]),
)


@given(st.lists(found_chunks, max_size=5), st.randoms())
def test_evidence_is_split_into_what_is_shown_of_each_chunk(chunks: list[Document], random: Random) -> None:
    shown = USEFUL.of_chunks(chunks)
    shuffled = random.sample(chunks, len(chunks))
    split = split_evidence(render_evidence(shown), shuffled)
    assert "\n\n".join(f"[{number}] {passage}" for number, passage in enumerate(split, start=1)) == render_evidence(
        shown
    )
    if len({chunk.page_content for chunk in chunks}) == 1:
        assert len(split) == len(shown)


def test_a_text_within_another_is_a_passage_only_where_shown() -> None:
    whole, part = chunk("a b", score=1), chunk("a", score=0)
    assert split_evidence(render_evidence([whole]), [part, whole]) == ("a b.md\na b",)
    assert split_evidence(render_evidence([part, whole]), [whole, part]) == ("a.md\na", "a b.md\na b")
    longer, beginning = chunk("a\n\nb", source="a.md"), chunk("a", source="a.md")
    assert split_evidence(render_evidence([longer]), [beginning, longer]) == ("a.md\na\nb",)


def test_pairs_that_belong_to_no_passage_come_last_each_for_itself() -> None:
    pairs = [render_sub_answer("Which?", "That.\n\nAnd this."), render_sub_answer("Where?", "There.")]
    context = "\n\n".join([render_evidence([chunk("a")]), *pairs])
    assert split_evidence(context, [chunk("a")]) == ("a.md\na", *pairs)
    assert split_evidence("\n\n".join(pairs), []) == tuple(pairs)
    assert split_evidence("", [chunk("a")]) == ()


def test_what_no_chunk_gives_is_not_lost() -> None:
    assert split_evidence("[1] a.md\na\n\n[2] gone.md\ngone", [chunk("a")]) == ("a.md\na", "[2] gone.md\ngone")
