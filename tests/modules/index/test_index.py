"""The index's contract, on embedded Milvus Lite and on a server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from judgetree.modules.errors import CollectionError, LoadingError
from judgetree.modules.index.connection import MilvusConnection, connect
from judgetree.modules.index.content import text_in
from judgetree.modules.index.index import Index
from judgetree.modules.index.schema import (
    CollectionInfo,
    IndexParams,
    create_physical,
    leftovers,
    new_physical_name,
    read_collection_info,
    revision,
)
from judgetree.modules.retriever.retriever import Retriever
from tests.database_servers import LiteServer, is_locked
from tests.modules.fake_embeddings import BagOfWordsEmbedder

MakeIndex = Callable[[MilvusConnection], Index]
INFO = CollectionInfo(embedders={"dense": "fake:bag"}, dimensions={"dense": 2}, analyzer="standard", cjk_share=0.0)


def stored_ids(index: Index) -> list[str]:
    index.info()  # loads the collection
    rows = index.connection.client.query(
        index.vector_store_name, filter="", output_fields=["pk"], limit=1000, consistency_level="Strong"
    )
    return sorted(row["pk"] for row in rows)


def physical_of(index: Index) -> str:
    return str(index.connection.client.describe_collection(index.vector_store_name)["collection_name"])


class TestUpdating:
    def test_a_folder_becomes_chunks(self, index: Index, docs: Path) -> None:
        (docs / "a.md").write_text("# Cats\n\nCats sleep.")
        (docs / "sub").mkdir()
        (docs / "sub" / "b.txt").write_text("Dogs bark.")
        (docs / "empty.txt").write_text("")
        (docs / "x.bin").write_text("")
        report = index.get_index_done()
        assert report.added == ("a.md", "sub/b.txt")
        assert [file.source for file in report.skipped] == ["empty.txt"]
        assert (report.ignored, report.embedded, report.chunks) == (1, 2, 2)
        assert index.vector_store_name in index.collections()
        (hit, _) = Retriever(index, topk=1).get_similar_chunk_with_score("dogs")[0]
        assert hit.page_content == "Dogs bark."
        assert hit.metadata == {
            "source": "sub/b.txt",
            "title": "b",
            "start_index": 0,
            "chunk_id": hashlib.sha256(b"sub/b.txt\x00Dogs bark.\x000").hexdigest(),
        }

    def test_the_same_folder_again_costs_nothing(self, index: Index, docs: Path, embedder: BagOfWordsEmbedder) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        embedder.embedded.clear()
        before = physical_of(index), index.content_digest()
        report = index.get_index_done()
        assert (report.unchanged, report.embedded, report.chunks, report.added) == (1, 0, 1, ())
        assert embedder.embedded == []
        assert (physical_of(index), index.content_digest()) == before

    def test_a_changed_file_replaces_its_own_chunks_and_embeds_new_texts_only(
        self, index: Index, docs: Path, embedder: BagOfWordsEmbedder
    ) -> None:
        (docs / "a.csv").write_text("x\none\ntwo\nthree\n")
        (docs / "b.txt").write_text("Dogs bark.")
        index.get_index_done()
        digest = index.content_digest()
        embedder.embedded.clear()
        (docs / "a.csv").write_text("x\none\nthree\nfour\n")
        report = index.get_index_done()
        assert report.changed == ("a.csv",)
        assert (report.unchanged, report.embedded, report.chunks) == (1, 1, 4)
        assert embedder.embedded == ["x: four"]
        assert index.content_digest() != digest
        retriever = Retriever(index, topk=10)
        found = retriever.get_similar_chunk_with_score("x one")
        assert sorted(chunk.page_content for chunk, _ in found) == ["Dogs bark.", "x: four", "x: one", "x: three"]
        # The reused vector is still that of its text, and the chunk's other metadata is the new file's.
        assert found[0][0].page_content == "x: one"
        assert found[0][1] == pytest.approx(1.0, abs=1e-5)
        rows = {chunk.page_content: chunk.metadata.get("row") for chunk, _ in found}
        assert rows["x: three"] == 2

    def test_a_retriever_sees_later_additions(self, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        retrievers = [Retriever(index, search_type="hybrid"), Retriever(index.vector_store, search_type="hybrid")]
        before = [retriever.fingerprint() for retriever in retrievers]
        (docs / "b.txt").write_text("Dogs bark.")
        index.get_index_done()
        for retriever, fingerprint in zip(retrievers, before, strict=True):
            assert retriever.get_similar_chunk_with_score("dogs")[0][0].metadata["source"] == "b.txt"
            assert retriever.fingerprint()["content"] == index.content_digest() != fingerprint["content"]

    def test_a_second_index_sees_what_the_first_one_wrote(
        self, connection: MilvusConnection, index: Index, docs: Path, embedder: BagOfWordsEmbedder
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        with Index(embedder, docs, None, index.vector_store_name, uri=connection.uri, token="") as other:
            before = other.content_digest()
            (docs / "b.txt").write_text("Dogs bark.")
            index.get_index_done()
            assert other.content_digest() == index.content_digest() != before
            assert other.content_digest() == Retriever(other.vector_store).fingerprint()["content"]

    def test_two_indexes_that_write_at_once_lose_nothing(
        self, connection: MilvusConnection, make_index: MakeIndex, docs: Path, tmp_path: Path
    ) -> None:
        name = make_index(connection).vector_store_name
        folders = [tmp_path / f"folder{number}" for number in range(4)]
        indexes = [Index(BagOfWordsEmbedder(), one, None, name, uri=connection.uri, token="") for one in folders]
        for number, folder in enumerate(folders):
            folder.mkdir()
            (folder / "a.txt").write_text(f"Text {number}.")
        with ThreadPoolExecutor(4) as threads:
            reports = list(threads.map(Index.get_index_done, indexes))
        assert sorted(report.chunks for report in reports) == [1, 2, 3, 4]
        assert len(stored_ids(indexes[0])) == 4
        for index in indexes:
            index.close()

    def test_deleted_files_wait_for_prune(self, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        (docs / "b.txt").write_text("Dogs bark.")
        index.get_index_done()
        (docs / "b.txt").unlink()
        assert index.get_index_done().chunks == 2
        report = index.get_index_done(prune=True)
        assert (report.removed, report.chunks) == (("b.txt",), 1)
        assert len(stored_ids(index)) == 1

    def test_files_can_be_added_from_elsewhere_and_removed(self, index: Index, docs: Path, tmp_path: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "b.txt").write_text("Dogs bark.")
        index.get_index_done()
        assert index.add_new_files(tmp_path / "more").added == ("more/b.txt",)
        assert index.remove_files("a.txt").removed == ("a.txt",)
        assert [chunk.metadata["source"] for chunk, _ in Retriever(index).get_similar_chunk_with_score("cats")] == [
            "more/b.txt"
        ]

    def test_removing_a_stranger_names_all(self, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        with pytest.raises(LoadingError, match=r"nothing of b\.txt.*a\.txt"):
            index.remove_files("a.txt", "b.txt")
        assert len(stored_ids(index)) == 1

    def test_other_chunk_sizes_cut_again(self, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep. Dogs bark.")
        index.get_index_done()
        assert index.get_index_done(chunk_size=12, chunk_overlap=0).chunks == 2

    def test_progress_ends_at_the_total(self, lite_index: Index, docs: Path) -> None:
        (docs / "a.csv").write_text("x\n" + "".join(f"row{number}\n" for number in range(100)))
        calls: list[tuple[int, int, str]] = []
        lite_index.on_progress = lambda done, total, stage: calls.append((done, total, stage))
        lite_index.get_index_done()
        assert calls == [(1, 1, "load"), (0, 100, "embed"), (100, 100, "embed"), (100, 100, "write")]


def test_adding_in_steps_ranks_like_one_step(connection: MilvusConnection, make_index: MakeIndex, docs: Path) -> None:
    def write(numbers: range) -> None:
        for number in numbers:
            rare = "quokka" if number in (3, 25) else "cat"
            (docs / f"{number:02}.txt").write_text(f"The {rare} number {number} met a cat {'again ' * (number % 4)}.")

    stepwise, at_once = make_index(connection), make_index(connection)
    write(range(20))
    stepwise.get_index_done()
    write(range(20, 30))
    stepwise.get_index_done()
    at_once.get_index_done()
    assert stepwise.content_digest() == at_once.content_digest()
    for search_type in ("sparse", "dense", "hybrid"):
        for query in ("quokka", "cat again", "number 25"):
            one, other = (
                [
                    (chunk.metadata["chunk_id"], score)
                    for chunk, score in Retriever(index, topk=10, search_type=search_type).get_similar_chunk_with_score(
                        query
                    )
                ]
                for index in (stepwise, at_once)
            )
            assert one == other


class CountedLock:
    """Says how many threads have come to it; the last of ``expected`` sets the event."""

    def __init__(self, expected: int) -> None:
        self.all_there = threading.Event()
        self._lock, self._counting = threading.RLock(), threading.Lock()
        self._missing = expected

    def __enter__(self) -> None:
        with self._counting:
            self._missing -= 1
            if not self._missing:
                self.all_there.set()
        self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


class TestContentState:
    def test_threads_share_a_later_request(
        self, connection: MilvusConnection, index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        index.content_state()
        looks: list[str] = []
        lock = CountedLock(expected=2 + 4)  # the first one comes again, for the connection

        def look(*args: Any) -> str:
            assert lock.all_there.wait(20)
            looks.append(revision(*args))
            return looks[-1]

        monkeypatch.setattr("judgetree.modules.index.index.revision", look)
        monkeypatch.setattr(index, "_opening", lock)
        with ThreadPoolExecutor(5) as threads:
            states = [asked.result(20) for asked in [threads.submit(index.content_state) for _ in range(5)]]
        assert len(set(states)) == 1
        assert len(looks) == 2, "the four that came during the first one share the second"


class TestDescription:
    def test_the_collection_keeps_its_way(self, connection: MilvusConnection, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done(chunk_size=300, chunk_overlap=20)
        assert read_collection_info(connection.client, index.vector_store_name) == CollectionInfo(
            embedders={"dense": "fake:bag"},
            dimensions={"dense": 64},
            analyzer="standard",
            cjk_share=0.0,
            chunk_size=300,
            chunk_overlap=20,
            folders={"": str(docs)},
            search_form="folded",
        )

    @pytest.mark.parametrize("change", ["name", "field"])
    def test_other_embedders_fail(self, connection: MilvusConnection, index: Index, docs: Path, change: str) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        other: Embeddings | dict[str, Embeddings] = (
            BagOfWordsEmbedder("fake:other") if change == "name" else {"another": BagOfWordsEmbedder()}
        )
        with Index(other, docs, None, index.vector_store_name, uri=connection.uri, token="") as wrong:
            with pytest.raises(CollectionError, match=r"indexed with fake:bag \(dense\), not with fake:"):
                wrong.get_index_done()
            with pytest.raises(CollectionError, match="was indexed with"):
                _ = wrong.vector_store

    def test_vectors_of_another_length_under_the_same_name_are_refused(self, lite_index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        lite_index.get_index_done()
        (docs / "b.txt").write_text("Dogs bark.")
        lite_index.embed_model = BagOfWordsEmbedder(dimension=8)
        with pytest.raises(CollectionError, match=r"length \{'dense': 8\}.*takes \{'dense': 64\}"):
            lite_index.get_index_done()

    @pytest.mark.parametrize(
        ("text", "analyzer", "query"),
        [("猫喜欢睡觉。狗喜欢吃肉。", "jieba", "睡觉"), ("Cats sleep.", "standard", "sleep")],
    )
    def test_the_language_chooses_analyzer_and_embedder(
        self, index: Index, docs: Path, text: str, analyzer: str, query: str
    ) -> None:
        (docs / "a.txt").write_text(text, encoding="utf-8")
        shares: list[float] = []

        def choose(share: float) -> Embeddings:
            shares.append(share)
            return BagOfWordsEmbedder("fake:cjk" if share > 0.05 else "fake:other")

        index.embed_model = choose
        index.get_index_done()
        assert index.info().analyzer == analyzer
        assert index.info().embedders == {"dense": "fake:cjk" if analyzer == "jieba" else "fake:other"}
        assert Retriever(index, search_type="sparse").get_similar_chunk_with_score(query)
        # An existing collection asks with the share it remembers, so that new documents change nothing.
        (docs / "b.txt").write_text("Dogs bark." if analyzer == "jieba" else "狗叫。", encoding="utf-8")
        index.get_index_done()
        assert set(shares) == {index.info().cjk_share}

    def test_each_dense_field_has_an_embedder(self, index: Index, docs: Path) -> None:
        (docs / "a.json").write_text(json.dumps({"text": "Cats sleep.", "small": "a name that a field has"}))
        index.embed_model = {"wide": BagOfWordsEmbedder(), "small": BagOfWordsEmbedder("fake:small", 8)}
        index.get_index_done()
        assert index.info().dimensions == {"wide": 64, "small": 8}
        ((chunk, _),) = Retriever(index, search_fields=["small"]).get_similar_chunk_with_score("cats")
        assert chunk.metadata["small_"] == "a name that a field has"

    def test_index_parameters_can_be_given_by_field(
        self, embedded: MilvusConnection, lite_index: Index, docs: Path
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        lite_index.index_params = {"dense": {"index_type": "HNSW", "metric_type": "L2", "params": {"M": 8}}}
        lite_index.get_index_done()
        described = embedded.client.describe_index(lite_index.vector_store_name, "dense")
        assert (described["index_type"], described["metric_type"]) == ("HNSW", "L2")

    def test_index_parameters_are_remembered_until_others_are_given(
        self, connection: MilvusConnection, index: Index, docs: Path, embedder: BagOfWordsEmbedder
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        l2: IndexParams = {"index_type": "HNSW", "metric_type": "L2", "params": {"M": 8, "efConstruction": 40}}
        index.index_params = {"dense": l2}
        index.get_index_done()
        (docs / "b.txt").write_text("Dogs bark.")
        with Index(embedder, docs, None, index.vector_store_name, uri=connection.uri, token="") as later:
            assert later.get_index_done().added == ("b.txt",)
            assert later.info().index_params == {"dense": l2}
            before = Retriever(later).fingerprint()
            assert json.loads(before["indexes"]) == {"dense": ["L2", "HNSW"]}
            assert connection.client.describe_index(later.vector_store_name, "dense")["metric_type"] == "L2"
            # Others make the indexes anew, though no file has changed; an open retriever follows.
            index.index_params = {"dense": {**l2, "metric_type": "COSINE"}}
            retriever = Retriever(later)
            retriever.fingerprint()
            embedder.embedded.clear()
            assert index.get_index_done().unchanged == 2
            assert embedder.embedded == []
            after = retriever.fingerprint()
            assert {key for key in after if after[key] != before[key]} == {"indexes"}
            assert retriever.get_similar_chunk_with_score("dogs bark")[0][1] == pytest.approx(1.0, abs=1e-5)

    def test_one_index_is_dropped_and_built_again(
        self, connection: MilvusConnection, index: Index, docs: Path, embedder: BagOfWordsEmbedder
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        retriever = Retriever(index)
        hits = retriever.get_similar_chunk_with_score("cats")
        embedder.embedded.clear()
        index.index_params = {"dense": {"index_type": "HNSW", "metric_type": "IP", "params": {"M": 4}}}
        assert index.rebuild_indexes()["dense"]["metric_type"] == "IP"
        assert connection.client.describe_index(index.vector_store_name, "dense")["metric_type"] == "IP"
        assert index.rebuild_indexes("sparse", "dense").keys() == {"dense", "sparse"}
        assert embedder.embedded == []
        assert retriever.get_similar_chunk_with_score("cats")[0][0] == hits[0][0]
        index.index_params = {"dense": {"index_type": "NONSENSE", "metric_type": "IP"}}
        with pytest.raises(CollectionError, match="NONSENSE"):
            index.rebuild_indexes()
        assert retriever.get_similar_chunk_with_score("cats")[0][0] == hits[0][0]
        with pytest.raises(CollectionError, match="no vector field other"):
            Index(embedder, None, None, index.vector_store_name, uri=connection.uri, token="").rebuild_indexes("other")

    def test_index_parameters_of_no_field_are_refused(self, lite_index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        lite_index.index_params = {"sprase": {}}
        with pytest.raises(CollectionError, match=r"no vector field sprase.*: dense, sparse"):
            lite_index.get_index_done()
        assert lite_index.vector_store_name not in lite_index.collections()

    def test_a_description_survives_json(self) -> None:
        assert CollectionInfo.from_json(INFO.to_json(), where="It") == INFO

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"judgetree": 1}'])
    def test_other_descriptions_are_not_ours(self, text: str) -> None:
        assert CollectionInfo.from_json(text, where="It") is None


class TestRefusals:
    def test_a_missing_collection_lists_others(
        self, connection: MilvusConnection, make_index: MakeIndex, docs: Path
    ) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        there, missing = make_index(connection), make_index(connection)
        there.get_index_done()
        for use in (missing.info, missing.content_digest, lambda: missing.vector_store):
            with pytest.raises(CollectionError, match=f"no collection '{missing.vector_store_name}'.*test_"):
                use()

    @pytest.mark.parametrize(
        ("name", "content", "problem"),
        [("x.bin", "", "files there: 1, of other types"), ("a.json", "{", r"a\.json: it cannot be read")],
    )
    def test_an_empty_or_broken_folder_is_refused(
        self, lite_index: Index, docs: Path, name: str, content: str, problem: str
    ) -> None:
        (docs / name).write_text(content)
        with pytest.raises(LoadingError, match=problem):
            lite_index.get_index_done()

    def test_a_broken_file_keeps_its_chunks(self, lite_index: Index, docs: Path) -> None:
        (docs / "a.json").write_text('{"text": "Cats sleep."}')
        lite_index.get_index_done()
        (docs / "a.json").write_text("{")
        report = lite_index.get_index_done()
        assert [file.source for file in report.skipped] == ["a.json"]
        assert report.chunks == len(stored_ids(lite_index)) == 1

    def test_an_index_without_folder_says_so(self, lite_index: Index) -> None:
        lite_index.data_path = None
        with pytest.raises(LoadingError, match="no data_path"):
            lite_index.get_index_done()

    @pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "docs__0123abcd", "a" * 201])
    def test_impossible_names_are_refused(self, name: str) -> None:
        with pytest.raises(CollectionError, match="cannot be a collection's name"):
            Index(BagOfWordsEmbedder(), None, None, name)

    def test_a_foreign_collection_is_refused(self, embedded: MilvusConnection, lite_index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        embedded.client.create_collection(lite_index.vector_store_name, dimension=4)
        try:
            assert lite_index.vector_store_name in lite_index.collections()
            with pytest.raises(CollectionError, match="not made by judgetree"):
                lite_index.get_index_done()
        finally:
            embedded.client.drop_collection(lite_index.vector_store_name)

    def test_a_server_that_is_not_there_is_named(self) -> None:
        with pytest.raises(CollectionError, match=r"No Milvus server.*http://127\.0\.0\.1:9"):
            connect("http://127.0.0.1:9")

    def test_a_path_that_is_no_lite_folder_or_an_old_one_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(CollectionError, match=r"ending in \.db"):
            connect(str(tmp_path / "vectors"))
        (tmp_path / "old.db").write_bytes(b"SQLite format 3")
        with pytest.raises(CollectionError, match="old Milvus Lite"):
            connect(str(tmp_path / "old.db"))


class TestTheLock:
    def test_a_folder_in_use_names_its_holder_and_the_remedy(self, lite_server: LiteServer) -> None:
        with pytest.raises(CollectionError) as caught:
            connect(str(lite_server.folder))
        message = str(caught.value)
        assert "Index.close()" in message
        assert "milvus-lite server --data-dir" in message
        if sys.platform == "linux":
            assert f"process {lite_server.pid} (" in message

    def test_close_frees_the_folder_and_use_opens_it_again(self, tmp_path: Path, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        uri = str(tmp_path / "own.db")
        lock = tmp_path / "own.db" / "LOCK"
        with Index(BagOfWordsEmbedder(), docs, None, "first", uri=uri) as index:
            index.get_index_done()
            retriever = Retriever(index)
            assert retriever.get_similar_chunk_with_score("cats")
            with Index(BagOfWordsEmbedder(), docs, None, "second", uri=uri) as second:
                second.get_index_done()
            assert index.collections() == ["first", "second"]  # one index closed, the other goes on
            assert is_locked(lock)
            index.close()
            assert not is_locked(lock)
            assert retriever.get_similar_chunk_with_score("cats")


class TestInterruption:
    def test_leftovers_are_removed(self, connection: MilvusConnection, index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        index.get_index_done()
        name = index.vector_store_name
        stray = new_physical_name(name)
        create_physical(connection.client, stray, INFO)
        assert leftovers(connection.client, name) == [stray]
        assert [one for one in index.collections() if one.startswith(name)] == [name]
        index.get_index_done()
        assert leftovers(connection.client, name) == []
        assert len(stored_ids(index)) == 1

    def test_an_error_leaves_the_collection(self, embedded: MilvusConnection, lite_index: Index, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        lite_index.get_index_done()
        before = stored_ids(lite_index)
        (docs / "b.txt").write_text("Dogs bark.")

        def fail(done: int, total: int, stage: str) -> None:
            if stage == "write":
                raise KeyboardInterrupt

        lite_index.on_progress = fail
        with pytest.raises(KeyboardInterrupt):
            lite_index.get_index_done()
        assert stored_ids(lite_index) == before
        assert leftovers(embedded.client, lite_index.vector_store_name) == []

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
    @pytest.mark.slow
    def test_a_kill_half_way_loses_nothing(self, tmp_path: Path, docs: Path) -> None:
        (docs / "a.txt").write_text("Cats sleep.")
        uri = str(tmp_path / "own.db")
        with Index(BagOfWordsEmbedder(), docs, None, "docs", uri=uri) as index:
            index.get_index_done()
            before = stored_ids(index)
        (docs / "b.txt").write_text("Dogs bark.")
        root = Path(__file__).parents[3]
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_INDEXING, str(docs), uri],
            env={**os.environ, "PYTHONPATH": str(root)},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        with Index(BagOfWordsEmbedder(), docs, None, "docs", uri=uri) as index:
            assert len(leftovers(index.connection.client, "docs")) == 1
            assert stored_ids(index) == before
            assert Retriever(index).get_similar_chunk_with_score("cats")
            assert index.get_index_done().added == ("b.txt",)
            assert leftovers(index.connection.client, "docs") == []
            assert len(stored_ids(index)) == 2


KILLED_INDEXING = """
import os, signal, sys
from judgetree.modules.index.index import Index
from tests.modules.fake_embeddings import BagOfWordsEmbedder

