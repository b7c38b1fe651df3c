"""The page of levers that call no model, computed again from its rows, and what counts as a name or a link."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from langchain_core.documents import Document

from experiments.levers import features, unlinked_names
from experiments.questions import ids_of
from judgetree.modules.structure.titles import TitleFinder, names_of

PAGES = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (PAGES / "levers.md").read_text(encoding="utf-8")


def rows() -> dict[tuple[str, int], list[dict[str, str]]]:
    found = defaultdict(list)
    with (PAGES / "levers.csv").open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            found[row["lever"], int(row["most"])].append(row)
    return found


def share(lever: str, most: int) -> str:
    return f"{100 * fmean(row['complete'] == 'True' for row in rows()[lever, most]):.1f} %"


def test_each_line_is_that_of_its_rows() -> None:
    assert {frozenset(row["id"] for row in group) for group in rows().values()} == {frozenset(ids_of("tuning"))}
    for lever in ("naive", "ranker", "ranker with links"):
        assert f"| {lever} | {' | '.join(share(lever, most) for most in (3, 4, 5, 6, 8, 10))} |" in PAGE
    for most in (1, 2, 4):
        asked = fmean(int(row["asked"]) for row in rows()["names", most])
        assert f"{most} a passage: {share('names', most)}, {asked:.1f} sub-questions" in PAGE
    first = PAGE.partition("**Neither")[2].partition("\n\n")[0]
    for told in (share("ranker with links", 4), share("naive", 4), share("names", 4)):
        assert told in first


def test_plain_retrieval_is_that_of_the_screening() -> None:
    with (PAGES / "screening.csv").open(encoding="utf-8") as opened:
        screened = list(csv.DictReader(opened))
    for most, system in ((4, "naive(topk=4)"), (5, "naive(topk=5)"), (6, "naive(topk=6)"), (10, "naive(topk=10)")):
        known = {row["id"]: row["evidence"] for row in screened if row["system"] == system and not row["list"]}
        assert {row["id"]: row["complete"] == "True" for row in rows()["naive", most]} == {
            each: float(evidence) == 1 for each, evidence in known.items()
        }


def test_names_that_a_question_or_a_title_has_are_not_asked_about() -> None:
    text = "Ada Lovelace was born in Foo Town. The Analytical Engine, which Babbage built, is hers. It is Old."
    titles = TitleFinder(["Foo Town", *names_of("Ada Lovelace (countess)")])

    found = unlinked_names("What did Babbage build?", text, titles)

    assert found == ["Analytical Engine", "Old"]


def test_a_passage_is_linked_from_the_first_three_and_links_to_them() -> None:
    texts = {
        "Ada": "Ada met Babbage.",
        "Foo": "Foo.",
        "Bar": "Bar.",
        "Babbage": "Babbage.",
        "Zoo": "Zoo has Ada in it.",
    }
    hits = [Document(text, metadata={"title": title}) for title, text in texts.items()]

    rated = features("Who?", hits, [0.9, 0.8, 0.7, 0.6, 0.5])

    assert [each["is_linked"] for each in rated] == [0, 0, 0, 1, 0]
    assert [each["links"] for each in rated] == [0, 0, 0, 0, 1]
