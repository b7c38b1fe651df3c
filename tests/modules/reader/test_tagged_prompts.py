"""Replies between tags: what each is read as, wherever it is cut, and what may stand between them in a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reader.multistep_prompts import LONGEST_QUERY, Observed
from judgetree.modules.reader.tagged_prompts import SEARCH_R1_SYSTEM, TaggedStep, parse_tagged, search_r1_messages

THOUGHT, QUERY = "The class is missing.", "class of KS-1"
WHOLE = f"<think>{THOUGHT}</think>\n<search>{QUERY}</search>\n<information>\n[1] a.md\nDelta\n</information>"


def test_an_agent_is_shown_its_searches_between_tags() -> None:
    observed = [
        Observed(query="Who?", passages="[1] a.md\nAda."),
        Observed(query="Where?", passages="", thought="Ada."),
    ]
    assert search_r1_messages("Who?", observed) == [
        ("system", SEARCH_R1_SYSTEM),
        (
            "user",
            "Question: Who?\n\n"
            "<search> Who? </search>\n<information>\n[1] a.md\nAda.\n</information>\n\n"
            "<think> Ada. </think>\n<search> Where? </search>\n<information>\n(nothing found)\n</information>\n\n"
            "Question: Who?",
        ),
    ]


@pytest.mark.parametrize("tag", ["</information>", "</ Information >", "<search>", "<ANSWER>", "< think>"])
def test_a_passage_cannot_end_its_part(tag: str) -> None:
    shown = search_r1_messages("q", [Observed(query=f"a{tag}", passages=f"b{tag}", thought=f"c{tag}")])[1][1]
    assert [shown.count(each) for each in ("<search>", "</search>", "<information>", "</information>")] == [1] * 4
    assert shown.count("&lt;") == 3


@pytest.mark.parametrize(
    ("reply", "text", "query"),
    [
        (WHOLE, THOUGHT, QUERY),
        (f"<think>{THOUGHT}</think><search>{QUERY}", THOUGHT, QUERY),
        (f"{THOUGHT}</think><search>{QUERY}</search>", THOUGHT, QUERY),
        (f"<think>{THOUGHT} <search>{QUERY}</search>", THOUGHT, QUERY),
        (f"{THOUGHT}\n<search>{QUERY}</search>", THOUGHT, QUERY),
        (f"<search>{QUERY}</search>", QUERY, QUERY),
        (f"<search>{QUERY}</search><think>{THOUGHT}</think>", QUERY, QUERY),
        (f"<THINK> {THOUGHT} </ think >< Search >\n{QUERY}\n</SEARCH >", THOUGHT, QUERY),
        (f'<think>{THOUGHT}</think><search>"{QUERY}"</search>', THOUGHT, QUERY),
        (f"<search><search>{QUERY}</search></search>", QUERY, QUERY),
        (f"<search>{QUERY}</search><search>oil of KS-1</search>", QUERY, QUERY),
        (f"<search>{QUERY}<answer>Delta</answer></search>", QUERY, QUERY),
        (f"<search></search><search>{QUERY}</search>", QUERY, QUERY),
        (f"<think>I may <search>twice</search>.</think><search>{QUERY}</search>", "I may twice .", QUERY),
        (f"<think>{THOUGHT}</think>```xml\n<search>{QUERY}</search>\n```", THOUGHT, QUERY),
        (f"First `<search>x</search>`, then <search>{QUERY}</search>", "First ` x `, then", QUERY),
        (f"<think>{THOUGHT}</think><answer>Delta</answer><search>{QUERY}</search>", THOUGHT, ""),
        ("<answer>Delta</answer>", "Delta", ""),
        ("<answer>Del", "Del", ""),
        (
            f"<think>{THOUGHT}</think><information>Delta</information><search>{QUERY}</search>",
            f"{THOUGHT} Delta {QUERY}",
            "",
        ),
        (THOUGHT, THOUGHT, ""),
        (f"<think>{THOUGHT}", THOUGHT, ""),
        ("<search></search>", "", ""),
        ("", "", ""),
    ],
)
def test_the_first_action_of_a_reply_counts(reply: str, text: str, query: str) -> None:
    assert parse_tagged(reply) == TaggedStep(text=text, query=query)


@pytest.mark.parametrize("reply", [WHOLE, WHOLE.upper(), f"```\n{WHOLE}\n```", f"{WHOLE}{WHOLE}", f"压力？{WHOLE}"])
def test_a_reply_cut_at_any_byte_is_no_search_or_the_beginning_of_the_first(reply: str) -> None:
    cut = [parse_tagged(reply.encode()[:end].decode(errors="ignore")) for end in range(len(reply.encode()) + 1)]
    last = cut[-1].query
    assert last.casefold() == QUERY.casefold()
    assert all(last.startswith(each.query) for each in cut)


PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<search>",
        "</search>",
        "<answer>",
        "</answer>",
        "<information>",
        "</ Search >",
        "<",
        "`",
        "```",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_any_reply_is_read(reply: str) -> None:
    step = parse_tagged(reply)
    for text in (step.text, step.query):
        assert text == " ".join(text.split())
        assert len(text) <= LONGEST_QUERY


def test_a_long_reply_is_read_in_linear_time() -> None:
    assert parse_tagged("<search>" * 50_000 + "`" * 50_001 + "< " * 50_000).query.startswith("< <")
