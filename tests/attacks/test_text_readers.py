"""Every function that reads foreign text takes time linear in it, whatever the text repeats."""

from __future__ import annotations

import heapq
import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.modules.errors import JudgetreeError

from .cpu_limit import cpu_seconds, least_cpu_seconds
from .package_patterns import FoundPattern, package_patterns
from .pumps import ENDINGS, pumps_of
from .reading_functions import called_with_a_text, looping_functions, reading_functions
from .repetitions import repetitions
from .text_readers import CHAINS, EXCUSED, READERS, Reader, is_excused

CAP = 200_000
"""Longest reply and question."""
QUICK = 10_000
PUMPS = 60
SLOWEST = 8
"""Texts read at full length: those on which a reader takes longest at a tenth of it or less."""
_ENDLESS = ("[" * 30_000, '{"a":' * 15_000, '{"a": ' + "9" * 5_000 + "}", "9" * 5_000)
"""What Python's own parsers refuse with other errors than ValueError, or in other versions of it."""


def allowed_s(size: int) -> float:
    """1 s for the longest text, and its share for a shorter one."""
    return size / CAP


def _readers() -> dict[str, Reader]:
    found = {
        name: READERS.get(name) or called_with_a_text(name)
        for name in (*reading_functions(), *looping_functions())
        if not is_excused(name)
    }
    return {**READERS, **CHAINS, **{name: reader for name, reader in found.items() if reader}}


ALL = _readers()


def _read(reader: Reader, text: str) -> None:
    with suppress(ValueError, JudgetreeError):
        found = reader(text)
        if isinstance(found, Iterator):
            deque(found, maxlen=0)


def _check(reader: Reader, texts: Iterable[str], size: int) -> None:
    for text in texts:
        took = least_cpu_seconds(lambda: _read(reader, text), allowed_s=allowed_s(size))  # noqa: B023
        assert took <= allowed_s(size), f"{took:.2f} s for {len(text):,} characters like {text[:40]!r}"


def _check_slowest(reader: Reader, tried: Sequence[str], full: Callable[[], Iterable[str]], size: int) -> None:
    """Read short texts, and of the same texts in full length those that took longest."""
    limit_s = allowed_s(size)
    took = [cpu_seconds(lambda: _read(reader, text), at_most_s=limit_s) for text in tried]  # noqa: B023
    slowest = set(heapq.nlargest(SLOWEST, range(len(tried)), key=took.__getitem__))
    _check(reader, (text for at, text in enumerate(full()) if at in slowest), size)


def test_every_function_that_reads_a_text_is_called_or_excused() -> None:
    reading = reading_functions()
    unknown = {name: by for name, by in reading.items() if not (name in ALL or is_excused(name))}
    assert not unknown, "give each an entry in READERS, or a reason in EXCUSED (tests/attacks/text_readers.py)"


def test_no_reason_outlives_its_function() -> None:
    reading = {*reading_functions(), *looping_functions()}
    assert [name for name in EXCUSED if name not in reading] == []


