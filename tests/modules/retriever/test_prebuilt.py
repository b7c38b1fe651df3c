"""Indexes that others have built, searched by the ``Retriever``: their hits, their files, and what is no such file."""

from __future__ import annotations

import codecs
import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import faiss
import numpy as np
import pytest
import snowballstemmer

from judgetree import Retriever, Settings, load_settings, open_prebuilt
from judgetree.modules.errors import CollectionError, LoadingError, SearchArgumentError, SettingsError, UserError
from judgetree.modules.prebuilt import corpus
from judgetree.modules.prebuilt.digests import FileDigests, FileState
from judgetree.modules.prebuilt.sparse import Bm25sFolder
from judgetree.modules.retriever.own import prebuilt_retriever
from judgetree.modules.retriever.prebuilt import PrebuiltIndex
from judgetree.testing import check_retriever
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.prebuilt_files import (
    PASSAGES,
    contents,
    vectors_of,
    write_bm25s,
    write_corpus_file,
    write_faiss,
    write_prebuilt,
)

Open = Callable[..., PrebuiltIndex]
TREES = ("oak", "elm", "ash", "yew", "fir", "box", "sloe", "lime")
MANY = [(f"Page {n}", " ".join(random.Random(n).choices(TREES, k=9))) for n in range(90)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path / "home")


@pytest.fixture
def opened(settings: Settings) -> Open:
    def open_it(path: Path, **options: object) -> PrebuiltIndex:
        embedder = options.pop("embedder", None) or BagOfWordsEmbedder()
        return open_prebuilt(str(path), settings, embeddings=embedder, **options)  # type: ignore[arg-type]

    return open_it


def test_it_keeps_the_contract_of_retrievers_in_each_search(tmp_path: Path, opened: Open) -> None:
    index = opened(write_prebuilt(tmp_path / "wiki"))
    for search_type in ("dense", "sparse", "hybrid"):
        check_retriever(Retriever(index, topk=2, search_type=search_type), "Which paint is grey?")
    [(best, _), *_] = Retriever(index, search_type="hybrid").get_similar_chunk_with_score("grey paints dry")
    assert best.page_content == "Paint\nGrey paints dry within one day, and grey is cheap."
    assert best.metadata == {"source": "Paint", "title": "Paint", "document_key": "4", "chunk_id": "4:4"}


@pytest.mark.parametrize("metric", [faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2])
def test_a_flat_index_finds_what_numpy_finds(tmp_path: Path, opened: Open, metric: int) -> None:
    vectors = vectors_of(contents(MANY))
    write_corpus_file(tmp_path, MANY)
    write_faiss(tmp_path, vectors, metric=metric)
    query = vectors_of(["yew sloe yew"])[0]
    expected = vectors @ query if metric == faiss.METRIC_INNER_PRODUCT else -np.square(vectors - query).sum(axis=1)
    hits = Retriever(opened(tmp_path), topk=10).get_similar_chunk_with_score("yew sloe yew")
    assert np.allclose([score for _, score in hits], np.sort(expected)[::-1][:10], atol=1e-5)
    rows = [int(chunk.metadata["document_key"]) for chunk, _ in hits]
    assert np.allclose(expected[rows], [score for _, score in hits], atol=1e-5)


@pytest.mark.parametrize("tokenizer", [True, False])
def test_words_are_found_in_the_order_of_bm25s(tmp_path: Path, opened: Open, tokenizer: bool) -> None:
    write_corpus_file(tmp_path, MANY)
    folder = write_bm25s(tmp_path, contents(MANY), tokenizer=tokenizer)
    theirs = bm25s.BM25.load(folder, mmap=True)
    if tokenizer:
        cut = bm25s.tokenization.Tokenizer(stopwords="en", stemmer=snowballstemmer.stemmer("english"))
        cut.load_vocab(folder)
        tokens = cut.tokenize(["the limes of the firs"], update_vocab=False, show_progress=False)
    else:
        tokens = [["lime", "fir"]]
    rows, scores = theirs.retrieve(tokens, k=12, show_progress=False)
    query = "the limes of the firs" if tokenizer else "the lime of the fir"
    hits = Retriever(opened(tmp_path), topk=12, search_type="sparse").get_similar_chunk_with_score(query)
    assert [score for _, score in hits] == scores[0].tolist()
    by_score = {score: {chunk.metadata["document_key"] for chunk, other in hits if other == score} for _, score in hits}
    least = float(scores[0][-1])
    for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True):
        assert str(row) in by_score[score] or score == least
    for without_words in ("of the zzz", "x?", "?", "猫"):
        assert Retriever(opened(tmp_path), search_type="sparse").invoke(without_words) == []


