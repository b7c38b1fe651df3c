"""Which reported prompt tokens show that a server cut the prompt, and which only look so."""

from __future__ import annotations

import itertools
import random

import pytest

from judgetree.modules.caveats.prompt_cuts import PromptBounds, context_of_cut, least_tokens

WORDS = ("oil", "pump", "valve", "pressure", "manual", "needs", "checked", "every", "week", "the")


def prompt(tokens: int, seed: int = 0) -> list[str]:
    """English of about so many tokens."""
    draw = random.Random(seed)
    return ["Answer from the passages.", " ".join(draw.choices(WORDS, k=tokens))]


def cuts(*calls: tuple[int, int], cached: int = 0) -> list[bool]:
    """Whether calls (tokens sent, tokens reported) are cut, in their order."""
    bounds = PromptBounds()
    return [bounds.is_cut(told, prompt(sent, seed), cached=cached) for seed, (sent, told) in enumerate(calls)]


@pytest.mark.parametrize("context", [512, 2048, 4096, 8192, 32768, 131072])
def test_a_prompt_is_cut_where_the_count_is_the_context_or_its_half(context: int) -> None:
    assert cuts((2 * context, context)) == [True]
    assert cuts((2 * context, context // 2 + 2)) == [context > 512], "half of 512 is too short to be a context"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(900, 900), (3000, 2900), (9000, 2050)], [False, False, True]),  # what fits into 4,096 is read whole
        ([(9000, 5000), (9000, 2048)], [False, False]),  # more was read before
        ([(9000, 2050), (9000, 2050), (4000, 4000), (9000, 2050)], [True, True, False, True]),
        ([(9000, 2050), (9000, 6500), (9000, 6500)], [True, False, False]),  # the server has a longer context now
        ([(9000, 4096), (9000, 3100)], [True, True]),  # whole messages were dropped: 9,000 do not fit into 4,096
        ([(9000, 1536), (8000, 1536), (7000, 1536), (900, 900)], [False, False, True, False]),  # no power of two
        ([(9000, 1536), (9000, 0)], [False, False]),  # not reported
        ([(1000, 1024), (1100, 1030)], [False, False]),
    ],
)
def test_a_cut_is_known_by_its_bound(calls: list[tuple[int, int]], expected: list[bool]) -> None:
    assert cuts(*calls) == expected


def test_the_same_prompt_again_proves_no_bound() -> None:
    bounds = PromptBounds()
    assert not any(bounds.is_cut(1536, prompt(9000)) for _ in range(5))


@pytest.mark.parametrize("told", [1, 10, 700, 1900])
def test_a_prompt_that_was_cached_is_not_cut(told: int) -> None:
    assert cuts((6000, told)) == [False]
    assert cuts((6000, 2048), cached=4000) == [False], "the endpoint says what it read from its cache"


def test_a_server_that_leaves_out_cached_prefixes_gives_no_alarm() -> None:
    draw = random.Random(7)
    alarms = 0
    for _ in range(20):  # processes, each with the first of its prompts cached as well
        calls = [
            (shared + new, new)
            for shared, new in zip(draw.choices(range(2000, 6000), k=20), new_parts(draw), strict=True)
        ]
        alarms += any(cuts(*calls))
    assert alarms == 0


def new_parts(draw: random.Random) -> list[int]:
    return [*itertools.islice(iter(lambda: draw.randrange(1, 3000), None), 20)]


def test_counts_of_a_mock_server_give_no_alarm() -> None:
    assert not any(cuts(*[(sent, 10) for sent in range(1000, 9000, 100)]))
    assert not any(cuts(*[(sent, 100) for sent in range(1000, 9000, 100)]))


def test_contexts_are_powers_of_two() -> None:
    assert [count for count in range(5000) if context_of_cut(count)] == [512, 514, 1024, 1026, 2048, 2050, 4096, 4098]


@pytest.mark.parametrize(
    ("text", "tokens"),  # of the tokenizer that takes fewest of those in docs/measured/from-decisions.md
    [
        ("Whereas recognition of the inherent dignity and of the equal and inalienable rights of all members", 18),
        ("鉴于对人类家庭所有成员的固有尊严及其平等的和不移的权利的承认，乃是世界自由、正义与和平的基础，", 24),
        ("人類社会のすべての構成員の固有の尊厳と平等で譲ることのできない権利とを承認することは、", 25),
        ("मानव परिवार के सभी सदस्यों के जन्मजात गौरव और समान तथा अविच्छिन्न अधिकार की स्वीकृति ही", 26),
        ("โดยที่การยอมรับศักดิ์ศรีแต่กำเนิด และสิทธิที่เท่าเทียมกัน", 14),
        ("def least(texts):\n    return int(sum(map(_least, texts)))\n", 15),
        (" " * 5000, 40),
        ("-" * 5000, 78),
        ("中华人民共和国" * 2000, 2000),
        ("哈" * 8000, 2000),
        ("", 0),
    ],
)
def test_no_tokenizer_takes_fewer(text: str, tokens: int) -> None:
    assert least_tokens([text]) <= tokens
