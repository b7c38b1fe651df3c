"""The judge that knows: the score counts gold facts, the sub-question asks for what is missing."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.documents import Document

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.oracle import GoldFact, OracleJudge, oracle_verdict

DIRECTOR = GoldFact(
    quote="Alien was directed by Ridley Scott.",
    question="Who directed Alien?",
    remaining_question="In which county was Ridley Scott born?",
)
BIRTHPLACE = GoldFact(
    quote="Ridley Scott was born in South Shields.",
    question="Where was Ridley Scott born?",
    remaining_question="In which county lies South Shields?",
)
COUNTY = GoldFact(quote="South Shields lies in Tyne and Wear.", question="In which county lies South Shields?")
CHAIN = (DIRECTOR, BIRTHPLACE, COUNTY)
COMPARISON = (
    GoldFact(quote="Alien came out in 1979.", question="When did Alien come out?"),
    GoldFact(quote="Jaws came out in 1975.", question="When did Jaws come out?"),
)


def test_score_counts_the_facts_that_the_passage_holds() -> None:
    for held in itertools.product([False, True], repeat=len(CHAIN)):
        passage = " ".join(fact.quote for fact, is_held in zip(CHAIN, held, strict=True) if is_held)
        verdict = oracle_verdict(CHAIN, f"Before. {passage} After.")
        assert verdict.status == "judged"
        assert verdict.score == (2 if all(held) else 1 if any(held) else 0)
        assert bool(verdict.next_query) == (verdict.score == 1)
        assert verdict.confidence == 1.0
        assert verdict.problem == ""


@pytest.mark.parametrize(
    ("held", "next_query"),
    [
        ([0], "In which county was Ridley Scott born?"),
        ([0, 1], "In which county lies South Shields?"),
        ([1], "Who directed Alien?"),
        ([2], "Who directed Alien?"),
        ([0, 2], "Where was Ridley Scott born?"),
        ([1, 2], "Who directed Alien?"),
    ],
)
def test_next_query_asks_what_remains_or_for_the_first_missing_fact(held: list[int], next_query: str) -> None:
    verdict = oracle_verdict(CHAIN, " ".join(CHAIN[number].quote for number in held))
    assert verdict.next_query == next_query
    assert verdict.reason == f"holds {len(held)} of 3 gold facts"


def test_next_query_of_facts_that_stand_alone_asks_for_the_other_one() -> None:
    first, second = COMPARISON
    assert oracle_verdict(COMPARISON, first.quote).next_query == second.question
    assert oracle_verdict(COMPARISON, second.quote).next_query == first.question


def test_no_next_query_on_the_deepest_level() -> None:
    verdict = oracle_verdict(CHAIN, DIRECTOR.quote, expand=False)
    assert (verdict.score, verdict.next_query) == (1, "")


def test_quotes_are_found_whatever_the_white_space() -> None:
    assert oracle_verdict([DIRECTOR], "Alien was\n  directed by\tRidley Scott.").score == 2


def test_judge_knows_its_queries_and_scores_the_others_zero_without_a_call() -> None:
    judge = OracleJudge({"Who  directed Alien?": [DIRECTOR]})
    meter = CallMeter(node="judge")

    def score(query: str) -> int | None:
        chunk = Document(page_content=DIRECTOR.quote)
        return background_loop().run(judge.judge(query, chunk, meter=meter)).score

    assert score("Who directed\nAlien?") == 2
    assert score("Who directed Jaws?") == 0
    assert meter.records == []


def test_fingerprint_depends_on_the_facts_and_not_on_their_order() -> None:
    one = OracleJudge({"a": CHAIN, "b": COMPARISON}).fingerprint()
    assert one == OracleJudge({"b": COMPARISON, "a": CHAIN}).fingerprint()
    assert one["kind"] == "oracle"
    assert one != OracleJudge({"a": CHAIN}).fingerprint()
    assert one != OracleJudge({"a": CHAIN[:2], "b": COMPARISON}).fingerprint()
