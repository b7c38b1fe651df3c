"""Whatever a model writes becomes a verdict or a problem that can be told to the model."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgetree.modules.judge.contract import Verdict
from judgetree.modules.judge.generated import parse_verdict
from judgetree.modules.llm.json_reply import ReplyProblem

QUERY = "Where was the director of Alien born?"
NEXT = "Where was Ridley Scott born?"
GOOD = json.dumps({"reason": "names the director", "score": 1, "next_query": NEXT})
DECOY = json.dumps({"reason": "a guess", "score": 0, "next_query": ""})
VERDICT = Verdict(status="judged", score=1, reason="names the director", next_query=NEXT)


@pytest.mark.parametrize(
    "reply",
    {
        "plain": GOOD,
        "score as text": GOOD.replace("1", '"1"'),
        "score as text with spaces": GOOD.replace("1", '" 1 "'),
        "score as a float": GOOD.replace("1", "1.0"),
    }.items(),
    ids=lambda reply: reply[0],
)
def test_verdict_is_found_in_a_garbled_reply(reply: tuple[str, str]) -> None:
    assert parse_verdict(reply[1], QUERY) == VERDICT


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("", "no JSON object"),
        ("{}", "score: Field required"),
        (GOOD[:20], "score: Field required"),
        (GOOD.replace("1", "7"), "score: Input should be 0, 1 or 2"),
        (GOOD.replace("1", "-1"), "score"),
        (GOOD.replace("1", "1.5"), "score"),
        (GOOD.replace("1", '"one"'), "score"),
        (GOOD.replace("1", "true"), "score"),
        (DECOY.replace("0", "false"), "score"),
        (GOOD.replace("1", "null"), "score"),
        (GOOD.replace("1", "[1]"), "score"),
        (GOOD.replace("1", "NaN"), "score"),
        (GOOD.replace("1", "Infinity"), "score"),
        (GOOD.replace("1", "1" * 5000), "score"),
        ('{"reason": ["none"], "score": "partly", "next_query": 7}', "reason: .*score: .*next_query: "),
    ],
    ids=lambda value: value[:40],
)
def test_reply_without_a_verdict_is_a_problem_that_says_what_is_wrong(reply: str, complaint: str) -> None:
    with pytest.raises(ReplyProblem, match=complaint):
        parse_verdict(reply, QUERY)


# --- the sub-question ---


@pytest.mark.parametrize("score", [0, 2])
def test_only_a_1_carries_a_question(score: int) -> None:
    verdict = parse_verdict(GOOD.replace("1", str(score)), QUERY)
    assert (verdict.score, verdict.next_query, verdict.problem) == (score, "", "")


@pytest.mark.parametrize(
    ("next_query", "complaint"),
    [
        ("", "empty"),
        (None, "empty"),
        (" \t", "empty"),
        ("where was the Director of 'Alien' born", "repeats"),
        ("Who is the man in this passage?", "without it"),
    ],
)
def test_a_1_without_a_usable_question_keeps_its_score_and_says_why(next_query: str | None, complaint: str) -> None:
    reply = json.dumps({"reason": "r", "score": 1, "next_query": next_query})
    verdict = parse_verdict(reply, QUERY)
    assert (verdict.status, verdict.score, verdict.next_query) == ("judged", 1, "")
    assert complaint in verdict.problem


def test_a_1_without_the_question_key_is_a_1_with_a_problem() -> None:
    verdict = parse_verdict('{"score": 1}', QUERY)
    assert (verdict.score, verdict.reason, verdict.next_query) == (1, "", "")
    assert verdict.problem


@pytest.mark.parametrize("next_query", [NEXT, "", QUERY])
def test_a_1_that_is_not_expanded_needs_no_question(next_query: str) -> None:
    reply = json.dumps({"reason": "r", "score": 1, "next_query": next_query})
    assert parse_verdict(reply, QUERY, expand=False) == Verdict(status="judged", score=1, reason="r")


def test_a_reply_that_was_cut_off_keeps_its_score_and_loses_its_question() -> None:
    cut = GOOD[: GOOD.index("born")]
    assert parse_verdict(cut, QUERY).next_query == "Where was Ridley Scott", "the parser cannot see that it was cut off"
    verdict = parse_verdict(cut, QUERY, cut_off=True)
    assert (verdict.score, verdict.next_query) == (1, "")
    assert "cut off" in verdict.problem
    assert parse_verdict(cut, QUERY, cut_off=True, expand=False).problem == ""
    assert parse_verdict(DECOY[:-5], QUERY, cut_off=True) == Verdict(status="judged", score=0, reason="a guess")


# --- laws ---

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
near_verdicts = st.fixed_dictionaries(
    {}, optional={"reason": json_values, "score": json_values, "next_query": json_values}
).map(json.dumps)
pieces = st.sampled_from(
    ["<think>", "</think>", "```", "```json\n", "{", "}", '"', ",", "score", ": 1", "\\", "\n", "\\ud800"]
)
garbage = st.lists(pieces | near_verdicts | st.text(max_size=5), max_size=8).map("".join)


@given(reply=garbage | st.text() | near_verdicts, expand=st.booleans(), cut_off=st.booleans())
@example(reply='{"reason": "half an emoji \\ud83d", "score": 2}', expand=True, cut_off=False)
@example(reply='{"reason": "a\\u0000b", "score": 2}', expand=True, cut_off=False)
@example(reply='{"next_query": "a\\u0000b\\ud800?", "score": 1}', expand=True, cut_off=False)
def test_any_reply_is_a_whole_verdict_or_a_problem(reply: str, expand: bool, cut_off: bool) -> None:
    try:
        verdict = parse_verdict(reply, QUERY, expand=expand, cut_off=cut_off)
    except ReplyProblem as problem:
        assert str(problem)
        return
    assert verdict.status == "judged"
    assert verdict.score in (0, 1, 2)
    assert type(verdict.score) is int
    assert (verdict.score == 1 and expand) == bool(verdict.next_query or verdict.problem)
    assert not (verdict.next_query and verdict.problem)
    for text in (verdict.reason, verdict.next_query):
        text.encode()  # a lone surrogate cannot be saved, nor can PostgreSQL save a NUL
        assert "\x00" not in text
