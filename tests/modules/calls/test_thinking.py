"""Thinking apart from the answer, in texts that are cut anywhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from judgetree.modules.calls.completion import completion_of
from judgetree.modules.calls.messages import CallOptions
from judgetree.modules.calls.thinking import ThinkingText, split_thinking, whole_text
from judgetree.modules.reading.thinking_forms import without_end_marks

MARKS = "<`~'\"‘“„«「『"
OTHER_FORMS = re.compile(r"\[think\]|◁think▷", re.IGNORECASE)
"""Tags that begin with other letters, which Hypothesis takes from the sources."""
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=MARKS), max_size=20).filter(
    lambda text: not OTHER_FORMS.search(text)
)
answers = plain.map(str.strip).filter(bool)
PARTS = [
    *("<think>", "</think>", "<", "</", "<thi", "nk>", "think>", "六乘九", "🤔"),
    *("`", "``", "\n```\n", "~~~\n", "\n", '"', "'", "“", "”", "「", "」", "x" * 150),
]
tagged = st.lists(st.one_of(plain, st.sampled_from(PARTS)), max_size=12).map("".join)
cuts = st.lists(st.integers(0, 300), max_size=12)


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    return [text[start:end] for start, end in itertools.pairwise([0, *sorted(cuts), len(text)])]


def shown_of(pieces: Iterable[str], *, finish: bool = False) -> list[tuple[str, str]]:
    """Answer and thinking at first and after each piece."""
    growing, shown = ThinkingText(), [("", "")]
    for piece in pieces:
        growing.feed(piece)
        shown.append((growing.answer, growing.thinking))
    if finish:
        growing.finish()
        shown.append((growing.answer, growing.thinking))
    return shown


# --- whole texts ---


@given(thinking=plain, answer=plain, gap=st.sampled_from(["", "\n", "\n\n  "]))
def test_split_gives_back_what_was_put_together(thinking: str, answer: str, gap: str) -> None:
    expected = (answer.strip(), thinking.strip())
    assert split_thinking(f"<think>{thinking}</think>{gap}{answer}") == expected
    assert split_thinking(f"{thinking}</think>{gap}{answer}") == expected, "the opening tag may be left out"


@given(thinking=plain, answer=plain)
def test_split_takes_what_is_never_closed_for_thinking(thinking: str, answer: str) -> None:
    assert split_thinking(f"{answer}<think>{thinking}") == (answer.strip(), thinking.strip())
    assert split_thinking(answer) == (answer.strip(), "")


@given(thinking=plain, answer=plain)
def test_split_takes_repeated_closing_tags_for_one(thinking: str, answer: str) -> None:
    assert split_thinking(f"{thinking}</think>\n</think> {answer}") == (answer.strip(), thinking.strip())


QUOTING = [
    "XML closes with `</think>` here.",
    "It is `<think>a</think>` there.",
    "Write ``a `</think>` b`` or not.",
    "```xml\n<think>\nsix\n</think>\n```\nis how it looks.",
    "~~~~\n</think>\n~~~\n~~~~\nis how it looks.",
    "> ```\n> </think>\n> ```\nis quoted.",
    'The tag "</think>" ends it, "<think>" begins it.',
    'One writes "<think>six by nine</think>" before.',
    "The tag '</think>' isn't all.",
    "A lone ` or two before `</think>` change nothing.",
    "“</think>”, „</think>“, «</think>», ‘</think>’ close.",
    "标记「</think>」和『<think>』。",
]
"""Answers that quote tags."""


@pytest.mark.parametrize("answer", QUOTING)
def test_an_answer_that_quotes_a_tag_is_whole(answer: str) -> None:
    assert split_thinking(answer) == (answer, "")
    assert split_thinking(f"six</think>\n{answer}") == (answer, "six")
    assert split_thinking(f"<think>six</think>\n{answer}") == (answer, "six")
    assert split_thinking(f"<think>{answer}</think>42") == ("42", answer)


@pytest.mark.parametrize(
    "answer",
    ["Models end with </think> and go on.", "Write <think> and </think> around it.", "a\n```\n<think>\nof a fence"],
)
def test_an_answer_behind_a_thought_keeps_its_tags(answer: str) -> None:
    assert split_thinking(f"<think>six</think>\n{answer}") == (answer, "six")
    assert split_thinking(f"six</think>{answer}") == (answer, "six")


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("it's a `foo\n</think>\nthe `x`", "the `x`", "it's a `foo"),
        ("```\nnever closed</think>\n42", "42", "```\nnever closed"),
        ('say "six"</think>or "nine"', 'or "nine"', 'say "six"'),
        ("`six` </think> `nine`", "`nine`", "`six`"),
        ('{"six": "by</think>{"nine": 9}', '{"nine": 9}', '{"six": "by'),
        ("don't</think>isn't", "isn't", "don't"),
        ('say "six."</think>"Nine."', '"Nine."', 'say "six."'),
        ('a 5" pipe</think>of 6" width', 'of 6" width', 'a 5" pipe'),
        ("<think>six</think>42\n<think>nine</think>\n54", "54", "six\n\n42\n\nnine"),
    ],
)
def test_a_closing_tag_that_is_not_quoted_ends_a_thought(text: str, answer: str, thinking: str) -> None:
    said, thought = split_thinking(text)
    assert (said, sorted(thought.split())) == (answer, sorted(thinking.split()))


@given(tagged)
def test_split_loses_nothing_but_tags(text: str) -> None:
    left = re.sub("</?think>", "", "".join("".join(split_thinking(text)).split()))
    assert sorted(left) == sorted(re.sub("</?think>", "", "".join(re.sub("</?think>", " ", text).split())))


def test_everything_is_the_text_in_its_order() -> None:
    assert whole_text("a <think>b</think><think></think> c\n<think>d").everything == "a\n\nb\n\nc\n\nd"


# --- growing texts ---


@given(text=tagged, cuts=cuts)
def test_text_in_pieces_is_the_text_as_a_whole(text: str, cuts: list[int]) -> None:
    for pieces in (pieces_of(text, cuts), text):  # a character a piece, too
        (*_, shown) = shown_of(pieces, finish=True)
        assert shown == split_thinking(text)


@given(blocks=st.lists(st.tuples(plain, plain), min_size=1, max_size=3), is_opened=st.booleans(), cuts=cuts)
def test_nothing_of_a_tag_is_ever_shown(blocks: list[tuple[str, str]], is_opened: bool, cuts: list[int]) -> None:
    text = "\n".join(f"<think>{thinking}</think>{answer}" for thinking, answer in blocks)
    pieces = pieces_of(text if is_opened else text.removeprefix("<think>"), cuts)
    assert not any("<" in part for shown in shown_of(pieces) for part in shown)


@given(thinking=plain, answer=answers, cuts=cuts)
def test_both_texts_only_grow_where_the_tags_are_in_order(thinking: str, answer: str, cuts: list[int]) -> None:
    shown = shown_of(pieces_of(f"<think>{thinking}</think>\n{answer}", cuts))
    for earlier, later in itertools.pairwise(shown):
        assert later[0].startswith(earlier[0])
        assert later[1].startswith(earlier[1])
    assert shown[-1] == (answer, thinking.strip())


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("", "", ""),
        ("<", "", ""),
        ("<think", "", ""),
        ("<think>six", "", "six"),
        ("<think>six</thin", "", "six"),
        ("<think>six</think>", "", "six"),
        ("<think>six</think> 42", "42", "six"),
        ("six</think> 42", "42", "six"),
        ("<think>six</think> 42\n<think>nine", "42", "six\n\nnine"),
        ("<think>six</think> 42\n<think>nine</think>", "", "six\n\nnine\n\n42"),
        ("<think>six</think> 42 <think>nine", "42 <think>nine", "six"),
        ("six `</think>", "six `", ""),
        ("six `</think>`", "six `</think>`", ""),
        ("six `</think>` nine", "six `</think>` nine", ""),
        ("6 <", "6", ""),
        ("6 < 9", "6 < 9", ""),
        ("6 << 9", "6 << 9", ""),
        ("see </", "see", ""),
        ("see <br>", "see <br>", ""),
        ("<<think>six", "<", "six"),
    ],
)
def test_growing_text_holds_back_no_more_than_the_beginning_of_a_tag(text: str, answer: str, thinking: str) -> None:
    assert shown_of([text])[-1] == (answer, thinking)
    assert shown_of([text], finish=True)[-1] == split_thinking(text)


def test_text_that_ends_like_a_tag_is_whole_when_finished() -> None:
    assert split_thinking("6 <") == ("6 <", "")


# --- stop texts ---

stops = st.lists(st.sampled_from(["ab", "abc d", "c", "\nb", "\n", "</s>"]), min_size=1, max_size=3).map(tuple)
letters = st.text(st.sampled_from("abcd \n</s>"), max_size=24)


def before_stop(answer: str, stop: tuple[str, ...]) -> str:
    """The answer by the definition: stop texts of white space count behind the first visible character."""
    begun = len(answer) - len(answer.lstrip())
    ends = [answer.find(text, begun if text.isspace() else 0) for text in stop]
    return answer[: min((end for end in ends if end >= 0), default=None)].strip()


@given(answer=letters, stop=stops, cuts=cuts)
def test_answer_ends_before_a_stop_text_however_it_is_cut(answer: str, stop: tuple[str, ...], cuts: list[int]) -> None:
    growing, expected, heard = ThinkingText(stop), before_stop(answer, stop), ""
    for piece in pieces_of(answer, cuts):
        growing.feed(piece)
        heard += growing.new_answer().text
        assert expected.startswith(heard)
    growing.finish()
    assert growing.answer == heard + growing.new_answer().text == expected
    assert growing.everything == answer.strip()


def test_stop_text_in_the_thinking_ends_nothing() -> None:
    whole = whole_text("<think>STOP one</think> two STOP three", ("STOP",))
    assert (whole.answer, whole.thinking, whole.is_stopped) == ("two", "STOP one", True)
    whole = whole_text("one STOP two</think> three", ("STOP",))
    assert (whole.answer, whole.thinking, whole.is_stopped) == ("three", "one STOP two", False)


@pytest.mark.parametrize("stop", ["ab", ["ab"], ("",), (1,)])
def test_bad_stop_texts_are_refused(stop: Any) -> None:
    with pytest.raises(ValueError, match="stop is a tuple of texts"):
        CallOptions(stop=stop)


# --- other forms ---

HARMONY = "<|channel|>analysis<|message|>six by nine<|end|><|start|>assistant<|channel|>final<|message|>54"
FORMS = [
    "<thinking>six by nine</thinking>54",
    "<thought>six by nine</thought>\n54",
    "\n<reasoning>\nsix by nine\n</reasoning>\n\n54",
    "<seed:think>six by nine</seed:think>54",
    "[THINK]six by nine[/THINK]54",
    "◁think▷six by nine◁/think▷54",
    HARMONY,
    f"<|start|>assistant{HARMONY}",
    HARMONY.replace("<|end|><|start|>assistant", ""),
    HARMONY.replace("final<|message|>", "final <|constrain|>json<|message|>"),
    "<THINK>six by nine</THINK>54",
    "<Thinking mode='x'>six by nine</thinking>54",
    "analysissix by nineassistantfinal54",
]


@pytest.mark.parametrize("text", FORMS)
@given(cuts=cuts)
def test_thinking_in_other_forms_is_thinking(text: str, cuts: list[int]) -> None:
    """Servers without the model's reasoning parser leave it in the text."""
    assert split_thinking(text) == ("54", "six by nine")
    assert shown_of(pieces_of(text, cuts), finish=True)[-1] == ("54", "six by nine")
    unclosed = text[: text.index("nine") + 4]
    assert split_thinking(unclosed) == ("", "six by nine")


