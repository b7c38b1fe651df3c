"""Prompts: one direction of the scale everywhere, what stays the same first, refusals recognised in both languages."""

from __future__ import annotations

import json
import re
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.messages import JSON_REPAIR, Message, version_of
from judgetree.modules.judge import prompts as judge_prompts
from judgetree.modules.judge.contract import Score
from judgetree.modules.judge.prompts import GENERATED_JUDGE_VERSION, JUDGE_SCHEMA, JUDGE_SYSTEM, SCALE, judge_messages
from judgetree.modules.reader import prompts
from judgetree.modules.reader.evidence import as_material
from judgetree.modules.reader.prompts import (
    CLOSED_BOOK_SYSTEM,
    READER_SYSTEM,
    REFUSAL,
    closed_book_messages,
    reader_messages,
)

MEANINGS = {int(line.partition(" = ")[0]): line.partition(" = ")[2] for line in SCALE.splitlines()}


def score_schema() -> dict[str, object]:
    properties = JUDGE_SCHEMA["properties"]
    assert isinstance(properties, dict)
    return dict(properties["score"])


# --- the scale ---


def test_scale_has_one_direction_in_prompt_schema_and_type() -> None:
    assert "alone answers" in MEANINGS[2]
    assert "is needed" in MEANINGS[1]
    assert "not help" in MEANINGS[0]
    assert score_schema() == {"type": "integer", "enum": sorted(MEANINGS)}
    assert sorted(get_args(Score)) == sorted(MEANINGS)


def test_judge_prompt_states_the_scale_once_and_no_other() -> None:
    assert JUDGE_SYSTEM.count(SCALE) == 1
    assert '"score": 0 | 1 | 2' in JUDGE_SYSTEM
    without_scale = JUDGE_SYSTEM.replace(SCALE, "")
    assert not re.search(r"\b[0-2] (=|means)", without_scale)
    assert re.findall(r"score (\d)", without_scale) == ["1"], "a question belongs to a 1"


def test_judge_prompt_names_the_keys_of_its_schema_in_their_order() -> None:
    properties = JUDGE_SCHEMA["properties"]
    assert isinstance(properties, dict)
    assert JUDGE_SCHEMA["required"] == list(properties) == re.findall(r'"(\w+)":', JUDGE_SYSTEM)
    assert JUDGE_SCHEMA["additionalProperties"] is False


def test_judge_prompt_says_json_as_some_endpoints_demand() -> None:
    assert "JSON" in JUDGE_SYSTEM


# --- the order of the parts ---


def whole(messages: list[Message]) -> str:
    return "\x1e".join(f"{role}\x1f{text}" for role, text in messages)


def common_start(one: str, other: str) -> str:
    length = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[:length]


def test_all_that_two_chunks_share_comes_before_them() -> None:
    one, other = (whole(judge_messages("Who?", passage)) for passage in ("Ada.", "Bob."))
    shared = common_start(one, other)
    assert JUDGE_SYSTEM in shared
    assert "Who?" in shared
    assert one.removeprefix(shared) == "Ada."


def test_all_that_two_queries_share_comes_before_them() -> None:
    one, other = (whole(judge_messages(query, "Ada.")) for query in ("Who?", "What?"))
    assert JUDGE_SYSTEM in common_start(one, other)


def test_reader_sees_instructions_evidence_and_question() -> None:
    (system_role, system), (user_role, user) = reader_messages("Who?", "[1] a.md\nAda.")
    assert (system_role, system, user_role) == ("system", READER_SYSTEM, "user")
    assert "[1] a.md\nAda." in user
    assert user.endswith("Question: Who?")
    assert closed_book_messages("Who?") == [("system", CLOSED_BOOK_SYSTEM), ("user", "Question: Who?")]


@given(st.text(), st.text())
def test_braces_and_percent_signs_pass_unchanged(query: str, passage: str) -> None:
    assert query in judge_messages(query, passage)[1][1]
    assert as_material(passage) in judge_messages(query, passage)[1][1]
    assert passage in reader_messages(query, passage)[1][1]


# --- versions ---


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_version_is_the_same_for_the_same_templates_only(one: list[str], other: list[str]) -> None:
    assert re.fullmatch(r"[0-9a-f]{8}", version_of(*one))
    assert (version_of(*one) == version_of(*other)) == (one == other)


def test_version_of_the_judge_covers_all_that_the_model_sees() -> None:
    (_, system), (_, user) = judge_messages("{query}", "{passage}")
    assert version_of(system, user, JSON_REPAIR, json.dumps(JUDGE_SCHEMA)) == GENERATED_JUDGE_VERSION


def test_every_prompt_has_a_version_of_its_own() -> None:
    versions = [
        value for room in (prompts, judge_prompts) for name, value in vars(room).items() if name.endswith("_VERSION")
    ]
    assert len(versions) >= 4
    assert len(set(versions)) == len(versions)


# --- refusals ---


def test_prompts_ask_for_the_refusal_that_is_recognised() -> None:
    for system in (READER_SYSTEM, CLOSED_BOOK_SYSTEM):
        assert system.endswith(f"reply exactly: {REFUSAL}")
