"""Prompts of one's own: read from YAML or a mapping, completed, checked, written and compared."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgetree
from judgetree.modules.calls.prompts import Prompt, Prompts
from judgetree.modules.errors import SettingsError
from judgetree.modules.extraction.prompts import EXTRACTION
from judgetree.modules.judge.prompts import (
    ASK_AGAIN_PROMPTS,
    BATCHED_JUDGE,
    GENERATED_JUDGE,
    INSERT_BLOCK_PROMPTS,
    LOGPROB_JUDGE,
)
from judgetree.modules.memory.prompts import CONVERSATION_PROMPTS
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.prompts.table import PROMPTS, USED_BY
from judgetree.modules.prompts.writing import changed_names, diff_of, to_yaml
from judgetree.modules.reader.prompts import CLOSED_BOOK_PROMPTS, READER_PROMPTS, STRATEGY_PROMPTS
from judgetree.modules.reader.step_prompts import STEP_PROMPTS, TOOL_PROMPTS

FORMAT = "format: judgetree-prompts/1\n"
SHORT = """\
reader:
  system: |
    Answer in one word. LaTeX \\frac{a}{b} and {"json": 1} stay.
  examples:
    - user: "Evidence: Ada is {7}."
      assistant: '7'
"""
GROUPS = (
    *(GENERATED_JUDGE, BATCHED_JUDGE, LOGPROB_JUDGE, ASK_AGAIN_PROMPTS, INSERT_BLOCK_PROMPTS),
    *(READER_PROMPTS, CLOSED_BOOK_PROMPTS, CONVERSATION_PROMPTS, EXTRACTION),
)


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    return file


# --- the table ---


def test_the_table_has_every_prompt_of_the_code_once() -> None:
    rooms = [Path(judgetree.modules.calls.messages.__file__).parents[1]]
    named = {
        keyword.value.value
        for room in rooms
        for file in room.rglob("*prompts.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Prompt"
        for keyword in call.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    }
    assert named == set(PROMPTS)
    assert sum(map(len, USED_BY.values())) == len(PROMPTS)


def test_every_prompt_is_in_the_version_of_a_group() -> None:
    groups = (*GROUPS, *STRATEGY_PROMPTS.values(), *STEP_PROMPTS.values(), TOOL_PROMPTS)
    assert {prompt.name for group in groups for prompt in group.prompts} == set(PROMPTS)
    assert all(prompt.about and prompt.placeholders for prompt in PROMPTS.values())


# --- reading ---


def test_what_a_file_leaves_out_is_judgetrees(tmp_path: Path) -> None:
    own = load_prompts(written(tmp_path, FORMAT + SHORT))
    assert list(own) == ["reader"]
    assert own["reader"].system == 'Answer in one word. LaTeX \\frac{a}{b} and {"json": 1} stay.'
    assert own["reader"].user == PROMPTS["reader"].user
    assert own["reader"].examples == (("Evidence: Ada is {7}.", "7"),)
    assert load_prompts(own) == load_prompts(own.to_document()) == own


@pytest.mark.parametrize("given", [None, {}, {"reader": {}}, {"reader": PROMPTS["reader"]}, Prompts()])
def test_judgetrees_own_prompts_are_none_of_ones_own(given: dict[str, object] | None) -> None:
    assert len(load_prompts(given)) == 0


def test_a_copy_of_all_prompts_changes_nothing(tmp_path: Path) -> None:
    assert len(load_prompts(written(tmp_path, to_yaml(PROMPTS.values())))) == 0


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}\x00\r\x85\u2028\u2029"))


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_survives_the_file(tmp_path_factory: pytest.TempPathFactory, system: str, one: str, two: str) -> None:
    user, examples = f"{one}: {{query}} {{evidence}} {{{{x}}}} {two}.", ((f"q{one}.", f"a{two}."),)
    own = replace(PROMPTS["reader"], system=f"{system}.", user=user, examples=examples)
    file = written(tmp_path_factory.mktemp("prompts"), to_yaml([own]))
    assert load_prompts(file)["reader"] == own


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("readr: {system: x}", r"no prompt 'readr'\. Did you mean 'reader'\? Allowed: reader, closed_book"),
        ("reader: {sytem: x}", r"reader\.sytem.*keys system and user"),
        ("reader: {system: 7}", r"reader\.system: Input should be a valid string"),
        ("reader: text", "reader is 'text'. Give it system, user or examples"),
        ("reader:", "reader is None"),
        ('reader: {user: "{qurey} {evidence}"}', r"\{qurey\} is no placeholder\. Did you mean 'query'.*\{\{qurey\}\}"),
        ('reader: {user: "{query}"}', r"reader\.user lacks \{evidence\}"),
        ('reader: {user: "{{query}} {evidence}"}', r"reader\.user lacks \{query\}"),
        ('reader: {system: "On {query}"}', r"reader\.system holds \{query\}.*move it there"),
        ('reader: {examples: [{user: "{query}", assistant: x}]}', r"reader\.examples holds \{query\}"),
        ("reader: {examples: [{user: x}]}", r"reader\.examples\.0\.assistant: Field required"),
        ('reader: {examples: [{user: x, assistant: " "}]}', "holds an empty text"),
        ("reader: {max_prompt_tokens: 0}", r"reader\.max_prompt_tokens: Input should be greater than 0"),
        ("judge: {system: Score it.}", "judge does not say JSON"),
        ('reader: {system: "a\\0b"}', "cannot be stored"),
        ("reader: {system: x}\nreader: {system: y}", "'reader' stands twice"),
        ("reader: {system: x, system: y}", "'system' stands twice"),
        ("? [a]\n: b", "cannot be read"),
        ("reader: [", "cannot be read"),
    ],
)
def test_an_unusable_file_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, FORMAT + text)
    with pytest.raises(SettingsError, match=said) as refused:
        load_prompts(file)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reader: {system: x}", "declare no format"),
        ("format: judgetree-prompts/9", "this judgetree reads 'judgetree-prompts/1' only"),
        ("- reader", "are no mapping"),
        ("", "are no mapping"),
    ],
)
def test_a_file_says_its_format(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_prompts(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.yaml cannot be read"):
        load_prompts(tmp_path / "none.yaml")


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(SettingsError, match=r"reader\.user lacks.*condense\.user lacks"):
        load_prompts({"reader": {"user": "{query}"}, "condense": {"user": "{query}"}})


# --- comparing ---


def test_a_diff_names_the_prompts_that_differ() -> None:
    own = load_prompts({"reader": {"system": "Answer."}, "condense": {"examples": [{"user": "x", "assistant": "y"}]}})
    assert changed_names(Prompts(), own) == changed_names(own, Prompts()) == ["reader", "condense"]
    diff = diff_of(Prompts(), own, names=("judgetree", "mine.yaml"))
    assert "--- judgetree: reader\n+++ mine.yaml: reader" in diff
    assert "\n+  system: Answer.\n" in diff
    assert "\n+  - user: x\n+    assistant: y" in diff
    assert diff_of(own, own) == ""


def test_a_whole_prompt_of_python_is_taken() -> None:
    mine = Prompt(name="reader", system="Answer.", user="{evidence}\n{query}")
    assert load_prompts({"reader": mine})["reader"].messages(query="q", evidence="e")[1] == ("user", "e\nq")
