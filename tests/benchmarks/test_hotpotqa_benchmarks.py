"""The pure parts of the benchmarks that ask HotpotQA."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document
from milvus_lite.index.sparse_inverted import SparseInvertedIndex

from benchmarks.hotpotqa_oracle import GoldJudge, GoldReader, RememberingRetriever, Seen, needs_of
from benchmarks.hotpotqa_retrieval import BM25_B, BM25_K1, Bm25, BruteForce, fuse, words_of
from judgetree.evaluation.datasets.hotpotqa import load_hotpotqa
from judgetree.evaluation.datasets.questions import Dataset
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.gold import sub_question
from judgetree.modules.reader.prompts import REFUSAL, reader_messages

QUESTION = "Which river drives the mill of Tarn?"
KEY = "document_key"

# --- brute force ---


def test_words_are_those_of_the_analyzer() -> None:
    assert words_of("The Mill's wheel, at O'Neil's: 40-mm") == ["mill", "s", "wheel", "o", "neil", "s", "40", "mm"]


def test_bm25_is_the_formula() -> None:
    # Two of three texts hold "cat" (idf = ln(1 + 1.5/2.5)), all have the mean length: one occurrence weighs 1, two
    # weigh 2 * 2.5 / 3.5.
    scores = Bm25(["cat sat", "cat cat", "dog ran"]).scores("cat")
    assert list(scores) == pytest.approx([math.log(1.6), math.log(1.6) * 5.0 / 3.5, 0.0])


def test_bm25_has_the_parameters_of_milvus_lite() -> None:
    lite = SparseInvertedIndex()
    assert (lite.k1, lite.b) == (BM25_K1, BM25_B)


def test_bm25_counts_repeated_words_and_ignores_unknown_ones() -> None:
    bm25 = Bm25(["cat sat", "dog ran"])
    assert list(bm25.scores("cat cat bird")) == pytest.approx(list(2 * bm25.scores("cat")))


def test_fusion_sums_the_reciprocal_ranks() -> None:
    assert fuse([[7, 8], [8]]) == pytest.approx({7: 1 / 61, 8: 1 / 62 + 1 / 61})


def test_brute_force_fuses_both_fields_and_breaks_ties_by_id() -> None:
    search = BruteForce(
        chunk_ids=["c", "b", "a"],
        keys=["words", "both", "vectors"],
        vectors=np.array([[-1.0, 0.0], [0.8, 0.6], [1.0, 0.0]], dtype=np.float32),
        bm25=Bm25(["mill mill weir", "mill weir weir", "barn"]),
    )
    # By vectors: vectors, both, words. By words: words, both. So both has 2/62, words 1/61 + 1/63, vectors 1/61.
    assert search.search("mill", [2.0, 0.0], topk=3) == ["words", "both", "vectors"]
    assert search.search("mill", [2.0, 0.0], topk=1) == ["words"]
    # No text has the word: the ranking by vectors alone.
    assert search.search("lathe", [1.0, 0.0], topk=2) == ["vectors", "both"]


# --- the ideal judge and reader ---


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    row = {
        "_id": "q",
        "question": QUESTION,
        "answer": "the Esk",
        "type": "bridge",
        "context": [["Tarn", ["Tarn has  a mill."]], ["Mill", ["The mill stands", " on the Esk."]], ["Barn", ["No."]]],
        "supporting_facts": [["Tarn", 0], ["Mill", 1]],
    }
    file = tmp_path / "hotpotqa.json"
    file.write_text(json.dumps([row]), encoding="utf-8")
    return load_hotpotqa(file)


def judged(dataset: Dataset, query: str, title: str, seen: Seen, *, expand: bool = True) -> tuple[int | None, str]:
    [document] = (each for each in dataset.documents if each.title == title)
    judge = GoldJudge(needs_of(dataset), seen, key_field=KEY)
    chunk = Document(page_content=document.text, metadata={KEY: document.key})
    verdict = asyncio.run(judge.judge(query, chunk, meter=CallMeter(node="judge"), expand=expand))
    return verdict.score, verdict.next_query


def keys(dataset: Dataset, *titles: str) -> frozenset[str]:
    return frozenset(document.key for document in dataset.documents if document.title in titles)


def test_judge_says_2_of_gold_once_it_sees_all_gold(dataset: Dataset) -> None:
    def everything(query: str, key: str) -> frozenset[str]:
        return keys(dataset, "Tarn", "Mill", "Barn")

    assert judged(dataset, QUESTION, "Tarn", everything) == (2, "")
    assert judged(dataset, QUESTION, "Barn", everything) == (0, "")


def test_judge_asks_for_the_title_it_does_not_see(dataset: Dataset) -> None:
    def alone(query: str, key: str) -> frozenset[str]:
        return frozenset({key})

    assert judged(dataset, QUESTION, "Tarn", alone) == (1, 'What is stated about "Mill"?')
    assert judged(dataset, QUESTION, "Mill", alone) == (1, 'What is stated about "Tarn"?')
    assert judged(dataset, QUESTION, "Mill", alone, expand=False) == (1, "")
    assert judged(dataset, sub_question("Mill"), "Mill", alone) == (2, "")
    assert judged(dataset, "Who?", "Mill", alone) == (0, "")


@pytest.mark.parametrize(
    ("query", "evidence", "answer"),
    [
        (
            QUESTION,
            "[1] a\nTarn. Tarn has a mill.\n\n[2] b\nMill. The mill stands\non the Esk.",
            "Tarn. Tarn has a mill.",
        ),
        (QUESTION, "[1] a\nTarn. Tarn has a mill.", REFUSAL),
        (sub_question("Mill"), "[1] b\nMill. The mill stands on the Esk.", "Mill. The mill stands on the Esk."),
        ("Who?", "[1] b\nMill. The mill stands on the Esk.", REFUSAL),
    ],
)
def test_reader_answers_from_complete_evidence_alone(dataset: Dataset, query: str, evidence: str, answer: str) -> None:
    meter = CallMeter(node="generate")
    completion = asyncio.run(GoldReader(needs_of(dataset)).complete(reader_messages(query, evidence), meter=meter))
    assert completion.text.startswith(answer)
    assert [record["kind"] for record in meter.records] == ["chat"]


class CountingRetriever:
    """Finds one chunk for anything."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "counting"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        self.asked.append(query)
        return [(Document(page_content=query, metadata={KEY: f"key of {query}"}), 1.0)]


def test_retriever_asks_once_and_remembers_the_keys() -> None:
    inner = CountingRetriever()
    retriever = RememberingRetriever(inner, KEY)

    async def search_twice() -> bool:
        meter = CallMeter(node="retrieve")
        return await retriever.asearch("a", meter=meter) == await retriever.asearch("a", meter=meter)

    assert asyncio.run(search_twice())
    assert inner.asked == ["a"]
    assert retriever.retrieved("a") == {"key of a"}