@pytest.mark.parametrize(
    "text",
    [
        "The tag <thinking> opens it, </thinking> ends it.",
        "54 [THINK] and [/THINK]",
        "<|channel|>",
        "<think",
        "[THIN",
        "</thinking> ends it",
        "\n \n<thinker>",
    ],
)
@given(cuts=cuts)
def test_other_forms_are_text_behind_the_beginning(text: str, cuts: list[int]) -> None:
    assert split_thinking(text) == (text.strip(), "")
    assert shown_of(pieces_of(text, cuts), finish=True)[-1] == (text.strip(), "")


START = "<|start|>assistant"


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        (f"{START}<|channel|>commentary<|message|>nine<|end|>{HARMONY}<|return|>", "54", "nine\n\nsix by nine"),
        (f"{HARMONY}<|end|>{START}<|channel|>final<|message|>55", "54\n\n55", "six by nine"),
        (HARMONY.replace("six", "say `<|message|>` six"), "54", "say `<|message|>` six by nine"),
        (HARMONY.replace("six by nine", "```\nsix"), "54", "```\nsix"),
        (f"{HARMONY} ends with <|end|>, says <think>", "54 ends with <|end|>, says <think>", "six by nine"),
        ("<|channel|>analysis<|message|>six<|end|>54", "54", "six"),
        ("<|channel|>analysis<|message|>six<|end|>\nfif<b>ty</b>-four<|return|>", "fif<b>ty</b>-four", "six"),
        ("<|channel|>analysis<|message|>six<|end|>assistant<|channel|>final<|message|>54", "54", "six"),
        ("<|channel|>analysis<|message|>six<|end|>assistants say <|message|>54", "assistants say <|message|>54", "six"),
        (f"<|channel|>final{'a ' * 300}<|message|>54", f"<|channel|>final{'a ' * 300}<|message|>54", ""),
        ("<thinking>a</thinking><thinking>b</thinking>54", "54", "a\n\nb"),
        ("<thinking>It asks of `</thinking>` itself.</thinking>54", "54", "It asks of `</thinking>` itself."),
        ("[THINK]It asks of “[/THINK]”.[/THINK]54", "54", "It asks of “[/THINK]”."),
        ("<thinking>a\n```\n</thinking>\n```\nb</thinking>54", "54", "a\n```\n</thinking>\n```\nb"),
        ("<thinking>a</thinking>The tag </thinking> ends it.", "The tag </thinking> ends it.", "a"),
    ],
)
@given(cuts=cuts)
def test_thinking_in_other_forms_ends_where_its_last_mark_stands(
    text: str, answer: str, thinking: str, cuts: list[int]
) -> None:
    found = completion_of(AIMessage(content=text, response_metadata={"finish_reason": "stop"}))
    assert (found.text, found.thinking) == (answer, thinking)
    shown = shown_of(pieces_of(text, cuts), finish=True)[-1]
    assert (without_end_marks(shown[0]), shown[1]) == (answer, thinking)


