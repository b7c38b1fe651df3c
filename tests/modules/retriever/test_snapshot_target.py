"""Searches in snapshots of a Milvus Lite folder: the hits of the store, whatever is asked and whatever changes."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from pymilvus import MilvusClient, RRFRanker, WeightedRanker
from pymilvus.client.abstract import BaseRanker

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import MilvusConnection, is_address
from judgetree.modules.index.content import text_in
from judgetree.modules.index.index import Index
from judgetree.modules.index.schema import DENSE_INDEX, SEARCH_FIELD, TEXT_FIELD
from judgetree.modules.retriever.contract import Searcher
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.retriever.search import FieldSearch, Hits, SearchTarget, query_data
from judgetree.modules.retriever.searched import describe_target
from judgetree.modules.retriever.snapshot import Snapshot
from judgetree.modules.retriever.snapshot_target import SnapshotTarget, searcher_of
from judgetree.modules.settings import SearchSnapshot
from tests.modules.fake_embeddings import BagOfWordsEmbedder

_ENGLISH = "flange gasket bolt torque valve steel pipe weld test plate of the and in rating F40 PN16 naïve Straße"
_CHINESE = "法兰 垫片 螺栓 扭矩 阀门 钢管 焊接 试验 压力 等级 标准 规范 的 和 在 之 中国 工程 F40 材料"
ENGLISH, CHINESE = _ENGLISH.split(), _CHINESE.split()
METRICS = {"dense": "COSINE", "small": "L2", "inner": "IP"}
QUERIES = 4


def texts(words: list[str], joint: str, *, count: int) -> Iterator[str]:
    """Short texts of few words, so that scores tie; every seventh one stands twice."""
    rng = random.Random(5)
    before = ""
    for number in range(count):
        before = before if number % 7 == 6 else joint.join(rng.choices(words, k=rng.randint(1, 14)))
        yield before


def write(folder: Path, name: str, *lines: str) -> None:
    rows = [
        {"text": line, "metadata": {"year": at, "tags": ["a", {"b": None}], "pk": "no"}}
        for at, line in enumerate(lines)
    ]
    (folder / name).write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")


Open = Callable[[str, SearchSnapshot | None], Index]
Opened = tuple[Index, Retriever, Retriever]


def searcher(index: Index) -> Searcher:
    return searcher_of(describe_target(index.vector_store), index)


def snapshot(index: Index) -> Snapshot | None:
    target = searcher(index)
    assert isinstance(target, SnapshotTarget)
    return target.snapshot()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Open an English or Chinese collection of three dense fields."""
    home = tmp_path_factory.mktemp("snapshots")
    uri = str(home / "milvus.db")
    fields = {"dense": 64, "small": 16, "inner": 24}
    embedders = {name: BagOfWordsEmbedder(f"fake:{name}", size) for name, size in fields.items()}
    params = {name: {**DENSE_INDEX, "metric_type": metric} for name, metric in METRICS.items()}
    indexes: list[Index] = []

    def index(language: str, search_snapshot: SearchSnapshot | None) -> Index:
        made = Index(
            embedders, home / language, None, language, uri=uri, index_params=params, search_snapshot=search_snapshot
        )
        indexes.append(made)
        return made

    for language, words, joint in (
        ("english", ENGLISH, " "),
        ("chinese", CHINESE, ""),
        ("mixed", ENGLISH + CHINESE, " "),
    ):
        (home / language).mkdir()
        for number in range(3):
            write(home / language, f"{number}.jsonl", *list(texts(words, joint, count=400))[number::3])
        index(language, "auto").get_index_done()
    for each in indexes:  # a folder that is opened again has its indexes finished
        each.close()
    yield index
    for each in indexes:
        each.close()


@pytest.fixture(scope="module")
def kept(opened: Open) -> Open:
    """Open each collection once, for tests that only search."""
    return cache(opened)


def queries(language: str) -> list[str]:
    words, joint = (ENGLISH, " ") if language == "english" else (CHINESE, "")
    rng = random.Random(17)
    made = [joint.join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(QUERIES)]
    return [*made, "gasket gasket Gasket flange", "unheard of", "", "!?", "垫片 gasket 法兰"]


def both(kept: Open, language: str, **options: object) -> tuple[Retriever, Retriever]:
    """A retriever over snapshots and one over the store."""
    one, other = (kept(language, mode) for mode in ("auto", "off"))
    assert snapshot(one) is not None
    assert isinstance(searcher(other), SearchTarget)
    return Retriever(one, **options), Retriever(other, **options)  # type: ignore[arg-type]


