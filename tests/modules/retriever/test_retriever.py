"""The retriever's contract, on embedded Milvus Lite and on a server."""

from __future__ import annotations

import asyncio
import functools
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_milvus import BM25BuiltInFunction, Milvus

from judgetree.graphs.systems.widened import widened
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import CollectionError, ModelCallError, SearchArgumentError
from judgetree.modules.index.connection import MilvusConnection, is_address
from judgetree.modules.index.content import text_in
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.own import create_own_retriever, needs_index
from judgetree.modules.retriever.reordering import Reordering
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.retriever.search import (
    FETCH_AT_LEAST,
    Hits,
    VectorField,
    chosen_fields,
    similarity,
)
from judgetree.modules.retriever.searched import describe_target
from judgetree.modules.retriever.selection import OBJECTIVES, candidates_of, greedy
from judgetree.modules.retriever.snapshot_target import searcher_of
from judgetree.modules.settings import load_settings
from tests.modules.conftest import drop_collection
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.rerank_server import RerankServer

ANIMALS = ("cat", "dog", "owl", "fox", "bee", "elk", "ant", "bat", "cow", "eel", "hen", "yak")


@pytest.fixture(scope="module")
def animals(connection: MilvusConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Thirty files, two dense fields; ``quokka`` stands in one, every animal in a few."""
    docs = tmp_path_factory.mktemp("animals")
    for number in range(30):
        first, second = ANIMALS[number % 12], ANIMALS[(number * 5 + 1) % 12]
        rare = " quokka" if number == 7 else ""
        (docs / f"{number:02}.txt").write_text(f"The {first} saw a {second} at place{number}.{rare}")
    embedders = {"dense": BagOfWordsEmbedder(), "small": BagOfWordsEmbedder("fake:small", 16)}
    with Index(embedders, docs, None, f"animals_{uuid.uuid4().hex[:12]}", uri=connection.uri, token="") as index:
        index.get_index_done()
        yield index
        drop_collection(index)


def ids(hits: Hits) -> list[str]:
    return [str(chunk.metadata["chunk_id"]) for chunk, _ in hits]


def scores(hits: Hits) -> list[float]:
    return [score for _, score in hits]


class FailingEmbedder(BagOfWordsEmbedder):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise ModelCallError("the endpoint is down")


class ReversingModel:
    """Turns the order round, so that its work cannot be mistaken for the coarse order."""

    name = "test:reversing"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        self.asked.append(list(documents))
        return [(position, float(position)) for position in reversed(range(len(documents)))][:top_n]


class BrokenModel:
    name = "test:broken"

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        raise RuntimeError("out of memory")


def test_only_searches_of_an_embedded_lite_take_turns(animals: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    store = animals.vector_store  # without its files, which would be searched in a snapshot
    retriever, client = Retriever(store, search_type="sparse"), store.client
    found = retriever.get_similar_chunk_with_score("cat")
    search, inside, counting, together = client.search, 0, threading.Lock(), threading.Event()

    def slow_search(*args: object, **options: object) -> object:
        nonlocal inside
        with counting:
            inside += 1
            if inside == 2:
                together.set()
        together.wait(0.5)
        try:
            return search(*args, **options)
        finally:
            with counting:
                inside -= 1

    monkeypatch.setattr(client, "search", slow_search)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(retriever.get_similar_chunk_with_score, ["cat", "cat"])) == [found, found]
    assert together.is_set() == is_address(animals.connection.uri)


class TestSearching:
    @pytest.mark.parametrize("search_type", ["dense", "sparse", "hybrid"])
    @pytest.mark.parametrize("ranker_type", ["rrf", "weighted"])
    def test_the_best_comes_first_with_python_floats(self, animals: Index, search_type: str, ranker_type: str) -> None:
        retriever = Retriever(animals, topk=5, search_type=search_type, ranker_type=ranker_type)
        hits = retriever.get_similar_chunk_with_score("the quokka saw place7")
        assert "quokka" in hits[0][0].page_content
        assert len(hits) == 5
        assert all(type(score) is float for score in scores(hits))
        assert scores(hits) == sorted(scores(hits), reverse=True)
        assert hits[0][1] > hits[1][1]

    def test_chunks_carry_their_words_and_nothing_of_milvus(self, animals: Index) -> None:
        ((chunk, _),) = Retriever(animals, topk=1).get_similar_chunk_with_score("quokka")
        assert chunk.metadata.keys() == {"chunk_id", "source", "title", "start_index"}
        assert chunk.metadata["source"] == "07.txt"

    @pytest.mark.parametrize("fields", [["dense"], ["sparse"], ["dense", "small"], ["small", "sparse"], None])
    @pytest.mark.parametrize("ranker_type", ["rrf", "weighted"])
    def test_any_fields_can_be_fused(self, animals: Index, fields: list[str] | None, ranker_type: str) -> None:
        retriever = Retriever(animals, topk=4, search_fields=fields, search_type="hybrid", ranker_type=ranker_type)
        hits = retriever.get_similar_chunk_with_score("quokka place7")
        assert len(set(ids(hits))) == len(hits)
        assert hits[0][0].metadata["source"] == "07.txt"

    def test_rrf_is_the_sum_of_reciprocal_ranks(self, animals: Index) -> None:
        retriever = Retriever(animals, topk=20, search_fields=["dense"])
        one = ids(retriever.get_similar_chunk_with_score("owl at place3"))
        retriever.search_fields = ["small"]
        other = ids(retriever.get_similar_chunk_with_score("owl at place3"))
        retriever.search_fields, retriever.search_type, retriever.topk = ["dense", "small"], "hybrid", 5
        retriever.ranker_params = {"k": 10}
        fused = retriever.get_similar_chunk_with_score("owl at place3")
        for chunk, score in fused:
            ranks = [
                order.index(chunk.metadata["chunk_id"]) + 1
                for order in (one, other)
                if chunk.metadata["chunk_id"] in order
            ]
            assert score == pytest.approx(sum(1 / (10 + rank) for rank in ranks), abs=1e-6)

    def test_a_weight_of_zero_leaves_the_other_field_alone(self, animals: Index) -> None:
        alone = Retriever(animals, topk=3, search_type="sparse").get_similar_chunk_with_score("yak place11")
        hybrid = Retriever(
            animals,
            topk=1,
            search_type="hybrid",
            search_fields=["dense", "sparse"],
            ranker_type="weighted",
            ranker_params={"weights": [0.0, 1.0]},
        )
        assert ids(hybrid.get_similar_chunk_with_score("yak place11")) == ids(alone)[:1]

    def test_each_field_of_a_hybrid_search_fetches_more_than_topk(self, animals: Index) -> None:
        query = "the owl saw a cat"
        orders = [
            ids(Retriever(animals, topk=FETCH_AT_LEAST, search_fields=[name]).get_similar_chunk_with_score(query))
            for name in ("dense", "small")
        ]
        fused = {
            one: sum(1 / (61 + found.index(one)) for found in orders if one in found)
            for order in orders
            for one in order
        }
        retriever = Retriever(animals, topk=1, search_type="hybrid", search_fields=["dense", "small"])
        ((chunk, score),) = retriever.get_similar_chunk_with_score(query)
        assert score == pytest.approx(max(fused.values()), abs=1e-6)
        assert fused[chunk.metadata["chunk_id"]] == pytest.approx(score, abs=1e-6)

    def test_equal_scores_come_in_the_same_order_whatever_topk(self, animals: Index) -> None:
        for search_type in ("dense", "sparse", "hybrid"):
            retriever = Retriever(animals, topk=5, search_type=search_type)
            five = ids(retriever.get_similar_chunk_with_score("yak"))
            for topk in range(1, 5):
                retriever.topk = topk
                assert ids(retriever.get_similar_chunk_with_score("yak")) == five[:topk]

    def test_the_methods_search_their_kind_whatever_the_attributes_say(self, animals: Index) -> None:
        retriever = Retriever(animals, search_type="dense")
        sparse = Retriever(animals, search_type="sparse")
        assert retriever.sparse_search("yak") == sparse.get_similar_chunk_with_score("yak")
        assert sparse.dense_search("yak") == retriever.get_similar_chunk_with_score("yak")
        hybrid = Retriever(animals, search_type="hybrid").get_similar_chunk_with_score("yak")
        assert retriever.hybrid_search("yak") == hybrid

    def test_stop_words_count_for_nothing(self, animals: Index) -> None:
        retriever = Retriever(animals, search_type="sparse")
        assert retriever.get_similar_chunk_with_score("The At A") == []
        alone = retriever.get_similar_chunk_with_score("QUOKKA")
        assert retriever.get_similar_chunk_with_score("what is the quokka") == alone != []

    def test_words_that_stand_nowhere_give_no_sparse_hit(self, animals: Index) -> None:
        assert Retriever(animals, search_type="sparse").get_similar_chunk_with_score("xylophone") == []

    @pytest.mark.parametrize("search_type", ["dense", "sparse", "hybrid"])
    @pytest.mark.parametrize("query", ["", " ", "???", '"quoted\\', "汉字", "a" * 5000])
    def test_no_query_breaks_a_search(self, animals: Index, search_type: str, query: str) -> None:
        assert len(Retriever(animals, search_type=search_type).get_similar_chunk_with_score(query)) <= 3

    def test_a_threshold_drops_what_scores_lower(self, animals: Index) -> None:
        retriever = Retriever(animals, topk=5)
        hits = retriever.get_similar_chunk_with_score("quokka at place7")
        retriever.score_threshold = hits[1][1]
        assert retriever.get_similar_chunk_with_score("quokka at place7") == hits[:2]
        retriever.score_threshold = 2.0
        assert retriever.get_similar_chunk_with_score("quokka at place7") == []

    def test_a_filter_keeps_sources(self, animals: Index) -> None:
        wanted = ["03.txt", "04.txt"]
        for search_type in ("dense", "sparse", "hybrid"):
            retriever = Retriever(animals, topk=9, search_type=search_type, expr=text_in("source", wanted))
            found = {chunk.metadata["source"] for chunk, _ in retriever.get_similar_chunk_with_score("the saw")}
            assert found == set(wanted)

    def test_search_params_reach_the_index(self, animals: Index) -> None:
        retriever = Retriever(animals, search_params={"params": {"ef": 30}})
        assert len(retriever.get_similar_chunk_with_score("yak")) == 3

    @pytest.mark.parametrize(
        ("metric", "lite", "expected"),
        [
            ("COSINE", True, 0.5),
            ("IP", False, 0.5),
            ("L2", True, -0.5),
            ("L2", False, -0.5),
            ("BM25", True, -0.5),
            ("BM25", False, 0.5),
        ],
    )
    def test_scores_are_turned_so_that_higher_is_better(self, metric: str, lite: bool, expected: float) -> None:
        assert similarity(0.5, metric, lite=lite) == expected

    def test_a_metric_of_distances_is_turned_round(self, embedded: MilvusConnection, tmp_path: Path) -> None:
        (tmp_path / "docs").mkdir()
        for number, text in enumerate(("cats sleep", "cats", "dogs")):
            (tmp_path / "docs" / f"{number}.txt").write_text(text)
        l2 = {"dense": {"index_type": "HNSW", "metric_type": "L2"}}
        name = f"l2_{uuid.uuid4().hex[:12]}"
        with Index(
            BagOfWordsEmbedder(), tmp_path / "docs", None, name, uri=embedded.uri, token="", index_params=l2
        ) as index:
            index.get_index_done()
            hits = Retriever(index).get_similar_chunk_with_score("cats sleep")
            drop_collection(index)
        assert [chunk.page_content for chunk, _ in hits] == ["cats sleep", "cats", "dogs"]
        assert scores(hits) == sorted(scores(hits), reverse=True)
        assert hits[0][1] == pytest.approx(0.0, abs=1e-6)


class TestArguments:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"search_fields": ["colour"]}, r"search_fields names colour. Vector fields: dense, small, sparse"),
            ({"search_fields": ["dense", "small"]}, "A dense search asks one field, search_fields names 2"),
            ({"search_fields": ["sparse"]}, "nothing for a dense search. Fields that fit: dense, small"),
            ({"search_fields": []}, "nothing for a dense search"),
            ({"search_type": "fuzzy"}, "search_type='fuzzy' is unknown. Allowed: dense, sparse, hybrid"),
            ({"search_params": [{}, {}]}, r"2 search_params for 1 fields \(dense\)"),
            ({"search_type": "hybrid", "search_params": {}}, "1 search_params for 3 fields"),
            (
                {"search_type": "hybrid", "ranker_type": "weighted", "ranker_params": {"weights": [0.5, 0.5]}},
                "does not fit the 3 fields",
            ),
            (
                {"search_type": "hybrid", "ranker_type": "weighted", "ranker_params": {"weights": [0.5, 0.5, 2]}},
                "The weight 2 is not allowed",
            ),
            ({"topk": 0}, "topk=0 is not allowed"),
            ({"topk": 10**9}, r"topk=1000000000 is not allowed\. Give a whole number from 1 to 16,384"),
            ({"score_threshold": float("nan")}, "score_threshold=nan is not allowed"),
            ({"topk": 1.5}, r"topk=1\.5 is not allowed"),
            ({"ranker_type": "best"}, "ranker_type='best' .* Allowed types: rrf, weighted and, .* model"),
            ({"ranker_params": {"k": 0}}, "k=0 is not allowed"),
            ({"rerank_input_top_n": 0}, "rerank_input_top_n=0 is not allowed"),
            ({"ranker_type": "model"}, "Needed: model"),
            ({"ranker_type": "model", "ranker_params": {"model": "x:y"}}, "Unknown rerank model 'x:y'"),
            (
                {"ranker_type": "model", "ranker_params": {"model": BrokenModel(), "pre_topk": 2}},
                "pre_topk=2 is not allowed",
            ),
            (
                {
                    "search_type": "hybrid",
                    "ranker_type": "model",
                    "ranker_params": {"model": BrokenModel(), "pre_ranker_type": "model"},
                },
                "ranker_type='model' with parameters",
            ),
            ({"ranker_type": "mmr", "ranker_params": {"pre_topk": 2}}, r"pre_topk=2 .* from topk=3 to 1,000\."),
            ({"ranker_type": "mmr", "ranker_params": {"pre_topk": 1001}}, "pre_topk=1001 is not allowed"),
            ({"ranker_type": "mmr", "topk": 1001}, "pre_topk=1001 is not allowed"),
            ({"ranker_type": "mmr", "ranker_params": {"a": 1}}, "a are unknown to ranker_type='mmr'"),
            ({"ranker_type": "facility_location", "ranker_params": {"relevance": 1.1}}, "relevance=1.1 .* from 0 to 1"),
            ({"ranker_type": "mmr", "ranker_params": {"relevance": float("nan")}}, "relevance=nan is not allowed"),
            ({"ranker_type": "mmr", "ranker_params": {"relevance": True}}, "relevance=True is not allowed"),
            ({"ranker_type": "log_det", "ranker_params": {"a": 0}}, "a=0 is not allowed. Give a number above 0"),
            ({"ranker_type": "log_det", "ranker_params": {"a": float("inf")}}, "a=inf is not allowed"),
            (
                {"search_type": "hybrid", "ranker_type": "log_det", "ranker_params": {"pre_ranker_type": "mmr"}},
                "ranker_type='mmr' with parameters",
            ),
        ],
    )
    def test_attributes_are_checked_each_time(self, animals: Index, changes: dict[str, object], message: str) -> None:
        retriever = Retriever(animals)
        retriever.get_similar_chunk_with_score("yak")
        for name, value in changes.items():
            setattr(retriever, name, value)
        with pytest.raises(SearchArgumentError, match=message):
            retriever.check_args()
        with pytest.raises(SearchArgumentError, match=message):
            retriever.get_similar_chunk_with_score("yak")

    def test_fields_keep_the_order_they_are_named_in(self) -> None:
        fields = {
            name: VectorField(name=name, kind=kind, metric="COSINE", index_type="", embedder=None)
            for name, kind in (("a", "dense"), ("b", "dense"), ("s", "sparse"))
        }
        assert [field.name for field in chosen_fields(fields, ["s", "a"], "hybrid")] == ["s", "a"]
        assert [field.name for field in chosen_fields(fields, None, "hybrid")] == ["a", "b", "s"]
        assert [field.name for field in chosen_fields(fields, None, "dense")] == ["a"]
        assert [field.name for field in chosen_fields(fields, None, "sparse")] == ["s"]

    def test_a_wrong_filter_is_an_error_that_says_so(self, animals: Index) -> None:
        with pytest.raises(CollectionError, match="Searching the collection"):
            Retriever(animals, expr="source ===").get_similar_chunk_with_score("yak")


class TestRerankModel:
    def test_it_orders_what_the_coarse_search_found(self, animals: Index) -> None:
        model = ReversingModel()
        coarse = Retriever(animals, topk=10, search_type="hybrid").get_similar_chunk_with_score("yak cow")
        retriever = Retriever(animals, search_type="hybrid", ranker_type="model", ranker_params={"model": model})
        hits = retriever.get_similar_chunk_with_score("yak cow")
        assert model.asked == [[chunk.page_content for chunk, _ in coarse]]
        assert ids(hits) == list(reversed(ids(coarse)))[:3]
        assert scores(hits) == [9.0, 8.0, 7.0]

    def test_its_coarse_search_can_be_set(self, animals: Index) -> None:
        model = ReversingModel()
        params = {
            "model": model,
            "pre_topk": 6,
            "pre_ranker_type": "weighted",
            "pre_ranker_params": {"weights": [1.0, 0.0, 0.0]},
        }
        retriever = Retriever(animals, search_type="hybrid", ranker_type="model", ranker_params=params)
        retriever.rerank_input_top_n = 4
        retriever.get_similar_chunk_with_score("yak cow")
        dense = Retriever(animals, topk=4).get_similar_chunk_with_score("yak cow")
        assert model.asked == [[chunk.page_content for chunk, _ in dense]]

    def test_its_failure_keeps_the_order(self, animals: Index, caplog: pytest.LogCaptureFixture) -> None:
        coarse = Retriever(animals).get_similar_chunk_with_score("yak cow")
        retriever = Retriever(animals, ranker_type="model", ranker_params={"model": BrokenModel()})
        retriever.score_threshold = 100.0  # meant for the model's scores
        meter = CallMeter(node="retrieve")
        hits = asyncio.run(retriever.asearch("yak cow", meter=meter))
        assert hits == coarse
        (record,) = [record for record in meter.records if record["kind"] == "rerank"]
        assert (record["model"], record["error"]) == ("test:broken", "RuntimeError: out of memory")
        assert "test:broken failed" in caplog.text

    def test_a_service_over_http(self, animals: Index, rerank_server: RerankServer) -> None:
        params = {"model": f"{rerank_server.url}#m"}
        retriever = Retriever(animals, ranker_type="model", ranker_params=params, score_threshold=0.9)
        meter = CallMeter(node="retrieve")
        hits = asyncio.run(retriever.asearch("quokka place7", meter=meter))
        assert [chunk.metadata["source"] for chunk, _ in hits] == ["07.txt"]
        assert [(record["kind"], record["model"], record["error"]) for record in meter.records] == [
            ("embedding", "fake:bag", ""),
            ("rerank", f"{rerank_server.url}#m", ""),
        ]

    def test_nothing_found_asks_no_model(self, animals: Index) -> None:
        model = ReversingModel()
        retriever = Retriever(animals, search_type="sparse", ranker_type="model", ranker_params={"model": model})
        assert retriever.get_similar_chunk_with_score("xylophone") == []
        assert model.asked == []


SELECTING = ("mmr", "facility_location", "log_det")


class TestSelections:
    @pytest.mark.parametrize("search_type", ["dense", "sparse", "hybrid"])
    @pytest.mark.parametrize("ranker_type", SELECTING)
    def test_they_choose_from_the_coarse_hits_by_relevance_and_vectors(
        self, animals: Index, search_type: str, ranker_type: str
    ) -> None:
        coarse = Retriever(animals, topk=12, search_type=search_type).get_similar_chunk_with_score("owl saw a fox")
        params = {"relevance": 0.5, "pre_topk": 12}
        retriever = Retriever(animals, 4, search_type=search_type, ranker_type=ranker_type, ranker_params=params)
        hits = retriever.get_similar_chunk_with_score("owl saw a fox")
        embedder = BagOfWordsEmbedder()
        candidates = candidates_of(scores(coarse), embedder.embed_documents([hit[0].page_content for hit in coarse]))
        chosen = greedy(OBJECTIVES[ranker_type](candidates, {"relevance": 0.5, "a": 1.0}), len(coarse), 4)
        assert ids(hits) == [ids(coarse)[place] for place, _ in chosen]
        assert scores(hits) == pytest.approx([gain for _, gain in chosen], abs=2e-6)
        assert scores(hits) == sorted(scores(hits), reverse=True)
        assert hits[0][0].metadata.keys() == {"chunk_id", "source", "title", "start_index"}
        assert asyncio.run(retriever.asearch("owl saw a fox", meter=CallMeter(node="retrieve"))) == hits

    @pytest.mark.parametrize("ranker_type", SELECTING)
    def test_relevance_alone_keeps_the_coarse_order(self, animals: Index, ranker_type: str) -> None:
        coarse = Retriever(animals, search_type="hybrid", topk=5).get_similar_chunk_with_score("yak cow place3")
        params = {"relevance": 1}
        chosen = Retriever(animals, 5, search_type="hybrid", ranker_type=ranker_type, ranker_params=params)
        assert ids(chosen.get_similar_chunk_with_score("yak cow place3")) == ids(coarse)

    def test_fewer_hits_than_wanted_are_all_chosen_and_none_is_nothing(self, animals: Index) -> None:
        retriever = Retriever(animals, 20, search_type="sparse", ranker_type="facility_location")
        found = retriever.get_similar_chunk_with_score("yak")
        retriever.ranker_type = "rrf"
        assert sorted(ids(found)) == sorted(ids(retriever.get_similar_chunk_with_score("yak")))
        retriever.ranker_type = "log_det"
        assert retriever.get_similar_chunk_with_score("xylophone") == []

    def test_the_least_gain_and_the_candidates_can_be_set(self, animals: Index) -> None:
        retriever = Retriever(animals, 6, ranker_type="facility_location")
        found = retriever.get_similar_chunk_with_score("owl saw a fox at place3")
        retriever.score_threshold = (found[0][1] + found[-1][1]) / 2
        above = retriever.get_similar_chunk_with_score("owl saw a fox at place3")
        assert 0 < len(above) < len(found)
        assert above == [hit for hit in found if hit[1] >= retriever.score_threshold]
        retriever.score_threshold, retriever.rerank_input_top_n = None, 2
        first = Retriever(animals, 2).get_similar_chunk_with_score("owl")
        assert sorted(ids(retriever.get_similar_chunk_with_score("owl"))) == sorted(ids(first))

    def test_a_sparse_search_names_the_embedder_of_the_vectors_in_its_fingerprint(self, animals: Index) -> None:
        retriever = Retriever(animals, search_type="sparse", ranker_type="mmr")
        assert retriever.fingerprint()["embedders"] == '{"dense": "fake:bag"}'
        retriever.search_fields, retriever.search_type = ["sparse", "small"], "hybrid"
        assert retriever.fingerprint()["embedders"] == '{"small": "fake:small"}'

    def test_vectors_of_chunks_that_are_gone_are_missing(self, animals: Index) -> None:
        retriever = Retriever(animals, 3)
        known = ids(retriever.get_similar_chunk_with_score("owl"))
        for store in (animals, animals.vector_store):
            target = describe_target(animals.vector_store)
            found = searcher_of(target, store).vectors("dense", [*known, "no such id", 'say "no"\\'])
            assert sorted(found) == sorted(known)
            assert all(vector.shape == (64,) for vector in found.values())

    def test_a_collection_without_vectors_is_refused(self) -> None:
        words = VectorField(name="sparse", kind="sparse", metric="BM25", index_type="", embedder=None)
        with pytest.raises(SearchArgumentError, match=r"'mmr' compares the vectors .* has no dense field\. Take"):
            Reordering("mmr", {}, 3, {"sparse": words}, None).check()
        Reordering("rrf", {}, 3, {"sparse": words}, None).check()


class TestRunning:
    def test_searches_in_parallel_agree_with_one_alone(self, animals: Index) -> None:
        retriever = Retriever(animals, search_type="hybrid")
        queries = [f"{animal} place{number}" for number, animal in enumerate(ANIMALS)]

        async def search_all() -> list[Hits]:
            meters = [CallMeter(node="retrieve") for _ in queries]
            return await asyncio.gather(
                *(retriever.asearch(query, meter=meter) for query, meter in zip(queries, meters, strict=True))
            )

        assert asyncio.run(search_all()) == [retriever.get_similar_chunk_with_score(query) for query in queries]

    def test_a_query_that_cannot_be_embedded_is_recorded_and_raised(self, animals: Index) -> None:
        retriever = Retriever(animals.vector_store)
        retriever.check_args()
        broken = Milvus(
            embedding_function=[FailingEmbedder(), BagOfWordsEmbedder("fake:small", 16)],
            builtin_function=BM25BuiltInFunction(output_field_names="sparse"),
            vector_field=["dense", "small", "sparse"],
            collection_name=animals.vector_store_name,
            connection_args={"uri": animals.connection.uri},
            index_params=[{"metric_type": "COSINE"}, {"metric_type": "COSINE"}, {"metric_type": "BM25"}],
            search_params=[{}, {}, {}],
        )
        retriever.vector_store = broken
        meter = CallMeter(node="retrieve")
        with pytest.raises(ModelCallError, match="endpoint is down"):
            asyncio.run(retriever.asearch("yak", meter=meter))
        assert [record["error"] for record in meter.records] == ["ModelCallError: the endpoint is down"]
        broken.client.close()

    def test_an_index_and_its_vector_store_are_searched_alike(self, animals: Index) -> None:
        by_index = Retriever(animals, search_type="hybrid")
        by_store = Retriever(vector_store=animals.vector_store, search_type="hybrid")
        assert by_index.get_similar_chunk_with_score("yak") == by_store.get_similar_chunk_with_score("yak")
        assert by_index.fingerprint() == by_store.fingerprint()

    def test_langchain_gets_documents_with_score_and_rank(self, animals: Index) -> None:
        retriever = Retriever(animals)
        hits = retriever.get_similar_chunk_with_score("yak")
        expected = [(chunk.metadata["chunk_id"], score, rank) for rank, (chunk, score) in enumerate(hits)]
        for documents in (retriever.invoke("yak"), asyncio.run(retriever.ainvoke("yak"))):
            assert [
                (document.metadata["chunk_id"], document.metadata["retrieval_score"], document.metadata["rank"])
                for document in documents
            ] == expected

    def test_langchains_own_search_works_twice_on_the_vector_store(self, animals: Index) -> None:
        store = animals.vector_store
        with pytest.warns(DeprecationWarning, match="ranker"):
            first = store.similarity_search("quokka", k=1, ranker_type="rrf", ranker_params={"k": 60})
        with pytest.warns(DeprecationWarning, match="ranker"):
            second = store.similarity_search("quokka", k=1, ranker_type="rrf", ranker_params={"k": 60})
        assert [one.metadata["source"] for one in first] == [one.metadata["source"] for one in second] == ["07.txt"]


class TestFingerprint:
    def test_it_is_made_of_texts_and_stays_the_same(self, animals: Index) -> None:
        fingerprint = Retriever(animals).fingerprint()
        assert fingerprint == Retriever(animals).fingerprint()
        assert fingerprint["collection"] == animals.vector_store_name
        assert fingerprint["content"] == animals.content_digest()
        assert fingerprint["embedders"] == '{"dense": "fake:bag"}'
        assert all(isinstance(value, str) for value in fingerprint.values())

    @pytest.mark.parametrize(
        "changes",
        [
            {"topk": 4},
            {"search_type": "hybrid"},
            {"search_type": "sparse"},
            {"search_fields": ["small"]},
            {"search_params": [{"params": {"ef": 99}}]},
            {"ranker_params": {"k": 1}},
            {"ranker_type": "weighted"},
            {"ranker_type": "model", "ranker_params": {"model": BrokenModel()}},
            {"ranker_type": "mmr"},
            {"ranker_type": "log_det"},
            {"score_threshold": 0.1},
            {"rerank_input_top_n": 5},
            {"expr": "page > 1"},
        ],
    )
    def test_every_attribute_changes_it(self, animals: Index, changes: dict[str, object]) -> None:
        retriever = Retriever(animals)
        before = retriever.fingerprint()
        for name, value in changes.items():
            setattr(retriever, name, value)
        assert retriever.fingerprint() != before

    def test_a_rerank_model_stands_in_it_by_name(self, animals: Index) -> None:
        retriever = Retriever(animals, ranker_type="model", ranker_params={"model": BrokenModel()})
        assert '"test:broken"' in retriever.fingerprint()["ranker_params"]


# --- subclasses ---


class Shouting(Retriever):
    """Finds what the base finds, louder."""

    mark: str = "!"
    words: frozenset[str] = frozenset()

    def search(self, query: str, *, meter: CallMeter) -> Hits:
        hits = super().search(query, meter=meter)
        return [
            (chunk.model_copy(update={"page_content": chunk.page_content.upper() + self.mark}), score)
            for chunk, score in hits
        ]


def test_every_search_of_a_subclass_is_its_own(animals: Index) -> None:
    retriever = Shouting(animals, 1, mark="?")
    meter = CallMeter(node="retrieve")
    [(plain, _)] = Retriever(animals, 1).get_similar_chunk_with_score("cat")
    found = [
        retriever.invoke("cat")[0],
        asyncio.run(retriever.ainvoke("cat"))[0],
        retriever.get_similar_chunk_with_score("cat")[0][0],
        asyncio.run(retriever.asearch("cat", meter=meter))[0][0],
    ]
    assert {chunk.page_content for chunk in found} == {plain.page_content.upper() + "?"}


def test_subclasses_that_differ_have_other_fingerprints(animals: Index) -> None:
    class Other(Shouting):
        pass

    made = [
        Retriever(animals),
        Shouting(animals),
        Shouting(animals, mark="?"),
        Shouting(animals, words=frozenset("ab")),
        Other(animals),
    ]
    prints = [each.fingerprint() for each in made]
    assert len({tuple(sorted(each.items())) for each in prints}) == len(made)
    assert Shouting(animals, words=frozenset("ba")).fingerprint() == prints[3]
    assert prints[1].items() - prints[0].items() >= {("class", f"{Shouting.__module__}.Shouting")}
    assert prints[0].keys() <= prints[1].keys()


@pytest.mark.parametrize("name", ["asearch", "get_similar_chunk_with_score", "_get_relevant_documents"])
def test_a_subclass_of_which_some_searches_would_be_the_bases_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Half overrides {name}\. Override search\(self, query, \*, meter\)"):
        type("Half", (Retriever,), {name: lambda self, query: []})


def test_a_field_that_a_subclass_lacks_is_refused(animals: Index) -> None:
    with pytest.raises(TypeError, match="Shouting has no field marks"):
        Shouting(animals, marks="?")


@pytest.mark.parametrize("given", [Shouting, functools.partial(Shouting, mark="?")])
def test_a_subclass_is_made_for_a_session_from_its_index(animals: Index, given: object) -> None:
    assert needs_index(given)
    retriever = create_own_retriever(given, index=animals, topk=1, settings=load_settings())
    [(chunk, _)] = asyncio.run(retriever.asearch("cat", meter=CallMeter(node="retrieve")))
    assert chunk.page_content == chunk.page_content.upper()
    assert retriever.fingerprint()["own.topk"] == "1"


@pytest.mark.parametrize("search_type", ["sparse", "dense", "hybrid"])
def test_equal_texts_do_not_fill_the_top(connection: MilvusConnection, docs: Path, search_type: str) -> None:
    for number in range(30):  # more than are fetched for a top 3
        (docs / f"{number:02}.txt").write_text("The cat met a cat.")
    for name in ("dog", "owl"):
        (docs / f"{name}.txt").write_text(f"The cat met a {name}.")
    with Index(
        BagOfWordsEmbedder(), docs, None, f"equal_{uuid.uuid4().hex[:12]}", uri=connection.uri, token=""
    ) as index:
        index.get_index_done()
        retriever = Retriever(index, topk=3, search_type=search_type)
        hits = retriever.get_similar_chunk_with_score("cat met")
        distinct = retriever.fingerprint()
        retriever.distinct_texts = False
        as_stored = retriever.get_similar_chunk_with_score("cat met")
        assert retriever.fingerprint() != distinct
        drop_collection(index)
    found = {str(chunk.metadata["source"]): chunk for chunk, _ in hits}
    assert {chunk.page_content[14:] for chunk in found.values()} == {"cat.", "dog.", "owl."}
    (others,) = [chunk.metadata["also_in"] for chunk in found.values() if "also_in" in chunk.metadata]
    assert {*others, *found} == {*(f"{number:02}.txt" for number in range(30)), "dog.txt", "owl.txt"}
    assert scores(hits) == sorted(scores(hits), reverse=True)
    assert [chunk.page_content for chunk, _ in as_stored] == ["The cat met a cat."] * 3


@pytest.mark.parametrize("dynamic", [False, True])
def test_collections_of_langchain_keep_their_columns_and_integer_keys(
    connection: MilvusConnection, dynamic: bool
) -> None:
    def store() -> Milvus:
        return Milvus(
            BagOfWordsEmbedder(),
            collection_name="of_langchain",
            connection_args={"uri": connection.uri},
            index_params={"index_type": "HNSW", "metric_type": "COSINE", "params": {}},
            primary_field="number",
            text_field="passage",
            auto_id=True,
            enable_dynamic_field=dynamic,
            drop_old=True,
        )

    first = store()
    metadata = {"source": "pets.pdf", "page": 3, "share": 0.5, "seen": True}
    keys = first.add_documents(
        [Document(page_content="The cat sleeps.", metadata=metadata), Document("A dog.", metadata=metadata)]
    )
    retriever = Retriever(first, topk=1)
    ((chunk, _),) = retriever.get_similar_chunk_with_score("cat sleeps")
    assert (chunk.page_content, chunk.metadata) == ("The cat sleeps.", {**metadata, "chunk_id": str(keys[0])})
    fingerprint = retriever.fingerprint()
    assert Retriever(first, topk=1).fingerprint() == fingerprint
    second = store()
    second.add_documents([Document("The cat sits.", metadata=metadata), Document("A dog.", metadata=metadata)])
    assert Retriever(second, topk=1).fingerprint() != fingerprint
    second.drop()
    for one in (first, second):
        one.client.close()


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({}, 6),
        ({"search_type": "hybrid"}, 6),
        ({"ranker_type": "mmr"}, 6),
        ({"ranker_type": "mmr", "ranker_params": {"pre_topk": 4}}, 4),
    ],
)
def test_a_widened_search_begins_with_what_it_found_and_finds_twice_as_many(
    animals: Index, options: dict[str, object], most: int
) -> None:
    retriever = Retriever(animals, topk=3, **options)  # type: ignore[arg-type]
    wider = widened(retriever)
    found, more = (asyncio.run(each.asearch("cat", meter=CallMeter(node="t"))) for each in (retriever, wider))
    assert ids(more)[:3] == ids(found)
    assert len(more) == most
    assert retriever.topk == 3