@pytest.mark.parametrize("name", ALL)
def test_a_reader_is_linear(name: str) -> None:
    tried = list(repetitions(QUICK // 10, framed=False))
    _check_slowest(ALL[name], tried, lambda: repetitions(QUICK, framed=False), QUICK)


@pytest.mark.parametrize("name", ALL)
def test_a_reader_raises_typed_errors(name: str) -> None:
    for text in _ENDLESS:
        _read(ALL[name], text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_reader_takes_a_second_at_most(name: str) -> None:
    pieces = {
        pump.repeated
        for pattern in _fixed_patterns()
        if pattern.place.startswith(_file_of(name))
        for pump in pumps_of(pattern.pattern, pattern.flags)
    }
    chosen = random.Random(1).sample(sorted(pieces), min(PUMPS, len(pieces)))

    def texts(size: int) -> Iterator[str]:
        yield from repetitions(size, framed=name in CHAINS)
        yield from ((piece * size)[:size] for piece in chosen)

    _check_slowest(ALL[name], list(texts(QUICK)), lambda: texts(CAP), CAP)


def _file_of(name: str) -> str:
    return name.rpartition(".")[0].replace(".", "/").replace("evaluation/", "eval/")


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(CHAINS)),
    st.lists(
        st.text(st.sampled_from("aA1 .,:;\n-*`<>[](){}\"'问题我答案是无法，。"), min_size=1, max_size=6),
        min_size=1,
        max_size=3,
    ),
)
def test_a_chain_is_linear_in_any_repetition(name: str, pieces: list[str]) -> None:
    text = "".join(piece * (QUICK // len(pieces) // len(piece)) for piece in pieces)
    _check(CHAINS[name], [text, "".join(pieces) * (QUICK // len("".join(pieces)))], QUICK)


# --- patterns ---

_FOR_SHORT_TEXTS = {
    "modules/reader/refusals.py": 2_000,
    "modules/memory/rewrites.py": 4_000,
    "modules/llm/wire/refusals.py": 4_000,
}
"""Longest texts that a file's patterns are searched in, where it cuts them before."""
_MADE = {
    "modules/redaction.py: _base64_runs",
    "modules/redaction.py: _pattern",
    "modules/storage/postgres.py: __init__",
    "modules/reading/quotations.py: _closing",
    "modules/reading/quotations.py: _fence_end",
    "modules/calls/stops.py: _any_of",
    "modules/reader/multistep_prompts.py: _action_pattern",
    "graphs/neighbourhood/words.py: _as_written",
    "modules/llm/wire/refusals.py: _word",
    "modules/llm/wire/refusals.py: _asked_for",
    "modules/llm/wire/error_words.py: _without_values",
    "modules/language/folding.py: _table",
    "modules/reading/thinking_forms.py: _begin",
    "modules/calls/thinking.py: _quoting_objects",
    "modules/language/scripts.py: _patterns",
}
"""Functions that make patterns from their arguments or from tables; each has a reader."""


def _fixed_patterns() -> list[FoundPattern]:
    found, _ = package_patterns()
    each = {(pattern.pattern, pattern.flags, pattern.only_from_the_start): pattern for pattern in found}
    return [pattern for pattern in each.values() if not pattern.place.startswith("app/scripted/")]


def _uses(pattern: FoundPattern) -> Callable[[str], object]:
    compiled = re.compile(pattern.pattern, pattern.flags)
    if pattern.only_from_the_start:
        return lambda text: (compiled.match(text), compiled.fullmatch(text))
    return lambda text: sum(1 for _ in compiled.finditer(text))


def _check_pattern(pattern: FoundPattern, size: int) -> None:
    size = min(size, _FOR_SHORT_TEXTS.get(pattern.place.partition(":")[0], size))
    chosen = sorted(pumps_of(pattern.pattern, pattern.flags))
    random.Random(1).shuffle(chosen)

    def texts(size: int) -> Iterator[str]:
        return (pump.text(size, ending) for pump in chosen[:PUMPS] for ending in ENDINGS)

    _check_slowest(_uses(pattern), list(texts(size // 40)), lambda: texts(size), max(size, QUICK))


def test_every_pattern_is_linear() -> None:
    for pattern in _fixed_patterns():
        try:
            _check_pattern(pattern, QUICK)
        except AssertionError as error:
            raise AssertionError(f"{pattern.place}: {error}") from error


@pytest.mark.slow
def test_every_pattern_takes_a_second_at_most() -> None:
    for pattern in _fixed_patterns():
        try:
            _check_pattern(pattern, CAP)
        except AssertionError as error:
            raise AssertionError(f"{pattern.place}: {error}") from error


def test_patterns_that_are_made_from_arguments_have_a_reader() -> None:
    _, made = package_patterns()
    assert {each.place for each in made if not each.place.startswith("app/scripted/")} == _MADE


@pytest.mark.parametrize("pattern", [r"(?:.{0,8}ab|ab)*c", r"^[\s>]*x", r"(\w+\s?)+:"])
def test_a_pattern_that_takes_too_long_is_found(pattern: str) -> None:
    chosen = sorted(pumps_of(pattern, re.MULTILINE))
    uses = _uses(FoundPattern("here", pattern, re.MULTILINE, only_from_the_start=False))
    texts = [pump.text(QUICK, ending) for pump in chosen for ending in ENDINGS]
    limit = allowed_s(QUICK)
    assert any(cpu_seconds(lambda: uses(text), at_most_s=limit) >= limit for text in texts)  # noqa: B023
