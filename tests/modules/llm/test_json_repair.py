"""Repairing JSON takes a bounded time, and gives what the library gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import json_repair
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.thinking import split_thinking
from judgetree.modules.judge.generated import parse_verdict
from judgetree.modules.llm.json_reply import ReplyProblem, TooMuchWork, repaired_json
from tests.attacks.cpu_limit import least_cpu_seconds
from tests.cpu_time import cpu_time_below

LONGEST_S = 0.3
KB = 1024
almost_json = st.lists(
    st.sampled_from(["{", "}", "[", "]", '"', "'", ":", ",", "a", "1", "\\", "\n", " ", '"a": ', "true", "(", "//"]),
    max_size=30,
).map("".join)


@given(almost_json)
def test_a_repair_is_the_librarys(text: str) -> None:
    expected: object
    try:
        expected = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError) as error:
        with pytest.raises(type(error)):
            repaired_json("{" + text)
        return
    found = repaired_json(text)
    assert found == expected
    assert {*map(type, parts_of(found))} <= {dict, list, str, int, float, bool, type(None)}


def parts_of(value: object) -> Iterator[object]:
    yield value
    children = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    for child in children:
        yield from parts_of(child)


def test_a_broken_reply_of_the_length_that_is_repaired_is() -> None:
    statements = ", ".join(f'{{"reason": "it says "so" in [{n}]", "verdict": 1}}' for n in range(620))
    text = f'{{"statements": [{statements}'
    assert 30_000 < len(text) < 32_000
    found = repaired_json(text)
    assert isinstance(found, dict)
    assert len(found["statements"]) == 620


HOSTILE = {
    "braces": "{" * 32 * KB,
    "arrays that merge": '{"a":{"b":' + '["}' * 10_600,
    "quotes that may close": '{"a":[' + '"\\n' * 10_600,
    "parentheses": "{" + "-(" * 15_900,
    "keys that stand twice": '[{"a":1' + ',"a":1' * 5_300,
    "quotes and colons": '{"a":[' + '(":"' * 7_900,
    "escaped quotes without an end": '{"a": "' + '\\"' * 95 * KB,
    "fences": "```\n" * 48 * KB,
    "a fence and blank lines": "```" + "\n" * 195 * KB,
    "closing tags": "</think>" * 24 * KB,
    "thinking and answers": ("a" * KB) * 90 + "a<think>b</think>" * 6 * KB,
    "openings": "<think>" * 28 * KB,
    "beginnings of tags": "<" * 195 * KB,
    "long numbers": '{"score": ' + "1" * 195 * KB,
    "brackets that close": "}" * 195 * KB,
    "candidates": '{"score": x} ' * 15 * KB,
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_no_reply_takes_longer_than_the_loop_may_stand_still(reply: str) -> None:
    def read() -> None:
        with contextlib.suppress(ReplyProblem):
            parse_verdict(reply, "Who?")

    assert least_cpu_seconds(read, allowed_s=LONGEST_S) <= LONGEST_S


def test_a_repair_that_takes_too_many_steps_is_given_up() -> None:
    with pytest.raises(TooMuchWork):
        repaired_json('{"a": "six by nine"', max_steps=10)


def test_many_closing_tags_take_as_long_as_they_are() -> None:
    with cpu_time_below(20 * LONGEST_S):
        assert split_thinking("<think>a</think>\n" * 80_000 + "42")[0] == "42"  # 1.4 MB
        assert split_thinking("a</think>" * 150_000 + "42")[0].endswith("a</think>42")  # 1.3 MB
