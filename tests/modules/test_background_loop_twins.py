"""Verbs in pairs: what a blocking verb and its async twin do, and what users and type checkers see of them."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import get_type_hints

import jedi
import pytest
from IPython.core.oinspect import Inspector

from judgetree.modules import background_loop as loops
from judgetree.modules.background_loop import async_twin, blocking
from judgetree.modules.errors import LoopReentryError

REPO = Path(__file__).parents[2]


class Adder:
    """Adds to a number that it is made with, and notes the thread of each piece of work."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.threads: list[str] = []

    @blocking
    async def add(self, number: int, *, times: int = 1) -> int:
        """Add a number, several times."""
        self.threads.append(threading.current_thread().name)
        await asyncio.sleep(0)
        if number < 0:
            raise ValueError("negative")
        return self._start + times * number

    aadd = async_twin(add)

    @blocking
    async def add_twice(self, number: int) -> int:
        """Add a number twice."""
        return await self.aadd(number) + await self.aadd(number)

    aadd_twice = async_twin(add_twice)

    @blocking
    async def count(self, end: int) -> AsyncIterator[int]:
        """Count from the start to an end."""
        self.threads.append(threading.current_thread().name)
        for number in range(self._start, end):
            await asyncio.sleep(0)
            yield number

    acount = async_twin(count)

    @blocking
    def count_known(self, end: int) -> AsyncIterator[int]:
        """Count to an end that is checked at once."""
        if end < 0:
            raise ValueError("negative")
        return self._count(end)

    acount_known = async_twin(count_known)

    async def _count(self, end: int) -> AsyncIterator[int]:
        for number in range(end):
            yield number


@blocking
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


adouble = async_twin(double)


@pytest.fixture
def adder() -> Adder:
    return Adder(1)


async def items_of(found: AsyncIterator[int]) -> list[int]:
    return [item async for item in found]


def test_both_do_the_work_on_the_loop(adder: Adder) -> None:
    assert adder.add(2, times=3) == asyncio.run(adder.aadd(2, times=3)) == 7
    assert list(adder.count(4)) == asyncio.run(items_of(adder.acount(4))) == [1, 2, 3]
    assert list(adder.count_known(2)) == asyncio.run(items_of(adder.acount_known(2))) == [0, 1]
    assert double(2) == asyncio.run(adouble(2)) == 4
    assert set(adder.threads) == {"judgetree-loop"}


def test_twin_runs_in_place_on_the_loop_and_the_verb_is_refused_there(adder: Adder) -> None:
    @blocking
    async def inside() -> int:
        with pytest.raises(LoopReentryError):
            adder.add(1)
        with pytest.raises(LoopReentryError):
            next(adder.count(3))
        return await adder.aadd(1) + sum(await items_of(adder.acount(3)))

    assert inside() == 2 + 3


