"""Entities: which phrases a text has, and which passages they join."""

from __future__ import annotations

import pytest

from judgetree.modules.structure.entities import MENTIONS, entity_graph
from judgetree.modules.structure.passage_graph import PassageGraph
from judgetree.modules.structure.passages import Passage
from judgetree.modules.structure.phrases import phrase_of, phrases_in


def passage(chunk_id: str, text: str, title: str = "") -> Passage:
    return Passage(chunk_id=chunk_id, text=text, metadata={"source": "a.jsonl", "title": title})


def mentioned(graph: PassageGraph, chunk_id: str) -> dict[str, float]:
    nodes, weights = graph.edges[MENTIONS].targets_of(graph.passages.index(chunk_id))
    return {graph.name_of(node): weight for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("He left the Bank of England in May.", ["bank of england"]),
        ("by J. R. R. Tolkien and Dr. No", ["j r r tolkien", "dr no"]),
        ("Anna O'Brien's Jean-Luc met NASA", ["anna o brien", "jean luc", "nasa"]),
        ("as KV-315 and 3M say, in the 21st century, 1990s and 1984", ["kv 315", "3m"]),
        ("with Ng Man-tat and Tony Leung Chiu-wai.", ["ng man tat", "tony leung chiu wai"]),
        ("in Aix-en-Provence and Stratford-upon-Avon", ["aix en provence", "stratford upon avon"]),
        ("a New York-based, London-born, Academy Award-winning man", ["new york", "london", "academy award"]),
        ("of Man-", ["man"]),
        ("aboard Apollo 11 on Monday, 5 June 1969", ["apollo 11"]),
        ("见YL534《结构钢板》的钢板。", ["yl534", "结构钢板", "结构", "钢板", "钢板"]),
        ("", []),
        ("The. It, of 12 — I", []),
    ],
)
def test_phrases_of_a_text(text: str, found: list[str]) -> None:
    assert [phrase for phrase, _ in phrases_in(text)] == found
    assert all(phrase_of(phrase) == phrase for phrase in found)


def test_a_single_word_at_the_start_of_a_sentence_counts_if_it_is_a_name_elsewhere() -> None:
    graph = entity_graph([passage("p1", "Born in Oslo. Grew up."), passage("p2", "Oslo is a city.")], "")
    assert (mentioned(graph, "p1"), mentioned(graph, "p2")) == ({"oslo": 1.0}, {"oslo": 1.0})


def test_a_passage_mentions_its_own_title_and_those_that_it_names_in_small_letters() -> None:
    graph = entity_graph([passage("p1", "It flies.", "Snow goose"), passage("p2", "a snow goose of Oslo", "Z9")], "")
    assert mentioned(graph, "p1") == {"snow goose": 1.0}
    assert mentioned(graph, "p2") == {"snow goose": 1.0, "oslo": 1.0, "z9": 1.0}


def test_a_mention_counts_once_however_many_passages_and_titles_have_that_name() -> None:
    book = [passage(f"b{n}", "It is long.", "rules of brine vessels") for n in range(5)]
    other = passage("b5", "It is short.", "Rules of Brine-Vessels")
    graph = entity_graph([*book, other, passage("p1", "as the rules of brine vessels say", "Z9")], "")
    assert mentioned(graph, "p1") == {"rules of brine vessels": 1.0, "z9": 1.0}


def test_a_phrase_of_many_passages_is_left_out_and_their_order_changes_nothing() -> None:
    passages = [passage(f"p{n}", f"seen by Anna Berg in Room {n % 7}B") for n in range(21)]
    graph = entity_graph(passages, "x")
    assert "anna berg" not in graph.phrases
    assert "room 0b" in graph.phrases
    assert "anna berg" in entity_graph(passages[:20], "x").phrases
    assert graph.digest == entity_graph(reversed(passages), "x").digest