@pytest.mark.parametrize(
    "text",
    [
        "<thinking> is not an HTML tag. Browsers ignore it.",
        "[THINK] is the token with which it begins.",
        "analysisOfVariance is the name of the function.",
    ],
)
def test_an_answer_that_begins_with_a_tag_which_nothing_closes_is_about_it(text: str) -> None:
    whole = completion_of(AIMessage(content=text, response_metadata={"finish_reason": "stop"}))
    assert (whole.text, whole.thinking) == (text, "")
    cut = completion_of(AIMessage(content=text, response_metadata={"finish_reason": "length"}))
    assert cut.text == ""


def test_an_answer_in_a_channel_has_no_tag() -> None:
    assert split_thinking("<|channel|>final<|message|>54") == ("54", "")
    assert split_thinking("<|start|>assistant<|channel|>final<|message|>54") == ("54", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("54<|im_end|>", "54"),
        ("54\n<|im_end|>", "54"),
        ("54<|end|><|endoftext|>", "54"),
        ("54</s>", "54"),
        ("five <s>four</s>", "five <s>four</s>"),
        ('now:\n<s class="old">5</s>', 'now:\n<s class="old">5</s>'),
        ("The token is:\n<|im_end|>", "The token is:\n<|im_end|>"),
        ("<|im_start|>,<|im_end|>", "<|im_start|>,<|im_end|>"),
        ("It is <|im_end|>", "It is <|im_end|>"),
        ("`<|im_end|>`", "`<|im_end|>`"),
        ("<|im_end|>", "<|im_end|>"),
        ("54<|im_end|> is no answer", "54<|im_end|> is no answer"),
    ],
)
def test_tokens_at_the_end_of_a_reply_are_no_answer(text: str, expected: str) -> None:
    assert without_end_marks(text) == expected
    assert completion_of(AIMessage(content=text, response_metadata={"finish_reason": "stop"})).text == expected