def test_a_verb_that_uses_another_goes_to_the_loop_once(adder: Adder, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[object] = []
    start = loops._Work.start
    monkeypatch.setattr(loops._Work, "start", lambda work: (trips.append(work), start(work)))
    assert adder.add_twice(1) == asyncio.run(adder.aadd_twice(1)) == 4
    assert len(trips) == 2


def test_errors_pass_through_both(adder: Adder) -> None:
    for call in (lambda: adder.add(-1), lambda: asyncio.run(adder.aadd(-1)), lambda: adder.count_known(-1)):
        with pytest.raises(ValueError, match="negative"):
            call()
    with pytest.raises(TypeError, match=r"Adder\.add\(\) got an unexpected keyword argument 'time'"):
        adder.add(1, time=2)  # type: ignore[call-arg]


def test_only_a_blocking_verb_has_a_twin() -> None:
    with pytest.raises(KeyError):
        async_twin(items_of)


# --- what is seen of them ---


def test_name_signature_docstring_and_kind_are_right(adder: Adder) -> None:
    assert (
        str(inspect.signature(adder.add))
        == str(inspect.signature(adder.aadd))
        == ("(number: 'int', *, times: 'int' = 1) -> 'int'")
    )
    assert str(inspect.signature(adder.count)) == "(end: 'int') -> 'Iterator[int]'"
    assert str(inspect.signature(adder.acount)) == "(end: 'int') -> 'AsyncIterator[int]'"
    assert get_type_hints(adder.count)["return"] == Iterator[int]
    assert get_type_hints(adder.acount)["return"] == AsyncIterator[int]
    assert get_type_hints(adder.aadd)["return"] is int
    assert (inspect.getdoc(adder.add), inspect.getdoc(adder.aadd)) == (
        "Add a number, several times.",
        "Async twin of ``add``.",
    )
    assert (Adder.aadd.__qualname__, Adder.aadd.__name__, adouble.__qualname__) == ("Adder.aadd", "aadd", "adouble")
    assert Adder.add.__module__ == Adder.aadd.__module__ == __name__
    assert [inspect.iscoroutinefunction(verb) for verb in (adder.add, adder.aadd, adder.count)] == [False, True, False]
    assert [inspect.isasyncgenfunction(verb) for verb in (adder.count, adder.acount)] == [False, True]


@pytest.mark.parametrize("verb", ["add", "aadd"])
def test_ipython_shows_signature_and_docstring(adder: Adder, verb: str) -> None:
    found = Inspector(theme_name="nocolor").info(getattr(adder, verb), oname=f"adder.{verb}")
    assert found["definition"] == f"adder.{verb}(number: 'int', *, times: 'int' = 1) -> 'int'"
    assert found["docstring"] == inspect.getdoc(getattr(adder, verb))


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the loop's module as it stands in an installed package, which is what mypy and jedi read."""
    package = tmp_path / "judgetree" / "modules"
    package.mkdir(parents=True)
    for name in ("background_loop.py", "errors.py"):
        shutil.copy(REPO / "modules" / name, package)
    return tmp_path


@pytest.mark.parametrize("verb", ["add", "aadd"])
def test_completion_in_ipython_knows_arguments_and_docstring(
    adder: Adder, verb: str, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed)
    monkeypatch.setattr(jedi.settings, "cache_directory", str(installed / "cache"))
    [found] = [each for each in completions(adder, f"adder.{verb}") if each.name == verb]
    assert found.docstring().splitlines() == [
        f"{verb}(number: 'int', *, times: 'int'=1)",
        "",
        inspect.getdoc(getattr(adder, verb)),
    ]
    assert [each.name for each in completions(adder, f"adder.{verb}(1, ti")] == ["times="]


def completions(adder: Adder, text: str) -> list[jedi.api.classes.Completion]:
    return jedi.Interpreter(text, [{"adder": adder}]).complete()


CHECKED = """
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, assert_type

from judgetree.modules.background_loop import async_twin, blocking

class Adder:
    @blocking
    async def add(self, number: int, *, times: int = 1) -> int:
        return times * number

    aadd = async_twin(add)

    @blocking
    async def count(self, end: int) -> AsyncIterator[int]:
        yield end

    acount = async_twin(count)

assert_type(Adder().add(1, times=2), int)
called = assert_type(Adder().aadd(1, times=2), Coroutine[Any, Any, int])
assert_type(Adder().count(1), Iterator[int])
assert_type(Adder().acount(end=1), AsyncIterator[int])
"""
WRONG = ('add("1")', "add(1, time=2)", "add()", 'aadd("1")', "aadd(1, time=2)", "aadd()", 'count("1")', 'acount("1")')


@pytest.mark.slow
def test_mypy_sees_both_signatures_and_rejects_wrong_arguments(installed: Path) -> None:
    (installed / "checked.py").write_text(CHECKED + "\n".join(f"print(Adder().{call})" for call in WRONG))
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={os.devnull}"]
    command = [sys.executable, "-m", "mypy", *options, "checked.py"]
    checked = subprocess.run(command, cwd=installed, capture_output=True, text=True, check=False)
    first = CHECKED.count("\n") + 1
    rejected = [line.partition(": error: ")[0] for line in checked.stdout.splitlines() if ": error: " in line]
    assert rejected == [f"checked.py:{first + place}" for place in range(len(WRONG))], checked.stdout
