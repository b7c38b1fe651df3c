"""Cutting: nothing lost, positions true, ids by content."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.errors import SettingsError
from judgetree.modules.index.chunking import MAX_TEXT_BYTES, chunk_id, split_documents
from judgetree.modules.language.letters import CJK_THRESHOLD, cjk_share, language_of

WORDS = st.lists(
    st.sampled_from(["alpha", "beta.", "gamma\n", "delta\n\n", "狗。", "猫，", "犬", "a" * 30]), max_size=60
)


def a_document(text: str, source: str = "a.md") -> Document:
    return Document(page_content=text, metadata={"source": source, "title": "A"})


@settings(deadline=None)  # the first call imports the splitter
@given(words=WORDS, size=st.integers(5, 60), share=st.floats(0, 0.9))
def test_a_chunk_stands_in_its_document_at_start_index(words: list[str], size: int, share: float) -> None:
    text = " ".join(words)
    for chunk in split_documents([a_document(text)], chunk_size=size, chunk_overlap=int(size * share)):
        start = chunk.metadata["start_index"]
        assert text[start : start + len(chunk.page_content)] == chunk.page_content
        assert len(chunk.page_content) <= size


@settings(deadline=None)  # the first call imports the splitter
@given(words=WORDS, size=st.integers(5, 60))
def test_no_letter_is_lost_without_overlap(words: list[str], size: int) -> None:
    text = " ".join(words)
    chunks = split_documents([a_document(text)], chunk_size=size, chunk_overlap=0)
    assert "".join("".join(chunk.page_content.split()) for chunk in chunks) == "".join(text.split())


def test_chinese_is_cut_behind_its_punctuation() -> None:
    chunks = split_documents([a_document("狗会叫。猫会睡！鸟会飞？")], chunk_size=4, chunk_overlap=0)
    assert [chunk.page_content for chunk in chunks] == ["狗会叫。", "猫会睡！", "鸟会飞？"]


def test_metadata_of_the_document_stays_and_ids_are_those_of_the_content() -> None:
    (chunk,) = split_documents([a_document("A text.")])
    expected = {"source": "a.md", "title": "A", "start_index": 0, "chunk_id": chunk_id("a.md", "A text.", 0)}
    assert chunk.metadata == expected


def test_equal_texts_get_ids_of_their_own_and_the_same_ones_each_time() -> None:
    documents = [a_document("Same."), a_document("Same."), a_document("Same.", source="b.md")]
    first, second = (
        [chunk.metadata["chunk_id"] for chunk in split_documents(documents)],
        [chunk.metadata["chunk_id"] for chunk in split_documents(documents)],
    )
    assert first == second
    assert len(set(first)) == 3


@given(st.lists(st.text(max_size=3), min_size=6, max_size=6))
def test_ids_differ_whenever_source_or_text_do(parts: list[str]) -> None:
    clean = [part.replace("\x00", "").encode("utf-8", "replace").decode() for part in parts]
    one, other = (clean[0], clean[1], 0), (clean[2], clean[3], 0)
    assert (chunk_id(*one) == chunk_id(*other)) == (one == other)


def test_a_chunk_longer_than_milvus_takes_is_cut_and_loses_nothing() -> None:
    text = "汉" * 50_000
    chunks = split_documents([a_document(text)], chunk_size=60_000, chunk_overlap=0)
    assert "".join(chunk.page_content for chunk in chunks) == text
    assert all(len(chunk.page_content.encode()) <= MAX_TEXT_BYTES for chunk in chunks)
    assert [text.find(chunk.page_content, chunk.metadata["start_index"]) for chunk in chunks] == [
        chunk.metadata["start_index"] for chunk in chunks
    ]


def test_blank_documents_give_no_chunks() -> None:
    assert split_documents([a_document(" \n\n ")]) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_sizes_that_do_not_fit_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(SettingsError, match=f"chunk_size={size} and chunk_overlap={overlap}"):
        split_documents([], chunk_size=size, chunk_overlap=overlap)


def test_the_share_counts_letters_only() -> None:
    assert cjk_share("") == 0.0
    assert cjk_share("12 34 !?") == 0.0
    assert cjk_share("ab 12 汉字") == 0.5
    assert cjk_share(["abc", "ひカ한"]) == 0.5


@pytest.mark.parametrize(("chinese", "language"), [(5, "other"), (6, "cjk")])
def test_more_than_five_percent_make_a_corpus_cjk(chinese: int, language: str) -> None:
    documents = [a_document("汉" * chinese), a_document("a" * (100 - chinese))]
    assert CJK_THRESHOLD == 0.05
    assert language_of(cjk_share(document.page_content for document in documents)) == language
