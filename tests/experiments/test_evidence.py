"""The comparison of evidence on questions made by hand, whose outcomes can be read off, and the split."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from experiments.batches import kept_file
from experiments.evidence import (
    PLANNED,
    as_many_tokens,
    at_calls,
    comparisons_table,
    evidence_of,
    plan_of,
)
from experiments.ideal_parts import PARTS, complete
from experiments.kept import KeptChunk, KeptQuery, KeptQuestion, PlainSearch, append_kept, read_kept
from experiments.outcomes import BUDGETS, outcomes
from experiments.questions import read_split
from experiments.record import STAGE_A
from experiments.steps import funnel, judge_quality

GOLD = ("a", "b")


def chunk(document: str, score: int, *asks: str) -> KeptChunk:
    return KeptChunk(
        documents=(document,),
        tokens=100,
        verdict="judged",
        score=score,
        p_needed=0.9 if score else 0.1,
        calls=1 + (score == 1 and bool(asks)),
        judging=200,
        asks=asks,
        asked_by_judge=score == 1 and bool(asks),
        again=150 if len(asks) > 1 else 0,
    )


def query(words: str, *chunks: KeptChunk) -> KeptQuery:
    return KeptQuery(query=words, reading=50, expected_calls=2 * len(chunks), chunks=chunks)


def question(name: str, *queries: KeptQuery, naive: dict[int, int]) -> KeptQuestion:
    """A question with so many needed documents among the first passages, from each number of them on."""
    plain = []
    for topk in range(1, 41):
        gold = max((count for least, count in naive.items() if least <= topk), default=0)
        plain.append(PlainSearch(topk=topk, gold=gold, tokens=50 + 100 * topk))
    return KeptQuestion(
        id=name,
        part="part",
        type="",
        shares=(),
        gold=GOLD,
        tries=2,
        naive=tuple(plain),
        queries=queries,
        template=(query("{question}", *(chunk(each.documents[0], 0) for each in queries[0].chunks)),),
    )


def right(name: str) -> KeptQuestion:
    """Recursion finds the second document, and plain retrieval needs thirty passages for it."""
    return question(
        name,
        query("{question}", chunk("a", 1, "where?", "where else?"), chunk("x", 0, "no?")),
        query("where?", chunk("b", 1), chunk("x", 0)),
        query("where else?", chunk("y", 1)),
        query("no?", chunk("z", 1)),
        naive={1: 1, 30: 2},
    )


def second_right(name: str) -> KeptQuestion:
    """The judge's own question is wrong, its second one is right."""
    return question(
        name,
        query("{question}", chunk("a", 1, "wrong?", "right?"), chunk("x", 0, "no?")),
        query("wrong?", chunk("y", 1)),
        query("right?", chunk("b", 1)),
        query("no?", chunk("z", 1)),
        naive={1: 1, 30: 2},
    )


def dropped(name: str) -> KeptQuestion:
    """The judge drops the needed chunk, and plain retrieval has both documents among its first six."""
    return question(
        name,
        query("{question}", chunk("a", 0, "where?"), chunk("x", 1, "no?")),
        query("where?", chunk("b", 1)),
        query("no?", chunk("z", 1)),
        naive={1: 1, 6: 2},
    )


QUESTIONS = [right("r"), second_right("s"), dropped("d")]


def test_outcomes_count_calls_tokens_and_evidence() -> None:
    rows = outcomes(QUESTIONS).set_index(["id", "system", "budget"])

    breadth = rows.loc[[(name, "breadth", 60) for name in "rsd"]]
    assert breadth["complete"].tolist() == [True, False, False]
    # two chunks judged and a question written; in the sub-run as many chunks as it found; two answers
    assert breadth["calls"].tolist() == [3 + 2 + 2, 3 + 1 + 2, 3 + 1 + 2]
    # judging, then both readers with their useful passages
    assert breadth["tokens"].tolist() == [4 * 200 + 2 * 150, 3 * 200 + 2 * 150, 3 * 200 + 2 * 150]
    again = rows.loc[[(name, "again", 60) for name in "rsd"]]
    assert again["complete"].tolist() == [True, True, False]
    assert again["tokens"].tolist() == [1_100 + 150 + 200 + 150, 900 + 150 + 200 + 150, 900]
    assert rows.loc[("r", "naive", 30)]["complete"] and not rows.loc[("r", "naive", 29)]["complete"]
    assert set(rows.index.get_level_values("budget")) == {*BUDGETS, *range(1, 41)}


def test_the_plan_takes_as_many_tokens_and_counts_what_differs() -> None:
    plan = plan_of(QUESTIONS)

    assert plan.tokens == pytest.approx((1_100 + 900 + 900) / 3)
    assert plan.topk == 10  # 50 + 100 k tokens
    assert plan.discordance == pytest.approx(2 / 3)  # the first by the judge alone, the third by retrieval alone
    assert plan.first_right == pytest.approx(2 / 3)
    assert plan.power(0.1) < plan.power(0.2) < 1


