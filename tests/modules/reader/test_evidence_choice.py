"""Which chunks a reader sees, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.calls.tokens import text_tokens
from judgetree.modules.config.reading import EvidenceKind
from judgetree.modules.errors import SettingsError
from judgetree.modules.reader.evidence import render_evidence
from judgetree.modules.reader.evidence_choice import USEFUL, EvidenceChoice, passage_tokens

WORDS = "word " * 40


def chunk(rank: int, score: int | None, text: str = WORDS, **metadata: object) -> Document:
    return Document(page_content=text, metadata={"source": f"{rank}.md", "rank": rank, "score": score, **metadata})


def shown(choice: EvidenceChoice, *scores: int | None) -> list[int]:
    """The ranks of what is shown of chunks with these scores."""
    found = [chunk(rank, score) for rank, score in enumerate(scores)]
    return [each.metadata["rank"] for each in choice.of_chunks(found)]


@given(st.lists(st.sampled_from([0, 1, 2, None]), max_size=8))
def test_the_default_shows_what_is_not_scored_zero_or_all_by_rank(scores: list[int | None]) -> None:
    expected = [rank for rank, score in enumerate(scores) if score != 0]
    assert shown(USEFUL, *scores) == (expected or list(range(len(scores))))
    assert USEFUL.fingerprint() == {}


@pytest.mark.parametrize(
    ("kind", "scores", "ranks"),
    [
        ("all", (0, 1, None, 2, 1), [3, 1, 4, 2, 0]),
        ("sufficient", (0, 1, 2, None, 2), [2, 4]),
        ("sufficient", (0, None, 1), [2, 1]),
        ("sufficient", (0, 0), [0, 1]),
        ("sufficient", (None, None), [0, 1]),
        ("all", (), []),
    ],
)
def test_other_choices_show_the_best_verdicts_first_and_then_the_best_rank(
    kind: EvidenceKind, scores: tuple[int | None, ...], ranks: list[int]
) -> None:
    assert shown(EvidenceChoice(evidence=kind), *scores) == ranks


def test_a_limit_leaves_out_what_does_not_fit_but_never_all() -> None:
    """Sub-answers count; what is left of the limit goes to later passages that are shorter."""
    long = chunk(0, 1, sub_answer=WORDS * 4, next_query="Which?")
    others = [chunk(1, 2), chunk(2, 1, "short")]
    most = sum(map(passage_tokens, others))
    choice = EvidenceChoice(evidence_tokens=most)
    assert choice.of_chunks([long, *others]) == others
    assert choice.of_chunks([long]) == [long]
    assert EvidenceChoice(evidence_tokens=1).of_chunks([long, *others]) == others[:1]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.text(max_size=60)), max_size=8), st.integers(1, 200))
def test_evidence_of_more_than_one_passage_keeps_within_the_limit(
    found: list[tuple[int | None, str]], most: int
) -> None:
    chunks = [chunk(rank, score, text) for rank, (score, text) in enumerate(found)]
    seen = EvidenceChoice(evidence="all", evidence_tokens=most).of_chunks(chunks)
    assert len(seen) == min(1, len(chunks)) or text_tokens(render_evidence(seen)) <= most


@pytest.mark.parametrize(
    ("given_keys", "message"),
    [
        ({"evidence": "best"}, r"evidence: .*'useful', 'sufficient' or 'all' \(it is 'best'\)"),
        ({"evidence_tokens": 0}, r"evidence_tokens: .*greater than or equal to 1 \(it is 0\)"),
        ({"evidence_tokens": True}, r"evidence_tokens: .*\(it is True\)"),
    ],
)
def test_a_wrong_choice_is_told(given_keys: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        EvidenceChoice(**given_keys)  # type: ignore[arg-type]