@pytest.mark.parametrize("kind", ["IVF4,Flat", "HNSW8", "SQ8", "PCA32,IVF4,SQ8", "IDMap2,Flat"])
def test_any_type_of_faiss_index_is_searched_and_selected_from(tmp_path: Path, opened: Open, kind: str) -> None:
    write_corpus_file(tmp_path, MANY)
    vectors = vectors_of(contents(MANY))
    if kind.startswith("IDMap"):
        index = faiss.index_factory(64, kind, faiss.METRIC_INNER_PRODUCT)
        index.add_with_ids(vectors, np.arange(len(vectors)))
        faiss.write_index(index, str(tmp_path / "e5_Flat.index"))
    else:
        write_faiss(tmp_path, vectors, kind)
    prebuilt = opened(tmp_path)
    chosen = Retriever(prebuilt, topk=4, ranker_type="mmr").get_similar_chunk_with_score("oak elm")
    assert len(chosen) == 4
    [(chunk, _)] = Retriever(prebuilt, topk=1).get_similar_chunk_with_score(contents(MANY)[7])
    found = prebuilt.vectors("dense", [chunk.metadata["chunk_id"]])[chunk.metadata["chunk_id"]]
    assert np.abs(found - vectors[int(chunk.metadata["document_key"])]).max() < 0.6


def test_search_parameters_go_to_faiss_and_others_are_refused(tmp_path: Path, opened: Open) -> None:
    write_corpus_file(tmp_path, MANY)
    write_faiss(tmp_path, vectors_of(contents(MANY)), "IVF8,Flat")
    index = opened(tmp_path)
    few, all_of_them = Retriever(index, topk=90), Retriever(index, topk=90, search_params={"params": {"nprobe": 8}})
    assert len(few.invoke("oak")) < 90 == len(all_of_them.invoke("oak"))
    assert few.fingerprint() != all_of_them.fingerprint()
    for params in ({"efSearch": 9}, {"nprobe": 0}, {"nprobe": 8, "ef": 2}, {"nprobes": 2}):
        with pytest.raises(SearchArgumentError, match="Allowed: nprobe of an IVF index"):
            Retriever(index, search_params=params).invoke("oak")
    with pytest.raises(SearchArgumentError, match="no filters"):
        Retriever(index, expr="a == 1").invoke("oak")
    (tmp_path / "prebuilt.yaml").write_text(
        "corpus: corpus.jsonl\nfaiss: e5_Flat.index\nsearch_params: {nprobe: 8}\nembeddings: local:use\n"
    )
    assert len(Retriever(opened(tmp_path), topk=90).invoke("oak")) == 90


def test_prefix_and_length_of_queries_are_those_of_the_yaml_file(tmp_path: Path, opened: Open) -> None:
    write_prebuilt(tmp_path)
    yaml = "corpus: corpus.jsonl\nfaiss: e5_Flat.index\nquery_prefix: 'query: '\nnormalize: true\n"
    (tmp_path / "e5.yaml").write_text(yaml)
    embedder = BagOfWordsEmbedder()
    index = opened(tmp_path / "e5.yaml", embedder=embedder)
    Retriever(index).invoke("grey")
    assert embedder.embedded == ["query: grey"]
    assert "'query: '+fake:bag, length 1" in Retriever(index).fingerprint()["embedders"]


