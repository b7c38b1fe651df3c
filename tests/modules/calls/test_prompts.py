"""Prompts as values: placeholders are filled once, braces of others survive, and every text is in the version."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.prompts import Prompt, PromptGroup, Prompts
from judgetree.modules.calls.tokens import message_tokens

ASKED = Prompt(
    name="asked", system="Be brief {so}.", user="Of {evidence}: {query}? {{query}} { } {1} {query}", about="x"
)
OTHER = Prompt(name="other", system="Other.", user="{query}")
GROUP = PromptGroup(prompts=(ASKED,), version="0a0b0c0d")
TEXTS = st.text() | st.sampled_from(["{query}", "{evidence}", "{{query}}", "{0}", "{", "}", "\\1", "%s", "{query!r}"])
EXAMPLES = st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple)
OWN = st.builds(Prompt, name=st.just("asked"), system=TEXTS, user=TEXTS, examples=EXAMPLES)


@given(TEXTS, TEXTS)
def test_values_are_put_in_as_they_are(query: str, evidence: str) -> None:
    system, (role, user) = ASKED.messages(query=query, evidence=evidence)
    assert system == ("system", "Be brief {so}.")
    assert (role, user) == ("user", f"Of {evidence}: {query}? {{query}} {{ }} {{1}} {query}")


@given(EXAMPLES)
def test_examples_stand_before_the_last_message_as_they_are(examples: tuple[tuple[str, str], ...]) -> None:
    messages = replace(ASKED, examples=examples).messages(query="q", evidence="e")
    shown = messages[1:-1]
    assert [role for role, _ in shown] == ["user", "assistant"] * len(examples)
    assert tuple(zip([t for _, t in shown[::2]], [t for _, t in shown[1::2]], strict=True)) == examples


def test_a_prompt_without_a_system_message_sends_none() -> None:
    assert replace(OTHER, system="").messages(query="Who?") == [("user", "Who?")]


@given(OWN, OWN)
def test_a_version_is_the_same_for_the_same_texts_only(one: Prompt, other: Prompt) -> None:
    assert (one.version == other.version) == (one == other)
    assert (Prompts([one]).version(GROUP) == Prompts([other]).version(GROUP)) == (one == other)
    assert (Prompts([one]).digest == Prompts([other]).digest) == (one == other)


def test_a_version_counts_only_the_prompts_of_its_group() -> None:
    assert Prompts().version(GROUP) == Prompts([OTHER]).version(GROUP) == GROUP.version
    assert Prompts([replace(ASKED, system="")]).version(GROUP) != GROUP.version
    assert Prompts().digest == "" != Prompts([OTHER]).digest
    assert Prompts([OTHER, ASKED]).digest == Prompts([ASKED, OTHER]).digest


def test_own_prompts_replace_those_of_their_name() -> None:
    own = Prompts([replace(OTHER, name="asked")])
    assert own.messages(ASKED, query="Who?", evidence="e") == [("system", "Other."), ("user", "Who?")]
    assert own.messages(OTHER, query="Who?") == OTHER.messages(query="Who?")


@given(EXAMPLES, TEXTS, st.integers(1, 60))
def test_as_many_examples_are_sent_as_fit_into_the_prompt(
    examples: tuple[tuple[str, str], ...], query: str, limit: int
) -> None:
    whole = replace(ASKED, examples=examples).messages(query=query, evidence="e")
    sent = replace(ASKED, examples=examples, max_prompt_tokens=limit).messages(query=query, evidence="e")
    shown = len(sent) - 2
    assert sent == [*whole[: 1 + shown], whole[-1]]
    assert shown % 2 == 0
    assert shown == 0 or message_tokens(sent) <= limit
    assert shown == 2 * len(examples) or message_tokens([*whole[: 3 + shown], whole[-1]]) > limit


def test_a_limit_of_the_examples_is_another_version() -> None:
    limited = replace(ASKED, max_prompt_tokens=100)
    assert limited.version != ASKED.version
    assert limited.to_document()["max_prompt_tokens"] == 100
    assert "max_prompt_tokens" not in ASKED.to_document()
