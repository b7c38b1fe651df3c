"""Texts are found whatever characters write them, in collections of both forms, and are shown as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgetree.modules.index import dense_fields
from judgetree.modules.index.index import Index
from judgetree.modules.index.schema import SEARCH_FIELD
from judgetree.modules.retriever.retriever import Retriever

TEXTS = {
    "ligature.txt": "The ﬁre was beside the oﬃce.",
    "radical.txt": "Old ⽔⼈ and ⻓⻛ signs.",
    "wide.txt": "Type ＡＸ３１５ of ｶﾞｽｹｯﾄ.",
    "soft.txt": "An inter\u00adnational co\u00ad\noperation.",
    "nfd.txt": "The cafe\u0301 of Zu\u0308rich.",
    "arabic.txt": "\ufe8d\ufedf\ufeb4\ufefc\ufee1 here.",
    "power.txt": "A load of 10⁶ newtons.",
    "caret.txt": "Stress below 10^7 pascals.",
    "flat.txt": "Room 106 and 107.",
    "water.txt": "Pure H₂O only.",
    "half.txt": "A pipe of 3½ inches.",
}
FOUND = [
    ("fire", "ligature.txt"),
    ("office", "ligature.txt"),
    ("水人", "radical.txt"),
    ("长风", "radical.txt"),
    ("AX315", "wide.txt"),
    ("ガスケット", "wide.txt"),
    ("international", "soft.txt"),
    ("ｃｏｏｐｅｒａｔｉｏｎ", "soft.txt"),
    ("café", "nfd.txt"),
    ("Zu\u0308rich", "nfd.txt"),
    ("السلام", "arabic.txt"),
    ("10^6", "power.txt"),
    ("10⁶", "power.txt"),
    ("10⁷", "caret.txt"),
    ("106", "flat.txt"),
    ("H_2O", "water.txt"),
    ("H2O", "water.txt"),
]


@pytest.fixture(params=["standard", "jieba"])
def filled(request: pytest.FixtureRequest, index: Index, docs: Path) -> Index:
    for name, text in TEXTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    if request.param == "jieba":
        (docs / "zh.txt").write_text("结构钢板的验收标准规定了尺寸和公差。" * 9, encoding="utf-8")
    index.get_index_done()
    assert index.info().analyzer == request.param
    return index


def _sources(index: Index, query: str) -> list[str]:
    hits = Retriever(index, topk=9, search_type="sparse").get_similar_chunk_with_score(query)
    return [chunk.metadata["source"] for chunk, _ in hits]


def test_either_spelling_finds_a_text_which_is_shown_as_it_was(filled: Index) -> None:
    for query, source in FOUND:
        assert _sources(filled, query)[:1] == [source], query
    assert _sources(filled, "106") == ["flat.txt"]
    assert "half.txt" not in _sources(filled, "31")
    for kind in ("sparse", "dense"):
        hits = Retriever(filled, topk=30, search_type=kind).get_similar_chunk_with_score("fire 10⁶ H2O café AX315")
        for chunk, _ in hits:
            source = chunk.metadata["source"]
            assert chunk.page_content == TEXTS.get(source, chunk.page_content)
            assert SEARCH_FIELD not in chunk.metadata
            assert chunk.metadata["start_index"] == 0


def test_the_embedder_sees_texts_and_queries_folded(index: Index, docs: Path, embedder: Any) -> None:
    (docs / "a.txt").write_text(TEXTS["ligature.txt"], encoding="utf-8")
    index.get_index_done()
    assert embedder.embedded == ["The fire was beside the office."]
    ((_, score),) = Retriever(index, topk=1).get_similar_chunk_with_score("The ﬁre was be\u00adside the oﬃce.")
    assert score == pytest.approx(1.0, abs=1e-5)


def test_a_collection_of_before_stays_as_it_was_made(
    index: Index, docs: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.txt").write_text(TEXTS["ligature.txt"], encoding="utf-8")
    made = dense_fields.CollectionInfo
    with monkeypatch.context() as patched:
        patched.setattr(dense_fields, "CollectionInfo", lambda **given: made(**{**given, "search_form": "written"}))
        index.get_index_done()
    assert "search_form" not in index.info().to_json()
    before = Retriever(index).fingerprint()
    (docs / "b.txt").write_text("A ﬂood and a fire, 10⁶.", encoding="utf-8")
    (docs / "c.json").write_text(json.dumps({"text": "Wood.", SEARCH_FIELD: "one of the file"}))
    assert index.get_index_done().added == ("b.txt", "c.json")
    assert index.info().search_form == "written"
    assert before.keys() == Retriever(index).fingerprint().keys()
    assert set(_sources(index, "ﬁre")) == {"a.txt", "b.txt"}  # as it is written, and folded
    assert _sources(index, "ﬂood") == _sources(index, "10⁶") == ["b.txt"]
    ((chunk, _),) = Retriever(index, topk=1, search_type="sparse").get_similar_chunk_with_score("wood")
    assert chunk.metadata[SEARCH_FIELD] == "one of the file"
    embedder.embedded.clear()
    assert index.get_index_done().unchanged == 3
    assert embedder.embedded == []


def test_further_files_cost_only_themselves(filled: Index, docs: Path, embedder: Any) -> None:
    embedder.embedded.clear()
    (docs / "new.txt").write_text("A ﬂood of 10⁸ litres.", encoding="utf-8")
    filled.get_index_done()
    assert embedder.embedded == ["A flood of 10^8 litres."]
    for query, source in [*FOUND, ("10^8", "new.txt"), ("flood", "new.txt")]:
        assert _sources(filled, query)[:1] == [source], query


@pytest.mark.filterwarnings("ignore:The 'ranker_type':DeprecationWarning")  # langchain-milvus warns of itself
def test_what_langchain_adds_is_found_too(index: Index, docs: Path) -> None:
    (docs / "a.txt").write_text("Cats sleep.")
    index.get_index_done()
    index.vector_store.add_texts(["A ﬂood of 10⁸ litres."], [{"source": "x"}], ids=["x"])
    assert _sources(index, "flood") == _sources(index, "10^8") == ["x"]
    (found,) = index.vector_store.similarity_search("flood", k=1)
    assert SEARCH_FIELD not in found.metadata


def test_a_text_that_grows_in_folding_is_cut_for_search_alone(index: Index, docs: Path) -> None:
    text = "\ufdfa" * 6000
    (docs / "a.txt").write_text(text, encoding="utf-8")
    index.get_index_done(chunk_size=20_000)
    ((chunk, _),) = Retriever(index, topk=1, search_type="sparse").get_similar_chunk_with_score("\ufdfa")
    assert chunk.page_content == text
