"""Passages that a ranker chooses for a reader, within a limit of tokens."""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.config.reading import EvidenceRanker
from judgetree.modules.errors import SettingsError
from judgetree.modules.reader.evidence_choice import EvidenceChoice, passage_tokens
from judgetree.modules.reader.evidence_selection import select_evidence
from judgetree.modules.reader.word_similarity import similarity_by_words
from judgetree.modules.retriever.selection import OBJECTIVES, SELECTIONS

RANKERS: tuple[EvidenceRanker, ...] = get_args(EvidenceRanker)
RIVER, AGAIN, POET = "The river rises in the hills.", "In the hills the river rises.", "A poet lived by its mouth."
MILL = "Some mill stands near any bridge."
WORDS = ["river", "hill", "poet", "mouth", "bridge", "mill", "song", "year", "king", "stone"]


@pytest.mark.parametrize("ranker", RANKERS)
def test_a_passage_that_says_the_same_gives_way(ranker: EvidenceRanker) -> None:
    """Both would fit, and rank alone would take the longer one, which stands before the other."""
    assert select_evidence(ranker, [RIVER, AGAIN, POET], [1, 1, 1], [10, 11, 10], 21) == [0, 2]
    assert select_evidence(ranker, [RIVER, MILL, POET], [1, 1, 1], [10, 11, 10], 21) == [0, 1]


@pytest.mark.parametrize("ranker", RANKERS)
def test_a_good_verdict_outweighs_new_words(ranker: EvidenceRanker) -> None:
    assert select_evidence(ranker, [RIVER, POET, AGAIN], [2, 0, 0], [10, 10, 10], 10) == [0]
    assert select_evidence(ranker, [RIVER, AGAIN + " It is long.", POET], [2, 2, 0], [10, 10, 10], 20) == [0, 1]


@pytest.mark.parametrize("ranker", ["facility_location", "log_det"])
def test_the_choice_keeps_half_of_the_bound_of_the_best_one(ranker: EvidenceRanker) -> None:
    """(1 - 1/e) / 2 by brute force over all sets of six passages of random words, sizes and verdicts."""
    rng, ratios = np.random.default_rng(20), []
    for _ in range(200):
        texts = [" ".join(rng.choice(WORDS, int(rng.integers(1, 9)))) for _ in range(6)]
        worths = sorted(map(float, rng.choice([0, 0.5, 1, 2], 6)), reverse=True)
        tokens, most = [int(size) for size in rng.integers(1, 60, 6)], int(rng.integers(20, 160))

        def value(chosen: tuple[int, ...], worths: list[float] = worths, texts: list[str] = texts) -> float:
            ranked = np.array([(1 + worth) * 0.85**place for place, worth in enumerate(worths)])
            relevance, cosines = ranked / max(ranked), similarity_by_words(texts)
            weight, picked = SELECTIONS[ranker]["relevance"], [*chosen]
            own = weight * relevance[picked].sum()
            if ranker == "facility_location":
                covered = cosines[picked].max(axis=0, initial=0) @ (relevance / relevance.sum())
                return float(own + (1 - weight) * covered)
            kernel = (relevance[:, None] * cosines * relevance)[np.ix_(picked, picked)]
            a = SELECTIONS[ranker]["a"]
            return float(own + (1 - weight) * np.linalg.slogdet(np.eye(len(picked)) + a * kernel)[1] / math.log1p(a))

        fitting = [
            each
            for size in range(1, 7)
            for each in itertools.combinations(range(6), size)
            if sum(tokens[place] for place in each) <= most
        ]
        chosen = tuple(select_evidence(ranker, texts, worths, tokens, most))
        assert bool(fitting) == bool(chosen)
        if fitting:
            assert chosen in fitting
            ratios.append(value(chosen) / max(map(value, fitting)))
    assert min(ratios) >= (1 - 1 / math.e) / 2
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) >= 0.95


@pytest.mark.parametrize("ranker", RANKERS)
@given(
    found=st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.text(max_size=60)), max_size=8),
    most=st.integers(1, 200),
)
def test_any_evidence_keeps_within_the_limit_in_the_usual_order(
    ranker: EvidenceRanker, found: list[tuple[int | None, str]], most: int
) -> None:
    chunks = [
        Document(page_content=text, metadata={"source": f"{rank}.md", "score": score})
        for rank, (score, text) in enumerate(found)
    ]
    usual = EvidenceChoice(evidence="all", evidence_tokens=10**6).of_chunks(chunks)
    seen = EvidenceChoice(evidence="all", evidence_tokens=most, evidence_ranker=ranker).of_chunks(chunks)
    assert [chunk for chunk in usual if chunk in seen] == seen
    assert sum(map(passage_tokens, seen)) <= most or seen == usual[:1]
    assert bool(seen) == bool(chunks)
    assert EvidenceChoice(evidence="all", evidence_tokens=most, evidence_ranker=ranker).of_chunks(chunks) == seen


def test_passages_without_tokens_count_as_one_each() -> None:
    assert select_evidence("log_det", [RIVER, POET, MILL], [1, 1, 1], [0, 0, 0], 2) == [0, 1]


def test_objectives_and_names_are_the_same() -> None:
    assert set(RANKERS) == set(OBJECTIVES) == set(SELECTIONS)


def test_a_ranker_without_a_limit_or_of_another_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="evidence_ranker='mmr' chooses within a limit of tokens"):
        EvidenceChoice(evidence_ranker="mmr")
    with pytest.raises(SettingsError, match=r"evidence_ranker: .*it is 'rrf'"):
        EvidenceChoice(evidence_tokens=9, evidence_ranker="rrf")  # type: ignore[arg-type]