def with_metadata(hits: Hits) -> list[tuple[str, list[tuple[str, object]], float]]:
    """Compare also the order of the metadata, which prompts and rows show."""
    return [(chunk.page_content, list(chunk.metadata.items()), score) for chunk, score in hits]


SEARCHES = [
    {"search_type": "dense"},
    {"search_type": "dense", "search_fields": ["small"]},
    {"search_type": "dense", "search_fields": ["inner"]},
    {"search_type": "sparse"},
    {"search_type": "hybrid"},
    {"search_type": "hybrid", "ranker_params": {"k": 3}, "search_fields": ["sparse", "dense"]},
    {"search_type": "hybrid", "ranker_type": "weighted"},
    {"search_type": "hybrid", "ranker_type": "weighted", "ranker_params": {"weights": [0.2, 0.9, 0.1, 0.7]}},
    {"search_type": "hybrid", "search_fields": ["small", "inner"], "ranker_type": "weighted"},
    {"search_type": "hybrid", "score_threshold": 0.06, "topk": 30},
    {"search_type": "sparse", "topk": 200, "distinct_texts": False},
    {"search_type": "dense", "distinct_texts": False},
    {"search_type": "hybrid", "ranker_type": "mmr", "topk": 9, "distinct_texts": False},
    {"search_type": "hybrid", "ranker_type": "mmr", "topk": 9},
    {"search_type": "sparse", "ranker_type": "facility_location", "topk": 30},
    {"search_fields": ["small"], "ranker_type": "log_det", "ranker_params": {"relevance": 0.2, "pre_topk": 100}},
    {"search_fields": ["inner"], "ranker_type": "mmr", "ranker_params": {"relevance": 0.4}, "topk": 9},
]


@pytest.mark.parametrize("language", ["english", "chinese"])
@pytest.mark.parametrize("options", SEARCHES, ids=lambda options: "-".join(map(str, options.values())))
def test_the_hits_are_those_of_the_store(kept: Open, language: str, options: dict[str, object]) -> None:
    retriever, store = both(kept, language, **{"topk": 4, **options})
    for query in queries(language):
        found, wanted = (each.get_similar_chunk_with_score(query) for each in (retriever, store))
        assert with_metadata(found) == with_metadata(wanted), query
        assert all(type(score) is float for _, score in found)


@pytest.mark.parametrize(
    "options",
    [
        {"expr": text_in("source", ["1.jsonl"])},
        {"expr": "year < 20", "search_type": "sparse"},
        {"search_params": {"params": {"ef": 1}}},
        {"search_params": {"params": {"radius": 0.7}}},
    ],
)
def test_filters_and_search_parameters_are_the_stores(kept: Open, options: dict[str, object]) -> None:
    retriever, store = both(kept, "english", topk=9, **options)
    plain = Retriever(retriever.vector_store, topk=9, search_type=str(options.get("search_type", "dense")))
    for query in queries("english")[:5]:
        wanted = store.get_similar_chunk_with_score(query)
        assert retriever.get_similar_chunk_with_score(query) == wanted
    assert any(plain.invoke(query) != retriever.invoke(query) for query in queries("english"))


def test_a_wrong_query_vector_gets_the_stores_error(kept: Open) -> None:
    both(kept, "english")
    said = []
    for mode in ("auto", "off"):
        target = describe_target((index := kept("english", mode)).vector_store)  # type: ignore[arg-type]
        with pytest.raises(CollectionError) as error:
            searcher_of(target, index).search(FieldSearch(field=target.fields["dense"], data=[0.5, 0.5]), 3)
        said.append(str(error.value))
    assert said[0] == said[1]


RANKERS = [WeightedRanker(0.5, 0.5, norm_score=False), WeightedRanker(0.5, 0.5, norm_score=True), RRFRanker(1), None]


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("names", [("dense", "sparse"), ("sparse", "small"), ("small", "small")])
@pytest.mark.parametrize("language", ["english", "chinese"])
def test_equal_scores_are_cut_off_as_in_the_store(
    kept: Open, ranker: BaseRanker | None, names: tuple[str, str], language: str
) -> None:
    """Without a ranker, the first field alone is searched."""
    both(kept, language)
    indexes = [kept(language, mode) for mode in ("auto", "off")]
    for query in queries(language)[:4]:
        for limit in (1, 5, 20):
            found = []
            for index in indexes:
                target = describe_target(index.vector_store)
                fields = [target.fields[name] for name in names]
                asked = [FieldSearch(field=each, data=query_data(each, query, CallMeter(node="t"))) for each in fields]
                one = searcher_of(target, index)
                hits = one.search(asked[0], limit) if ranker is None else one.fused_search(asked, ranker, limit)
                found.append(with_metadata(hits))
            assert found[0] == found[1], (query, limit)