def test_it_is_known_by_its_content(tmp_path: Path, opened: Open, settings: Settings) -> None:
    heard: list[str] = []
    folder = write_prebuilt(tmp_path / "a")

    def hear(done: int, total: int, stage: str) -> None:
        heard.append(stage)

    first = opened(folder, on_progress=hear)
    assert {"read corpus.jsonl, MB", "read e5_Flat.index, MB", "read data.csc.index.npy, MB"} <= set(heard)
    heard.clear()
    again = opened(folder, on_progress=hear)
    assert not heard, "a file that has not changed is not read again"
    write_prebuilt(tmp_path / "b")
    content = [Retriever(index).fingerprint()["content"] for index in (first, again, opened(tmp_path / "b"))]
    assert content[0] == content[1] == content[2]
    write_corpus_file(folder, [("Norm B", "Norm B names no drum."), *PASSAGES[1:]])
    with pytest.raises(CollectionError, match=r"corpus\.jsonl has changed since"):
        Retriever(first).fingerprint()
    assert Retriever(opened(folder)).fingerprint()["content"] != content[0]
    [lines] = [file for file in (settings.home / "prebuilt").glob("*.lines-1") if first.corpus.digest in file.name]
    lines.write_bytes(b"cut off")
    assert len(opened(tmp_path / "b").corpus) == len(PASSAGES), "its lines are found again"


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n \n"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_lines_of_either_form_are_passages(tmp_path: Path, opened: Open, mark: bytes, end: str) -> None:
    lines = [
        json.dumps({"id": 7, "title": "Oslo", "text": "A city.", "more": [1]}),
        "",
        json.dumps({"id": "b", "contents": "No title here."}),
        json.dumps({"id": "c", "contents": '"Ham"\nA\nB'}),
    ]
    (tmp_path / "my.jsonl").write_bytes(mark + ("\r\n".join(lines) + end).encode())
    write_bm25s(tmp_path, ["Oslo city", "title", "ham"])
    corpus = opened(tmp_path).corpus
    found = [(each.id, each.title, each.text) for each in map(corpus.passage, range(3))]
    assert found == [("7", "Oslo", "A city."), ("b", "", "No title here."), ("c", "Ham", "A\nB")]


def cut(path: Path, share: float = 0.6) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: cut(folder / "corpus.jsonl"), r"corpus.jsonl has \d lines, .*row i of an index must be line i"),
        (lambda folder: cut(folder / "e5_Flat.index"), "cannot be read as a faiss index"),
        (lambda folder: (folder / "e5_Flat.index").write_text("hello" * 9), "cannot be read as a faiss index"),
        (lambda folder: (folder / "e5_Flat.index").write_text(""), "cannot be read as a faiss index"),
        (lambda folder: write_faiss(folder, vectors_of(["a"])), "5 lines, the faiss index e5_Flat.index 1 vectors"),
        (lambda folder: write_faiss(folder, np.eye(5, dtype="f4"), metric=faiss.METRIC_L1), "has the metric"),
        (lambda folder: write_bm25s(folder, ["oak", "elm"]), "the index of bm25s 2 documents"),
        (lambda folder: cut(folder / "bm25" / "data.csc.index.npy"), "index of bm25s in .* cannot be read"),
        (lambda folder: cut(folder / "bm25" / "vocab.index.json"), "index of bm25s in .* cannot be read"),
        (lambda folder: cut(folder / "bm25" / "vocab.tokenizer.json"), "tokenizer of bm25s in .* cannot be read"),
        (lambda folder: (folder / "bm25" / "indptr.csc.index.npy").unlink(), "indptr.csc.index.npy is missing"),
        (lambda folder: (folder / "corpus.jsonl").write_text(""), "is empty"),
        (lambda folder: (folder / "corpus.jsonl").write_text("[1]\n" * 5), "Line 1 of .* is no passage"),
        (lambda folder: (folder / "corpus.jsonl").write_text('{"text": "a"}\n' * 5), "no passage: id: Field required"),
        (lambda folder: (folder / "corpus.jsonl").unlink(), "is no prebuilt index that explains itself"),
        (lambda folder: (folder / "other.jsonl").write_text("{}"), r"corpora \*.jsonl: corpus.jsonl, other.jsonl"),
        (lambda folder: (folder / "prebuilt.yaml").write_text("corpus: corpus.jsonl"), "name a faiss index, a bm25s"),
        (lambda folder: (folder / "prebuilt.yaml").write_text("corpora: x"), "Keys: corpus, faiss, bm25s"),
        (lambda folder: (folder / "prebuilt.yaml").write_text("corpus: c\nfaiss: f.index"), "cannot be read: No such"),
        (lambda folder: (folder / "prebuilt.yaml").write_text('corpus: "a\\0b"\nbm25s: bm25'), "null byte"),
    ],
)  # fmt: skip
def test_what_is_damaged_or_of_another_kind_is_refused(
    tmp_path: Path, opened: Open, damage: Callable[[Path], object], message: str
) -> None:
    folder = write_prebuilt(tmp_path / "wiki")
    damage(folder)
    with pytest.raises((CollectionError, LoadingError, SettingsError), match=message):
        opened(folder)


