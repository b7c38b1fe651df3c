"""Retrievers of one's own: what they find has ids of its own, and metadata that checkpoints can store."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import numpy as np
import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import JudgetreeError, SettingsError, UserError
from judgetree.modules.index.connection import MilvusConnection
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.contract import ChunkRetriever
from judgetree.modules.retriever.own import LangChainRetriever, create_own_retriever
from judgetree.modules.settings import load_settings
from tests.modules.conftest import drop_collection
from tests.modules.fake_embeddings import BagOfWordsEmbedder


def chunk(text: str, **metadata: object) -> Document:
    return Document(page_content=text, metadata={"source": "a.md", **metadata})


class Fixed:
    def __init__(self, *found: object) -> None:
        self.found = found

    def fingerprint(self) -> dict[str, str]:
        return {}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        return [*self.found]  # type: ignore[list-item]


class FixedDocuments(BaseRetriever):
    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self.found


class AtOnce(Fixed):
    def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:  # type: ignore[override]
        return []


class GivenUp(Fixed):
    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("retriever", "words"),
    [(AtOnce(), "asearch returned list at once. Define it with async def"), (GivenUp(), "failed: CancelledError")],
)
def test_a_retriever_that_is_no_coroutine_or_gives_up_is_told_so(retriever: Fixed, words: str) -> None:
    with pytest.raises(JudgetreeError, match=words):
        found_by(retriever)


def found_by(retriever: object) -> list[tuple[Document, float]]:
    made: ChunkRetriever = create_own_retriever(retriever, index=None, topk=3, settings=load_settings())
    return asyncio.run(made.asearch("Why?", meter=CallMeter(node="retrieve")))


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ((chunk("a", chunk_id="1"),), r"\(Document, score\)"),
        (((chunk("a"), 1.0),), "without chunk_id in its metadata"),
        (((chunk("a", chunk_id=None), 1.0),), "without chunk_id"),
        (((chunk("a", chunk_id="1"), 1.0), (chunk("b", chunk_id=1), 0.5)), "'1' to two texts"),
        (((chunk("a", chunk_id="1"), "high"),), "score of the chunk '1' is 'high'"),
        (((chunk("a", chunk_id="1"), None),), "score of the chunk '1' is None"),
        (((chunk("a", chunk_id="1"), np.float32("nan")),), "score of the chunk '1' is .*nan"),
    ],
)
def test_what_would_lose_evidence_is_refused(found: tuple[object, ...], problem: str) -> None:
    with pytest.raises(SettingsError, match=f"test_own:Fixed.*{problem}"):
        found_by(Fixed(*found))


class Failing(Fixed):
    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        raise KeyError(query)


def test_one_that_fails_is_named_with_its_error() -> None:
    with pytest.raises(JudgetreeError, match=r"'.*test_own:Failing.*' failed: KeyError: 'Why\?'") as failed:
        found_by(Failing())
    assert not isinstance(failed.value, UserError), "which would end a run of many questions"
    assert isinstance(failed.value.__cause__, KeyError)


def test_a_text_that_is_found_twice_is_one_chunk() -> None:
    found = found_by(Fixed((chunk("a", chunk_id="1"), 1.0), (chunk("a", chunk_id="1"), 0.5)))
    assert [score for _, score in found] == [1.0]


def test_values_of_numpy_and_large_numbers_can_be_stored() -> None:
    shared = chunk("a", chunk_id="1", score=np.float32(0.5), row=np.int64(7), isbn=2**70, tags=["x"])
    [(found, score)] = found_by(FixedDocuments(found=[shared]))
    assert score == 0.5
    stored = {"score": 0.5, "row": 7, "isbn": str(2**70), "tags": ["x"]}
    assert {name: found.metadata[name] for name in stored} == stored
    assert type(found.metadata["row"]) is int
    assert type(shared.metadata["row"]) is np.int64, "the retriever's own document is left alone"


def test_documents_numbered_anew_in_each_file_are_chunks_of_their_own() -> None:
    found = found_by(FixedDocuments(found=[chunk("a", chunk_id=0), chunk("b", chunk_id=0), chunk("c", chunk_id="c-1")]))
    ids = [each.metadata["chunk_id"] for each, _ in found]
    assert len(set(ids)) == 3
    assert ids[2] == "c-1"


def test_texts_are_made_storable() -> None:
    [(found, _)] = found_by(Fixed((chunk("a\x00b\ud800", chunk_id="1"), 1.0)))
    assert found.page_content == "ab?"


def test_metadata_is_made_storable_too() -> None:
    """Half a surrogate pair in a source or title failed the question behind all judge calls, with the model blamed."""
    given = {"source": "a\x00.md", "title": "t\ud800", "tags": ["x\ud800", {"b\x00": ("c\x00", {"d\x00"})}], "k\x00": 1}
    [(found, _)] = found_by(Fixed((chunk("a", chunk_id="1\ud800", **given), 1.0)))
    stored = {"source": "a.md", "title": "t?", "tags": ["x?", {"b": ("c", {"d\x00"})}], "k": 1, "chunk_id": "1?"}
    assert found.metadata == stored


def test_numbers_within_metadata_can_be_stored() -> None:
    """Those of numpy, and whole ones of more than 64 bits, raised a TypeError of the checkpoints."""
    [(found, _)] = found_by(
        Fixed((chunk("a", chunk_id="1", scores=[np.float32(0.5), 2**70], by={"x": np.int64(7)}), 1))
    )
    assert found.metadata["scores"] == [0.5, str(2**70)]
    assert found.metadata["by"] == {"x": 7}
    assert {type(found.metadata["scores"][0]), type(found.metadata["by"]["x"])} == {float, int}


def test_metadata_that_holds_itself_is_named() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(SettingsError, match=r"test_own:Fixed.*chunk '1'.*'tags' is nested without end"):
        found_by(Fixed((chunk("a", chunk_id="1", tags=endless), 1.0)))


class OverIndex(Fixed):
    def __init__(self, index: Index) -> None:
        super().__init__()


def test_one_that_is_made_from_an_index_is_another_one_once_the_collection_has_changed(
    connection: MilvusConnection, tmp_path: Path
) -> None:
    name = f"own_{uuid.uuid4().hex[:12]}"
    with Index(BagOfWordsEmbedder(), tmp_path, None, name, uri=connection.uri, token="") as index:
        prints = []
        for text in ("The cat weighs 12 kg.", "The cat weighs 99 kg.", "The cat weighs 12 kg."):
            (tmp_path / "a.txt").write_text(text)
            index.get_index_done()
            retriever = create_own_retriever(OverIndex, index=index, topk=3, settings=load_settings())
            prints.append(retriever.fingerprint())
        drop_collection(index)
    assert prints[0] == prints[2] != prints[1]


class FailingSearch(BaseRetriever):
    """Raises what it was made with."""

    failure: BaseException

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise self.failure


@pytest.mark.parametrize("failure", [ValueError("no"), SystemExit(1)])
def test_a_retriever_of_langchain_that_fails_is_named_and_ends_no_process(failure: BaseException) -> None:
    retriever = LangChainRetriever(FailingSearch(failure=failure))
    with pytest.raises(JudgetreeError, match=f"'FailingSearch' failed: {type(failure).__name__}"):
        asyncio.run(retriever.asearch("q", meter=CallMeter(node="n")))
