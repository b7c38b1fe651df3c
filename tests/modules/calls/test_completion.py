"""What a message holds: answer, thinking and first tokens, whole and while it is still being written."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk

from judgetree.modules.calls.completion import StreamedMessage, TokenLogprob, completion_of
from judgetree.modules.storage.texts import storable
from tests.modules.model_endpoints import Snapshots

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
        (message("42", reasoning="<think>six</think>\n"), "42", "six"),
        (message("<think>five</think>42", reasoning="six"), "42", "six"),
        (message("<think>six</think>", reasoning="42"), "42", ""),
        (message("", reasoning="six by", finish_reason="length"), "", "six by"),
        (message("4", reasoning="six", finish_reason="length"), "4", "six"),
        (message(""), "", ""),
    ],
)
def test_completion_finds_answer_and_thinking(given: AIMessage, text: str, thinking: str) -> None:
    completion = completion_of(given)
    assert (completion.text, completion.thinking) == (text, thinking)
    assert completion.finish_reason == given.response_metadata["finish_reason"]


@pytest.mark.parametrize("field", ["content", "reasoning"])
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["4 \ud83d", "\ude00 2"], "4 😀 2"),
        (["\ud83d", "\ude00"], "😀"),
        (["\ud83d", "", "\ude00\ud83d", "\ude00"], "😀😀"),
        (["4\ud83d", "2"], "4?2"),
        (["4", "\ude002"], "4?2"),
    ],
)
def test_halves_of_a_pair_in_two_pieces_are_one_character(pieces: Sequence[str], text: str, field: str) -> None:
    streamed, heard = StreamedMessage(1_000), ""
    for piece in pieces:
        kwargs = (
            {"additional_kwargs": {"reasoning": piece}, "content": ""} if field == "reasoning" else {"content": piece}
        )
        streamed.feed(AIMessageChunk(**kwargs))  # type: ignore[arg-type]
        heard += streamed.new_text().text + streamed.new_thinking().text
    assert (completion_of(streamed.message()).text, heard) == (text, text)


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


# --- messages that are still being written ---


def written(content: str, reasoning: str, cuts: Sequence[int]) -> list[AIMessageChunk]:
    """A message cut into pieces: its reasoning first."""

    def pieces(text: str) -> list[str]:
        return [text[start:end] for start, end in itertools.pairwise([0, *sorted(cuts), len(text)])]

    return [
        *(AIMessageChunk(content="", additional_kwargs={"reasoning": piece}) for piece in pieces(reasoning) if piece),
        *(AIMessageChunk(content=piece) for piece in pieces(content)),
    ]


texts = st.lists(st.sampled_from(["<think>", "</think>", "</", "<th", "六乘九", "🤔", " ", "42 "]), max_size=8).map(
    "".join
)


@given(content=texts, reasoning=texts, cuts=st.lists(st.integers(0, 40), max_size=8))
def test_streamed_message_tells_what_each_piece_adds(content: str, reasoning: str, cuts: list[int]) -> None:
    streamed, text, thinking = StreamedMessage(10_000), Snapshots(), Snapshots()
    for piece in written(f"{content} 54", f"{reasoning} end", cuts):  # nothing is held back
        streamed.feed(piece)
        text(streamed.new_text())
        thinking(streamed.new_thinking())
    whole = completion_of(message(f"{content} 54", reasoning=f"{reasoning} end", finish_reason="length"))
    assert (text[-1], thinking[-1]) == (whole.text, whole.thinking)
    streamed.feed(AIMessageChunk(content="", response_metadata={"finish_reason": "length"}))
    put_together = completion_of(streamed.message())
    assert (put_together.text, put_together.thinking) == (whole.text, whole.thinking)


def test_streamed_reasoning_is_thinking_until_the_message_has_ended() -> None:
    streamed = StreamedMessage(10_000)
    streamed.feed(AIMessageChunk(content="", additional_kwargs={"reasoning": "42"}))
    assert (streamed.new_text().text, streamed.new_thinking().text) == ("", "42")
    assert completion_of(message("", reasoning="42")).text == "42"
    assert completion_of(message("", reasoning="<thought> is a tag")).text == "<thought> is a tag"


@pytest.mark.parametrize("logprob", [float("nan"), float("inf"), 1e300])
def test_log_probability_that_cannot_be_is_left_out_or_certain(logprob: float) -> None:
    alternatives = [{"token": "yes", "logprob": logprob}, {"token": "no", "logprob": -1.0}]
    read = completion_of(message("yes", logprobs={"content": [{"top_logprobs": alternatives}]})).first_token
    assert all(each.logprob <= 0.0 for each in read)
    assert read[-1].token == "no"


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