def change_array(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    file = folder / "bm25" / f"{name}.csc.index.npy"
    np.save(file, change(np.load(file)))


def leave_open(file: Path) -> None:
    """Take the closing bracket out of a header of numpy."""
    file.write_bytes(file.read_bytes().replace(b"}", b" ", 1))


def write_params(folder: Path, **params: object) -> None:
    file = folder / "bm25" / "params.index.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **params}))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: change_array(folder, "indices", lambda array: array + 1000),
        lambda folder: change_array(folder, "indices", lambda array: array.astype(float)),
        lambda folder: change_array(folder, "data", lambda array: array.astype(str)),
        lambda folder: change_array(folder, "data", lambda array: array[:, None]),
        lambda folder: change_array(folder, "data", lambda array: array * np.nan),
        lambda folder: change_array(folder, "data", lambda array: np.r_[np.inf, array[1:]].astype(np.float32)),
        lambda folder: change_array(folder, "indices", lambda array: np.r_[array[:-1], -1].astype(array.dtype)),
        lambda folder: change_array(folder, "indptr", lambda array: array[-1:]),
        lambda folder: change_array(folder, "indptr", lambda array: np.r_[array[:-1] * 0 - 9, array[-1:]]),
        lambda folder: write_params(folder, num_docs=-5),
        lambda folder: write_params(folder, int_dtype="zzz"),
        lambda folder: (folder / "bm25" / "stopwords.tokenizer.json").write_text("5"),
        lambda folder: leave_open(folder / "bm25" / "indptr.csc.index.npy"),
    ],
)
def test_words_that_are_not_as_bm25s_saves_them_are_refused(
    tmp_path: Path, opened: Open, damage: Callable[[Path], object]
) -> None:
    folder = write_prebuilt(tmp_path / "wiki")
    damage(folder)
    with pytest.raises(CollectionError, match=r"of bm25s in .* cannot be read"):
        Retriever(opened(folder), search_type="sparse").invoke("grey paints")


def test_scores_of_absent_words_are_checked_too(tmp_path: Path, opened: Open) -> None:
    write_corpus_file(tmp_path)
    file = write_bm25s(tmp_path, contents(), method="bm25+") / "nonoccurrence_array.index.npy"
    assert Retriever(opened(tmp_path), search_type="sparse").invoke("grey paints")
    np.save(file, np.load(file) * np.nan)
    with pytest.raises(CollectionError, match="some of its scores are not finite"):
        opened(tmp_path)


@pytest.mark.parametrize("tokenizer", [True, False])
@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_passages_without_a_word_of_the_query_are_no_hits(
    tmp_path: Path, opened: Open, method: str, tokenizer: bool
) -> None:
    write_corpus_file(tmp_path)
    write_bm25s(tmp_path, contents(), method=method, tokenizer=tokenizer)
    found = Retriever(opened(tmp_path), topk=5, search_type="sparse").invoke("ladders")
    assert [each.metadata["source"] for each in found] == ["Ladders"]


