"""The answer apart from the thinking, whole and while it is still being written."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from judgetree.modules.completion import (
    TokenLogprob,
    completion_of,
    growing_answer,
    split_thinking,
    storable,
)

plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: "think>" not in text)
answers = plain.map(str.strip).filter(bool)


# --- whole texts ---


@given(thinking=plain, answer=plain, gap=st.sampled_from(["", "\n", "\n\n  "]))
def test_split_gives_back_what_was_put_together(thinking: str, answer: str, gap: str) -> None:
    expected = (answer.strip(), thinking.strip())
    assert split_thinking(f"<think>{thinking}</think>{gap}{answer}") == expected
    assert split_thinking(f"{thinking}</think>{gap}{answer}") == expected, "the opening tag may be left out"


@given(thinking=plain, answer=plain)
def test_split_takes_a_text_that_is_never_closed_for_thinking(thinking: str, answer: str) -> None:
    assert split_thinking(f"{answer}<think>{thinking}") == (answer.strip(), thinking.strip())
    assert split_thinking(answer) == (answer.strip(), "")


@given(first=plain, second=plain, answer=plain)
def test_split_goes_by_the_last_closing_tag(first: str, second: str, answer: str) -> None:
    text, thinking = split_thinking(f"<think>{first}</think> {second}</think> {answer}")
    assert text == answer.strip()
    assert thinking == f"{first}</think> {second}".strip()


# --- growing texts ---


@given(thinking=plain, answer=answers, cuts=st.lists(st.integers(0, 80), max_size=12))
def test_growing_answer_only_grows_and_never_shows_thinking(thinking: str, answer: str, cuts: list[int]) -> None:
    text = f"<think>{thinking}</think>\n{answer}"
    shown = [growing_answer(text[:cut]) for cut in sorted(cuts)]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(shown))
    assert all(answer.startswith(part) for part in shown)


@given(answer=answers)
def test_growing_answer_shows_all_but_what_may_begin_a_tag(answer: str) -> None:
    assert growing_answer(answer) == answer or "<" in answer[-7:]
    assert growing_answer(f"{answer} end") == f"{answer} end"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("<", ""),
        ("<think", ""),
        ("<think>six", ""),
        ("<think>six</thin", ""),
        ("<think>six</think>", ""),
        ("<think>six</think> 42", "42"),
        ("6 <", "6"),
        ("6 < 9", "6 < 9"),
        ("see </", "see"),
        ("see <br>", "see <br>"),
    ],
)
def test_growing_answer_holds_back_the_beginning_of_a_tag(text: str, shown: str) -> None:
    assert growing_answer(text) == shown


# --- messages ---


def message(text: str, *, reasoning: str = "", finish_reason: str = "stop", **metadata: object) -> AIMessage:
    return AIMessage(
        content=text,
        additional_kwargs={"reasoning": reasoning} if reasoning else {},
        response_metadata={"finish_reason": finish_reason, **metadata},
    )


@pytest.mark.parametrize(
    ("given", "text", "thinking"),
    [
        (message("42"), "42", ""),
        (message("<think>six</think>42"), "42", "six"),
        (message("42", reasoning="six"), "42", "six"),
        (message("", reasoning="42"), "42", ""),
        (message("", reasoning="six</think>42"), "42", "six"),
        (message("<think>six</think>", reasoning="42"), "42", ""),
        (message("", reasoning="six by", finish_reason="length"), "", "six by"),
        (message("4", reasoning="six", finish_reason="length"), "4", "six"),
        (message(""), "", ""),
    ],
)
def test_completion_finds_answer_and_thinking_where_servers_put_them(
    given: AIMessage, text: str, thinking: str
) -> None:
    completion = completion_of(given)
    assert (completion.text, completion.thinking) == (text, thinking)
    assert completion.finish_reason == given.response_metadata["finish_reason"]


def test_completion_joins_the_text_parts_of_a_message() -> None:
    parts: list[str | dict[str, str]] = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    assert completion_of(AIMessage(content=parts)).text == "42"


def test_completion_of_a_message_without_metadata_is_its_text() -> None:
    completion = completion_of(AIMessage(content="42"))
    assert (completion.text, completion.finish_reason, completion.first_token) == ("42", "", ())


def test_first_token_lists_its_alternatives_in_the_order_given() -> None:
    first = {
        "token": "yes",
        "logprob": -0.1,
        "top_logprobs": [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2}],
    }
    second = {"token": ".", "logprob": 0.0, "top_logprobs": []}
    completion = completion_of(message("yes.", logprobs={"content": [first, second]}))
    assert completion.first_token == (TokenLogprob(token="yes", logprob=-0.1), TokenLogprob(token="no", logprob=-2.0))


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": []}])
def test_first_token_is_empty_when_the_endpoint_gives_no_logprobs(logprobs: object) -> None:
    assert completion_of(message("yes", logprobs=logprobs)).first_token == ()


def test_first_token_without_alternatives_is_the_token_itself() -> None:
    completion = completion_of(message("yes", logprobs={"content": [{"token": "yes", "logprob": -0.1}]}))
    assert completion.first_token == (TokenLogprob(token="yes", logprob=-0.1),)


# --- what can be saved ---


@given(st.text(st.characters()))
def test_storable_text_can_be_encoded_and_keeps_all_else(text: str) -> None:
    kept = storable(text)
    assert "\x00" not in kept
    assert kept.encode().decode() == kept
    assert storable(kept) == kept
    if text.isascii() and "\x00" not in text:
        assert kept == text


def test_completion_is_storable() -> None:
    completion = completion_of(message("half an emoji \ud83d\x00", reasoning="\x00\ude00"))
    assert (completion.text, completion.thinking) == ("half an emoji ?", "?")