def test_a_retriever_asks_milvus_for_nothing(kept: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever, store = both(kept, "english", search_type="hybrid")
    wanted = store.get_similar_chunk_with_score("gasket")
    for method in ("search", "hybrid_search"):
        monkeypatch.delattr(MilvusClient, method)
    assert retriever.get_similar_chunk_with_score("gasket") == wanted


class Backwards(Retriever):
    def search(self, query: str, *, meter: CallMeter) -> Hits:
        return super().search(query, meter=meter)[::-1]


def test_a_subclass_searches_the_snapshot(kept: Open) -> None:
    retriever, _ = both(kept, "english", topk=5, search_type="hybrid")
    subclass = Backwards(retriever.vector_store, topk=5, search_type="hybrid")
    assert subclass.get_similar_chunk_with_score("gasket")[::-1] == retriever.get_similar_chunk_with_score("gasket")


def test_the_fingerprint_is_the_same(kept: Open) -> None:
    retriever, store = both(kept, "english")
    assert retriever.fingerprint() == store.fingerprint()


def test_simultaneous_first_searches_make_one_snapshot(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    retrievers = [Retriever(opened("mixed", "auto"), search_type="hybrid") for _ in range(2)]
    for each in retrievers:
        each.check_args()  # as sessions and runs do when they open one
    wanted = Retriever(opened("mixed", "off"), search_type="hybrid").get_similar_chunk_with_score("垫片 gasket")
    with caplog.at_level(logging.DEBUG, "judgetree.modules.retriever.snapshot"), ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda at: retrievers[at % 2].get_similar_chunk_with_score("垫片 gasket"), range(16), timeout=60)
        )
    assert found == [wanted] * 16
    assert sum("Snapshot of mixed" in record.message for record in caplog.records) == 1


def test_servers_and_vector_stores_are_searched_themselves(
    opened: Open, connection: MilvusConnection, make_index: Callable[[MilvusConnection], Index], docs: Path
) -> None:
    write(docs, "one.jsonl", "a gasket")
    index = make_index(connection)
    index.get_index_done()
    assert isinstance(searcher(index), SearchTarget) == is_address(connection.uri)
    store = opened("english", "auto").vector_store
    assert isinstance(searcher_of(describe_target(store), store), SearchTarget)


@pytest.mark.parametrize(("setting", "kind"), [("off", SearchTarget), ("auto", SnapshotTarget)])
def test_the_setting_switches_it(opened: Open, monkeypatch: pytest.MonkeyPatch, setting: str, kind: type) -> None:
    monkeypatch.setenv("JUDGETREE_SEARCH_SNAPSHOT", setting)
    assert type(searcher(opened("english", None))) is kind


# --- collections that change while they are open ---


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Callable[[], Opened]]:
    """A collection of its own; each call opens it anew, with its indexes finished."""
    docs = tmp_path / "docs"
    docs.mkdir()
    write(docs, "first.jsonl", *texts(ENGLISH, " ", count=60))
    indexes: list[Index] = []

    def opened() -> Opened:
        close()
        for mode in ("auto", "off"):
            uri = str(tmp_path / "milvus.db")
            indexes.append(Index(BagOfWordsEmbedder(), docs, None, "notes", uri=uri, search_snapshot=mode))  # type: ignore[arg-type]
        if len(indexes) == 2:
            indexes[0].get_index_done()
        retrievers = [Retriever(index, topk=5, search_type="hybrid") for index in indexes[-2:]]
        return indexes[-2], retrievers[0], retrievers[1]

    def close() -> None:
        for index in indexes:
            index.close()

    opened()
    yield opened
    close()


def test_writes_are_seen_by_the_next_search(changing: Callable[[], Opened], tmp_path: Path) -> None:
    index, retriever, store = changing()
    first = snapshot(index)
    assert first is not None
    assert not any("quokka" in chunk.page_content for chunk, _ in retriever.get_similar_chunk_with_score("quokka"))
    write(tmp_path / "docs", "more.jsonl", "a quokka beside the flange", "the quokka and the gasket")
    index.get_index_done()
    found = retriever.get_similar_chunk_with_score("quokka")
    assert sum("quokka" in chunk.page_content for chunk, _ in found) == 2
    assert found == store.get_similar_chunk_with_score("quokka")
    index.remove_files("more.jsonl")
    found = retriever.get_similar_chunk_with_score("quokka")
    assert not any("quokka" in chunk.page_content for chunk, _ in found)
    assert found == store.get_similar_chunk_with_score("quokka")
    index, *_ = changing()
    assert snapshot(index) not in (None, first)