@pytest.mark.parametrize("topk", [1, 2, 3, 5, 30])
def test_equal_scores_of_words_come_by_row(tmp_path: Path, topk: int) -> None:
    texts = [f"{'oak' if n % 3 else 'oak elm'} {n}" for n in range(400)]
    folder = Bm25sFolder(write_bm25s(tmp_path, texts, tokenizer=False))
    want = [row for row in range(400) if row % 3 == 0] + [row for row in range(400) if row % 3]
    assert [row for row, _ in folder.search("oak elm", topk)] == want[:topk]


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)

    class Broken(BagOfWordsEmbedder):
        def embed_query(self, text: str) -> list[float]:
            return [float("nan")] * self.dimension

    with pytest.raises(CollectionError, match="its embedder is broken"):
        Retriever(opened(folder, embedder=Broken()), search_type="dense").invoke("grey")


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF2,Flat", "PCA8,Flat"])
def test_a_vector_that_no_search_finds_is_refused_at_each_opening(
    tmp_path: Path, opened: Open, kind: str, number: float
) -> None:
    write_corpus_file(tmp_path, MANY)
    vectors = vectors_of(contents(MANY))
    index = faiss.index_factory(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    vectors[1] = number
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "e5.index"))
    for _ in range(2):
        with pytest.raises(CollectionError, match=r"A vector in .*e5.index has a number that is not finite"):
            opened(tmp_path)


def test_numbers_of_files_that_an_earlier_version_has_read_are_checked(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)
    path = write_faiss(folder, vectors_of(contents()) * np.float32(np.nan))
    state = FileState.of(path)
    columns = "path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, digest TEXT"
    row = (str(path), state.size, state.mtime_ns, state.ctime_ns, "0" * 64)

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute(f"CREATE TABLE IF NOT EXISTS digests ({columns})")
        connection.execute("INSERT INTO digests VALUES (?, ?, ?, ?, ?)", row)

    with FileDigests(tmp_path / "home" / "prebuilt" / "digests.sqlite") as digests:
        digests.attempt(fill, otherwise=None)
    with pytest.raises(CollectionError, match="has a number that is not finite"):
        opened(folder)


def test_an_index_of_ivf_and_fast_scan_gives_no_vectors_back_and_ends_no_process(tmp_path: Path, opened: Open) -> None:
    write_corpus_file(tmp_path, MANY)
    write_faiss(tmp_path, vectors_of(contents(MANY)), "IVF4,PQ8x4fs")
    index = opened(tmp_path)
    assert index.vectors("dense", ["7:7"]) == {}
    assert len(Retriever(index, topk=4, ranker_type="mmr").invoke("oak elm")) == 4


def test_an_index_that_says_to_have_more_than_its_file_fills_no_memory(tmp_path: Path, opened: Open) -> None:
    write_corpus_file(tmp_path, MANY)
    path = write_faiss(tmp_path, vectors_of(contents(MANY)), "HNSW8")
    whole = bytearray(path.read_bytes())
    levels = whole.index(np.uint64(len(MANY)).tobytes(), 45)  # the number of rows, before the level of each
    whole[levels + 4] ^= 0x80
    path.write_bytes(whole)
    with pytest.raises(CollectionError, match="cannot be read as a faiss index"):
        opened(tmp_path)


def test_a_width_of_a_search_beyond_the_index_is_its_whole_width(tmp_path: Path, opened: Open) -> None:
    write_corpus_file(tmp_path, MANY)
    for kind, params in (("HNSW8", {"efSearch": 2**31 - 1}), ("IVF8,Flat", {"nprobe": 10**20})):
        write_faiss(tmp_path, vectors_of(contents(MANY)), kind)
        assert len(Retriever(opened(tmp_path), topk=90, search_params=params).invoke("oak")) == 90


