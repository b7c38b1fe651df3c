"""BM25 by postings: the formula by hand, and equal scores in Milvus Lite's order."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from milvus_lite.analyzer import StandardAnalyzer, compute_tf, sparse_to_bytes, term_to_id

from judgetree.modules.retriever.postings import Postings

K1, B = 1.5, 0.75


def counted(*texts: str) -> list[bytes]:
    return [sparse_to_bytes(compute_tf(StandardAnalyzer().analyze(text))) for text in texts]


def postings(*texts: str) -> Postings:
    return Postings.of(pa.chunked_array([counted(*texts)], type=pa.binary()), k1=K1, b=B)


def search(found: Postings, query: str, limit: int = 9) -> list[tuple[int, float]]:
    rows, scores = found.search(compute_tf(StandardAnalyzer().analyze(query)), limit)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def test_scores_are_those_of_the_formula() -> None:
    found = dict(search(postings("cat cat dog", "dog", "", "owl owl owl owl"), "cat dog dog"))
    mean = (3 + 1 + 0 + 4) / 4

    def weight(count: int, length: int, holding: int) -> float:
        idf = math.log((4 - holding + 0.5) / (holding + 0.5) + 1)
        return idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))

    assert found == pytest.approx({0: weight(2, 3, 1) + 2 * weight(1, 3, 2), 1: 2 * weight(1, 1, 2)}, rel=1e-6)


def test_equal_scores_come_by_the_querys_first_word_then_by_row() -> None:
    found = postings("dog", "cat", "dog", "cat", "owl")
    assert [row for row, _ in search(found, "cat dog")] == [1, 3, 0, 2]
    assert [row for row, _ in search(found, "dog cat", limit=3)] == [0, 2, 1]


def test_nothing_is_found_without_a_common_word() -> None:
    assert search(postings("cat", "dog"), "owl") == []
    assert search(postings("", ""), "owl") == []
    assert search(postings("cat"), "") == []


def test_the_largest_and_the_smallest_hash_are_found() -> None:
    rows = [sparse_to_bytes({0: 1.0}), sparse_to_bytes({0xFFFFFFFF: 1.0, term_to_id("cat"): 1.0})]
    found = Postings.of(pa.chunked_array([rows], type=pa.binary()), k1=K1, b=B)
    for term, row in ((0, 0), (0xFFFFFFFF, 1)):
        assert found.search({term: 1.0}, 3)[0].tolist() == [row]


def test_the_column_may_come_in_pieces() -> None:
    texts = ("cat dog", "owl", "", "dog dog cat", "cat")
    whole = pa.array(counted("bee", *texts), type=pa.binary())
    pieces = pa.chunked_array([whole.slice(1, 2), whole.slice(3, 3)])
    found = Postings.of(pieces, k1=K1, b=B)
    assert search(found, "dog cat") == search(postings(*texts), "dog cat")


@pytest.mark.parametrize("rows", [[b"1234567"], [None], [b"12345678", None]])
def test_another_format_is_refused(rows: list[bytes | None]) -> None:
    with pytest.raises(ValueError, match="counted words"):
        Postings.of(pa.chunked_array([rows], type=pa.binary()), k1=K1, b=B)