def kill(done, total, stage):
    if stage == "write":
        os.kill(os.getpid(), signal.SIGKILL)

Index(BagOfWordsEmbedder(), sys.argv[1], None, "docs", uri=sys.argv[2], on_progress=kill).get_index_done()
"""


@settings(deadline=None, max_examples=60)
@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30))
def test_a_filter_finds_exactly_its_text(filter_collection: tuple[MilvusConnection, str], text: str) -> None:
    connection, name = filter_collection
    connection.client.upsert(name, [{"pk": "asked", "text": "x", "dense": [1.0, 0.0], "source": text}])
    found = connection.client.query(name, filter=text_in("source", [text]), output_fields=["pk", "source"], limit=10)
    assert {row["source"] for row in found} == {text}
    nothing = connection.client.query(name, filter=text_in("source", [text + "!"]), output_fields=["source"], limit=10)
    assert all(row["source"] == text + "!" for row in nothing)


@pytest.fixture(scope="module")
def filter_collection(embedded: MilvusConnection) -> tuple[MilvusConnection, str]:
    create_physical(embedded.client, "filters", INFO)
    rows = [{"pk": source, "text": "x", "dense": [1.0, 0.0], "source": source} for source in ("", "a.md", '"', "\\")]
    embedded.client.insert("filters", rows)
    return embedded, "filters"