def test_a_file_replaced_by_one_of_its_size_and_time_is_another_content(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)
    first, times = opened(folder), (folder / "e5_Flat.index").stat()
    write_faiss(folder, vectors_of(contents())[::-1].copy())
    os.utime(folder / "e5_Flat.index", ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(CollectionError, match="has changed since"):
        first.content_digest()
    assert opened(folder).digest != first.digest


def test_an_index_that_is_replaced_while_it_is_opened_is_refused(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)

    def replace(done: int, total: int, stage: str) -> None:
        if "e5_Flat" in stage:  # faiss has opened it
            write_bm25s(folder, contents())

    with pytest.raises((CollectionError, LoadingError), match=r"has changed since|changed while"):
        opened(folder, on_progress=replace)


def test_half_a_surrogate_pair_in_a_line_is_read_as_a_question_mark(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)
    text = (folder / "corpus.jsonl").read_text()
    (folder / "corpus.jsonl").write_text(text.replace("40 mm thick", r"40\ud800 mm \\ud800 thick"))
    [chunk] = opened(folder).chunks(["1:1"]).values()
    assert chunk.page_content == "Drums\n" r"The drum's wall is 40? mm \ud800 thick."


def test_a_line_that_is_damaged_is_named_when_it_is_found(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path)
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    (folder / "corpus.jsonl").write_text("\n".join([*lines[:4], '{"id": "4", "contents"']))
    with pytest.raises(CollectionError, match=r"Line 5 of .*corpus\.jsonl is no passage"):
        Retriever(opened(folder), search_type="sparse").invoke("cheap")


def test_a_line_that_is_too_long_is_told_from_one_that_is_broken(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "_MOST_BYTES", 40)
    with pytest.raises(
        CollectionError, match=r"Line 1 of .*corpus\.jsonl is no passage: it has \d+ bytes, at most 40 "
    ):
        opened(write_prebuilt(tmp_path))


def test_another_embedder_than_that_of_the_index_is_refused(tmp_path: Path, opened: Open, settings: Settings) -> None:
    folder = write_prebuilt(tmp_path / "wiki")
    index = opened(folder, embedder=BagOfWordsEmbedder(dimension=32))
    with pytest.raises(CollectionError, match=r"gives vectors of 32 dimensions, and the faiss index .* has 64"):
        index.check_embedder()
    with pytest.raises(CollectionError, match=r"vector has the length 32, those of .* have 64"):
        Retriever(index).invoke("grey")
    read: list[str] = []
    with pytest.raises(SettingsError, match=r"does not say which embedder.* To search by bm25s alone, name no faiss"):
        open_prebuilt(
            str(folder),
            settings.model_copy(update={"home": tmp_path / "new"}),
            on_progress=lambda done, total, stage: read.append(stage),
        )
    assert read == [], "files of gigabytes are not read before"
    with pytest.raises(CollectionError, match="512 dimensions"):
        prebuilt_retriever(f"prebuilt:{folder}", settings.model_copy(update={"embeddings": "local:use"}), topk=3)
    with pytest.raises(LoadingError, match="'nowhere' does not exist"):
        open_prebuilt("prebuilt:nowhere", settings)


def test_the_search_is_that_of_the_index_if_none_is_asked_for(tmp_path: Path, settings: Settings) -> None:
    folder = write_prebuilt(tmp_path / "wiki")
    yaml = folder / "words.yaml"
    yaml.write_text("corpus: corpus.jsonl\nbm25s: bm25\nstemmer: none\nstopwords: none\n")
    retriever = prebuilt_retriever(f"prebuilt:{yaml}", settings, topk=2)
    assert retriever.search_type == "sparse"
    assert [chunk.metadata["source"] for chunk in retriever.invoke("grey")] == ["Paint", "Ladders"]
    with pytest.raises(UserError, match="has nothing for a dense search"):
        prebuilt_retriever(f"prebuilt:{yaml}", settings, topk=2, search_type="dense")
    yaml.write_text("corpus: corpus.jsonl\nbm25s: bm25\nstemmer: klingon\n")
    with pytest.raises(SettingsError, match=r"Unknown stemmer 'klingon'. Allowed: none, arabic"):
        prebuilt_retriever(f"prebuilt:{yaml}", settings, topk=2)
    yaml.write_text("corpus: corpus.jsonl\nbm25s: bm25\nstopwords: klingon\n")
    with pytest.raises(SettingsError, match="stopwords='klingon' are unknown"):
        prebuilt_retriever(f"prebuilt:{yaml}", settings, topk=2)


def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path: Path, opened: Open) -> None:
    folder = write_prebuilt(tmp_path / "wiki")

    def change(done: int, total: int, stage: str) -> None:
        os.utime(folder / "corpus.jsonl", ns=(1, 1))

    with pytest.raises(LoadingError, match="changed while it was read"):
        opened(folder, on_progress=change)
    assert len(opened(folder).corpus) == len(PASSAGES)
