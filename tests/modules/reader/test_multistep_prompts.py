"""Prompts of the systems that search in rounds: what each reply is read as, whatever a model writes."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reader.multistep_prompts import (
    DRAFT_SYSTEM,
    FINAL_ANSWER,
    FINAL_THOUGHT,
    FINISH,
    FOLLOW_UP,
    FOLLOW_UP_SYSTEM,
    LONGEST_QUERY,
    NOTHING_OBSERVED,
    REACT_SYSTEM,
    SEARCH,
    THOUGHT_SYSTEM,
    Observed,
    draft_messages,
    follow_up_messages,
    parse_action,
    parse_draft,
    parse_follow_up,
    parse_thought,
    react_messages,
    thought_messages,
)
from judgetree.modules.reader.step_prompts import STEP_VERSIONS

MARKED = st.lists(
    st.sampled_from(
        ["Follow up:", FINAL_ANSWER, FINAL_THOUGHT, SEARCH, FINISH, "\n", "**", "Who?", "否", ".", " ", "[", "]", "("]
    )
    | st.text()
)


# --- prompts ---


def test_prompts_hold_what_they_are_given() -> None:
    (_, system), (_, user) = thought_messages("Who?", "[1] a.md\nAda.", ["Ada is one.", "So is Bob."])
    assert system == THOUGHT_SYSTEM
    assert "Evidence:\n[1] a.md\nAda." in user
    assert user.endswith("Sentences so far:\nAda is one.\nSo is Bob.")
    assert draft_messages("Who?", "E") == [
        ("system", DRAFT_SYSTEM),
        ("user", "Question: Who?\n\nEvidence:\nE\n\nQuestion: Who?"),
    ]
    assert follow_up_messages("Who?", [("Where?", "Here")])[1][1] == (
        "Question: Who?\n\nFollow up: Where?\nIntermediate answer: Here"
    )


def test_an_agent_is_shown_its_searches_in_order() -> None:
    observed = [
        Observed(query="Who?", passages="[1] a.md\nAda."),
        Observed(query="Where?", passages="", thought="It is Ada."),
    ]
    assert react_messages("Who?", observed) == [
        ("system", REACT_SYSTEM),
        (
            "user",
            "Question: Who?\n\n"
            "Action: Search[Who?]\nObservation:\n[1] a.md\nAda.\n\n"
            f"Thought: It is Ada.\nAction: Search[Where?]\nObservation:\n{NOTHING_OBSERVED}\n\n"
            "Question: Who?",
        ),
    ]


@pytest.mark.parametrize("system", [THOUGHT_SYSTEM, DRAFT_SYSTEM, FOLLOW_UP_SYSTEM, REACT_SYSTEM])
def test_every_prompt_asks_for_the_language_of_the_question(system: str) -> None:
    assert "Write in the language of the question" in system


def test_every_system_has_a_version_of_its_own() -> None:
    assert len(set(STEP_VERSIONS.values())) == len(STEP_VERSIONS) == 6


# --- a sentence of reasoning ---


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (
            "KV-301 keeps it at 1.35 times design pressure. Then it stops.",
            "KV-301 keeps it at 1.35 times design pressure.",
        ),
        ("It was built by J. R. Ruhl. He died.", "It was built by J. R. Ruhl."),
        ("What does Dr. Ruhl say? So the answer is: no", "What does Dr. Ruhl say?"),
        ('He called it "done." Then he left.', 'He called it "done."'),
        ("- first\n- second", "first"),
        ("1. first\n2. second", "first"),
        ("\n\n  two   blanks \n", "two blanks"),
        ("甲类容器由钢制成。所以答案是：钢。", "甲类容器由钢制成。"),
    ],
)
def test_a_thought_is_the_first_sentence(reply: str, sentence: str) -> None:
    thought = parse_thought(reply)
    assert (thought.text, thought.is_last) == (sentence, False)


@pytest.mark.parametrize(
    "reply",
    [
        f"{FINAL_THOUGHT} 212 °C.",
        "Thus the final answer is Vellin.",
        "THE ANSWER IS: no",
        "所以答案是：钢。",
        "最终答案为钢",
        "",
        " \n",
    ],
)
def test_a_thought_that_says_the_answer_or_nothing_is_the_last(reply: str) -> None:
    assert parse_thought(reply).is_last


def test_our_own_ending_is_recognised() -> None:
    assert f"{FINAL_THOUGHT} and the answer" in THOUGHT_SYSTEM
    assert parse_thought(f"{FINAL_THOUGHT} 40 mm").is_last


# --- a follow-up question ---


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        (f"{FOLLOW_UP} Who founded Rome?", "Who founded Rome?"),
        ("Are follow up questions needed here: Yes.\nFollow up: Who founded Rome?", "Who founded Rome?"),
        ("follow-up question 2: Who?\nIntermediate answer: Romulus\nFollow up: When?", "Who?"),
        ("**Follow up:** Who?", "Who?"),
        ("**Follow up: Who?**", "Who?"),
        ("Follow up:\nWho?", "Who?"),
        ("- Next follow-up: Who?", "Who?"),
        ("追问：谁建立了罗马？", "谁建立了罗马？"),
        ("Who founded Rome?", "Who founded Rome?"),
        ("谁建立了罗马？", "谁建立了罗马？"),
        ("Follow up: No man's land lies where?", "No man's land lies where?"),
    ],
)
def test_a_follow_up_is_found_in_what_models_write_around_it(reply: str, question: str) -> None:
    assert parse_follow_up(reply) == question


@pytest.mark.parametrize(
    "reply",
    [
        f"{FINAL_ANSWER} Romulus",
        f"{FINAL_ANSWER} Romulus\nFollow up: Who?",
        "**Final answer:** Romulus",
        "最终答案是：罗慕路斯",
        "Follow up: none",
        "Follow up: No further questions are needed.",
        "Follow up:",
        "",
        "I am not sure what you want from me.",
        "Is it this?\nOr is it that?",
    ],
)
def test_a_reply_without_a_follow_up_ends_the_questions(reply: str) -> None:
    assert parse_follow_up(reply) == ""


# --- an action ---


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        (f"Thought: Who was it?\n{SEARCH}[founder of Rome]", "founder of Rome"),
        ("Thought 2: Who was it?\nAction 2: Search[founder of Rome]", "founder of Rome"),
        ("Thought: Who was it? Action: Search[founder of Rome]", "founder of Rome"),
        ("**Thought:** Who was it?\n**Action:** Search[founder of Rome]", "founder of Rome"),
        ("Thought: Who was it?\n`Search[founder of Rome]`", "founder of Rome"),
        ('Thought: Who was it?\nAction: Search("founder of Rome")', "founder of Rome"),
        ("Thought: Who was it?\nACTION: SEARCH: founder of Rome", "founder of Rome"),
        ("Thought: Who was it?\nAction: Search\nAction Input: founder of Rome", "founder of Rome"),
        ("Thought: Who was it?\nAction:\nSearch[\nfounder of Rome\n]", "founder of Rome"),
        ("Thought: Who was it?\nAction: Search[founder of Rome", "founder of Rome"),
        ("思考：Who was it?\n行动：搜索【罗马的建立者】", "罗马的建立者"),
        ("Who was it?\nAction: Search[the item [0] of f] and more", "the item [0] of f"),
        ("Thought: Who was it?\nAction: Search[Mars (god)] or so", "Mars (god)"),
        ("Thought: Who was it?\nObservation: Romulus.\nAction: Search[founder of Rome]", "founder of Rome"),
    ],
)
def test_a_search_is_found_in_what_models_write_around_it(reply: str, query: str) -> None:
    action = parse_action(reply)
    assert (action.thought, action.query) == ("Who was it?", query)


def test_what_is_made_up_after_the_first_action_is_passed_over() -> None:
    made_up = "Observation: Romulus.\nThought: So it is he.\nAction: Finish[Romulus]"
    assert parse_action(f"Thought: a\nAction: Search[b]\n{made_up}").query == "b"
    assert parse_action(f"{made_up}\nAction: Search[b]").query == ""


@pytest.mark.parametrize(
    "reply",
    [
        f"Thought: It is known. {FINISH}[Romulus]",
        "Action: Finish: Romulus",
        "行动：完成[罗慕路斯]",
        "Action: Lookup[Romulus]",
        "Thought: I should search for Romulus [1], and finish (soon).",
        "Searching: Romulus",
        "",
    ],
)
def test_a_reply_that_does_not_search_is_kept_whole_and_asks_for_nothing(reply: str) -> None:
    action = parse_action(reply)
    assert (action.thought, action.query) == (reply, "")


def test_a_search_without_end_does_not_become_a_query_without_end() -> None:
    action = parse_action(f"Thought: {'why ' * 10_000}\n{SEARCH}[{'oil ' * 10_000}")
    assert (len(action.thought), len(action.query)) == (LONGEST_QUERY - 1, LONGEST_QUERY - 1)


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ('add[{"a": 1, "b": "x]y  z"}]', '{"a": 1, "b": "x]y  z"}'),
        ('add[{\n  "a": 1,\n  "b": "é"\n}]\nObservation: 3', '{"a": 1, "b": "é"}'),
        ("add[{a} and [b]] and more", "{a} and [b]"),
        ("add[{]", "{"),
        ('add["a" and "b"]', '"a" and "b"'),
        ('add["1 + 1"]', "1 + 1"),
        ("Add(__name__)", "__name__"),
        ("add: 2 * 3", "2 * 3"),
        ("add[]", ""),
        (f"add[{'7' * 5_000}]", f"{'7' * 4_000} …"),
    ],
)
def test_the_input_of_a_tool_stays_as_it_was_written(written: str, given: str) -> None:
    action = parse_action(f"Thought: one\nAction: {written}", ["add"])
    assert (action.tool, action.query) == ("add", given)


# --- whatever comes ---


@given(MARKED.map("".join))
def test_whatever_comes_is_read_as_one_line_of_bounded_length(reply: str) -> None:
    for query in (
        parse_thought(reply).text,
        parse_draft(reply),
        parse_follow_up(reply),
        *asdict(parse_action(reply)).values(),
    ):
        assert len(query) <= LONGEST_QUERY
        assert query == " ".join(query.split())


@given(st.text())
def test_a_draft_keeps_every_word_of_a_short_reply(reply: str) -> None:
    assert parse_draft(reply).split() == reply[:LONGEST_QUERY].split() or len(reply) > LONGEST_QUERY