def test_comparisons_and_steps_are_those_that_can_be_counted() -> None:
    found = evidence_of(QUESTIONS, plan_of(QUESTIONS))

    assert (found.primary.mean_a, found.primary.mean_b) == pytest.approx((1 / 3, 1 / 3))
    assert (found.primary.a_better, found.primary.b_better) == (1, 1)
    assert len(found.secondary) == 3
    assert [(each.reached, each.of) for each in funnel(QUESTIONS)] == [(0, 3), (3, 3), (2, 3), (2, 2), (1, 2), (1, 1)]
    at_root = judge_quality(QUESTIONS, root=True)
    # gold: .9 .9 .1; others: .1 .1 .9; nine pairs, of which 2x2 right, 2 + 2 tied, 1 wrong
    assert at_root[0] == pytest.approx((4 + 0.5 * 4) / 9)
    assert at_root[2] == 6


def test_an_ideal_writer_asks_for_another_document_from_each_needed_passage() -> None:
    gold = ("a", "b", "c", "d")
    four = replace(
        question(
            "four",
            query("{question}", chunk("a", 1, "same?"), chunk("b", 1, "same?"), chunk("x", 1, "no?")),
            query("same?", chunk("y", 1)),
            query("no?", chunk("z", 1)),
            naive={1: 2},
        ),
        gold=gold,
    )
    silent = replace(four, queries=(query("{question}", chunk("a", 1), chunk("b", 0)),), gold=gold[:3])

    assert [complete([four], part) for part in PARTS] == [0, 0, 1, 1]
    assert complete([silent], "with an ideal writer") == 0, "what the judge drops is not read"
    assert complete([replace(silent, gold=("a", "c"))], "with an ideal writer") == 1, (
        "also where the model wrote nothing"
    )


def test_as_many_tokens_are_found_in_each_data_set() -> None:
    longer = [replace(each, part="other", naive=each.naive[:9]) for each in QUESTIONS]

    assert as_many_tokens(outcomes(QUESTIONS)) == {"part": 10}
    with pytest.raises(ValueError, match=r"other: 9 passages take 950 tokens, below 967"):
        as_many_tokens(outcomes([*QUESTIONS, *longer]))


def test_the_page_says_whether_the_orders_are_equivalent() -> None:
    assert "| the same, equivalent within 5 points | 90 % interval" in comparisons_table(
        evidence_of(QUESTIONS, plan_of(QUESTIONS))
    )


def test_an_ideal_part_completes_what_the_models_own_loses() -> None:
    assert [complete(QUESTIONS, part) for part in PARTS] == [1, 2, 2, 3]


def test_as_many_calls_are_a_mix_of_two_budgets() -> None:
    rows = outcomes(QUESTIONS)
    spent = {name: rows[(rows["system"] == "again") & (rows["budget"] == 60)]["calls"].mean() for name in "x"}["x"]

    assert at_calls(rows, "again", spent).tolist() == [1, 1, 0]
    assert 1 / 3 <= at_calls(rows, "again", spent - 0.5).mean() <= 2 / 3


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    for each in QUESTIONS:
        append_kept(tmp_path / "kept" / "part.jsonl", each)

    assert read_kept(tmp_path / "kept" / "part.jsonl") == QUESTIONS
    assert read_kept(tmp_path / "missing.jsonl") == []


def test_no_question_is_in_two_parts_and_those_reported_before_are_in_none() -> None:
    split = read_split()
    parts = {name: set(each["ids"]) for name, each in split["parts"].items()}

    sizes = {name: len(ids) for name, ids in parts.items()}
    assert sizes == {
        "pilot": 10,
        "tuning": 60,
        "training": 30,
        "stage_a_hotpotqa": 100,
        "stage_a_2wiki": 100,
        "stage_b_hotpotqa": 40,
        "stage_b_2wiki": 40,
        "confirmation_hotpotqa": 171,
        "confirmation_2wiki": 100,
        "musique_levers": 50,
        "musique_reports": 50,
    }
    assert all(Counter(each["ids"]).most_common(1)[0][1] == 1 for each in split["parts"].values())
    for one, other in combinations(parts, 2):
        common = parts[one] & parts[other]
        assert not common or (one.startswith("stage_a") and other == one.replace("_a_", "_b_")), (one, other)
        assert not common or common == parts[other]


def test_the_page_says_how_many_questions_are_recorded() -> None:
    kept = sum(len(read_kept(kept_file(name, "local:"))) for name in STAGE_A)
    page = (Path(__file__).parents[2] / "docs" / "experiments" / "evidence.md").read_text(encoding="utf-8")

    assert f"{kept} of the {PLANNED} questions are recorded" in page or kept == PLANNED