def test_rows_of_other_programs_are_seen_before_and_after_a_flush(
    changing: Callable[[], Opened],
) -> None:
    index, retriever, store = changing()
    assert snapshot(index) is not None
    client, name = index.connection.client, index.vector_store_name
    (row,) = client.query(name, filter='source == "first.jsonl"', limit=1, output_fields=["*"])
    texts = dict.fromkeys((TEXT_FIELD, SEARCH_FIELD), "a quokka")
    row = {key: value for key, value in row.items() if key != "sparse"} | {"pk": "foreign", **texts}
    for change in (
        lambda: client.insert(name, [row]),
        lambda: client.flush(name),
        lambda: client.delete(name, ids=["foreign"]),
    ):
        change()
        assert snapshot(index) is None
        found = retriever.get_similar_chunk_with_score("quokka")
        assert found == store.get_similar_chunk_with_score("quokka")
        assert any("quokka" in chunk.page_content for chunk, _ in found) == (client.get(name, ids=["foreign"]) != [])


def test_a_collection_without_chunks_is_searched_in_the_store(
    changing: Callable[[], Opened],
) -> None:
    index, retriever, _ = changing()
    index.remove_files("first.jsonl")
    assert retriever.get_similar_chunk_with_score("gasket") == []


_OTHER_PROCESS = """
import json, sys
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.retriever.searched import describe_target
from judgetree.modules.retriever.snapshot_target import searcher_of
from tests.modules.fake_embeddings import BagOfWordsEmbedder
with Index(BagOfWordsEmbedder(), None, None, "notes", uri=sys.argv[1], search_snapshot="auto") as index:
    retriever = Retriever(index, topk=5, search_type="hybrid")
    hits = [(chunk.metadata, score) for chunk, score in retriever.get_similar_chunk_with_score("gasket flange")]
    print(json.dumps([searcher_of(describe_target(index.vector_store), index).snapshot() is not None, hits]))
"""


@pytest.mark.slow
def test_another_process_makes_a_snapshot_of_its_own(changing: Callable[[], Opened], tmp_path: Path) -> None:
    _, _, store = changing()
    wanted = [(chunk.metadata, score) for chunk, score in store.get_similar_chunk_with_score("gasket flange")]
    command = [sys.executable, "-c", _OTHER_PROCESS, str(tmp_path / "milvus.db")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert json.loads(done.stdout.splitlines()[-1]) == [True, json.loads(json.dumps(wanted))]


# --- files that are damaged ---


def damaged(folder: Path, pattern: str, keep: float) -> None:
    """Put a file of the same name, cut to a share of its bytes, in the place of the one that matches."""
    (file,) = folder.rglob(pattern)
    data = file.read_bytes()
    file.unlink()  # Lite's own is mapped or read already
    if keep < 1:
        file.write_bytes(data[: int(len(data) * keep)])


DAMAGES = [
    *((pattern, keep) for pattern in ("*.idx", "*.parquet", "schema.json") for keep in (0, 0.5, 0.99)),
    ("*.idx", 1),
]


@pytest.mark.parametrize(("pattern", "keep"), DAMAGES)
def test_damaged_files_are_never_believed(
    changing: Callable[[], Opened], tmp_path: Path, pattern: str, keep: float
) -> None:
    index, retriever, store = changing()
    index.info()
    store.get_similar_chunk_with_score("gasket")  # Lite has read all of it
    damaged(tmp_path / "milvus.db" / "collections", pattern, keep)
    assert snapshot(index) is None
    for query in queries("english")[:9]:
        assert retriever.get_similar_chunk_with_score(query) == store.get_similar_chunk_with_score(query)


def test_the_index_of_other_vectors_is_never_believed(changing: Callable[[], Opened], tmp_path: Path) -> None:
    index, retriever, store = changing()
    index.info()
    store.get_similar_chunk_with_score("gasket")
    faiss = pytest.importorskip("faiss")
    (file,) = (tmp_path / "milvus.db" / "collections").rglob("*.idx")
    graph = faiss.read_index(str(file))
    graph.add(graph.reconstruct_n(0, 1))
    file.unlink()
    faiss.write_index(graph, str(file))
    assert snapshot(index) is None
    assert retriever.get_similar_chunk_with_score("bolt") == store.get_similar_chunk_with_score("bolt")
