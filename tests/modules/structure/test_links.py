"""Links: which titles a text names, and which passages that joins."""

from __future__ import annotations

import pytest

from judgetree.modules.structure.links import Links, Neighbour, link_graph
from judgetree.modules.structure.passages import Passage
from judgetree.modules.structure.titles import TitleFinder, documents_of, names_of


def passage(chunk_id: str, text: str, *, title: str = "", source: str = "a.jsonl", start: int = 0) -> Passage:
    return Passage(chunk_id=chunk_id, text=text, metadata={"source": source, "title": title, "start_index": start})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("born in New York City, not New York", ["New York City", "New York"]),
        ("NEW YORK is loud", ["New York"]),
        ("Newark and New Yorkers", []),
        ("a house and the House", ["House"]),
        ("见YL534《结构钢板》。", ["YL534", "结构钢板"]),
        ("as KV-315 says, and KV-3155 not", ["KV-315"]),
        ("", []),
    ],
)
def test_names_are_found_longest_first_at_the_bounds_of_words(text: str, found: list[str]) -> None:
    finder = TitleFinder(["New York", "New York City", "House", "YL534", "结构钢板", "KV-315"])
    assert list(finder.names_in(text)) == found


def test_a_name_that_is_given_again_is_found_once_and_names_that_differ_in_marks_together() -> None:
    finder = TitleFinder(["New York", "New York", "New-York"])
    assert list(finder.names_in("in New York")) == ["New York", "New-York"]
    assert list(finder.mentions_in("in New York")) == [["New York", "New-York"]]


def test_stop_words_numbers_single_letters_and_long_titles_are_not_looked_for() -> None:
    assert [names_of(title) for title in ("It", "The Who", "1984", "X", "…", "a b c " * 9)] == [
        [], [], [], [], [], [],
    ]  # fmt: skip


def test_a_file_is_called_by_its_first_line_or_else_its_name() -> None:
    heading = passage("1", "# KV-1 Valves\n\ntext", source="a.md")
    later = passage("2", "more", source="a.md", start=50)
    sentence = passage("3", "This is a sentence.\nAnd more", source="pump_manual.txt")
    nameless = passage("4", "This is one.", source="notes.txt")
    found = [(each.title, each.chunk_ids) for each in documents_of([nameless, sentence, later, heading])]
    assert found == [("KV-1 Valves", ("1", "2")), ("pump manual", ("3",))]


def test_a_passage_is_linked_both_ways_and_never_by_its_own_title() -> None:
    graph = link_graph(
        [
            passage("film", "Casablanca (film). Directed by Michael Curtiz.", title="Casablanca (film)"),
            passage("man", "Michael Curtiz was born in Budapest.", title="Michael Curtiz"),
            passage("city", "Budapest lies on the Danube.", title="Budapest"),
        ],
        "digest",
    )
    links = Links(graph)
    assert links.of("film") == [Neighbour(chunk_id="man", name="Michael Curtiz", is_named=True)]
    assert [(each.chunk_id, each.is_named) for each in links.of("man")] == [("city", True), ("film", False)]
    assert links.of("gone") == []


def test_a_name_of_many_passages_links_none() -> None:
    town = passage("town", "Springfield is a town.", title="Springfield")
    naming = [passage(f"p{n}", f"Number {n} of Springfield", title=f"Person {n}") for n in range(21)]
    assert Links(link_graph([town, *naming[:20]], "")).of("p3")[0].chunk_id == "town"
    assert Links(link_graph([town, *naming], "")).of("p3") == []


def test_the_order_of_the_passages_changes_nothing() -> None:
    passages = [passage(f"p{n}", f"It follows Chapter {n + 1}", title=f"Chapter {n}") for n in range(9)]
    assert link_graph(passages, "x").digest == link_graph(reversed(passages), "x").digest
    assert link_graph(passages, "x").digest != link_graph(passages, "y").digest
