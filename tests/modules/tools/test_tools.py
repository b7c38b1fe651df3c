"""Tools of an agent: judgetree's, those of LangChain, and what their results become."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.tools import BaseTool, tool

from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import Settings
from judgetree.modules.tools.factory import create_tools
from judgetree.modules.tools.tool import LONGEST_RESULT, Tool


@tool
def length(word: str) -> int:
    """Count the letters
    of a word."""
    return len(word)


@tool
async def times(a: int, b: int) -> int:
    """Multiply."""
    return a * b


@tool
def now() -> str:
    """Tell the time."""
    return "noon"


@tool
def passages(query: str) -> list[Document]:
    """Find passages."""
    return [Document(page_content="one"), Document(page_content=query)]


@tool
def broken(text: str) -> str:
    """Break."""
    raise OSError("out of paper")


class SpeechlessError(Exception):
    """Fails to show itself."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@tool
def speechless(text: str) -> str:
    """Fail without a word."""
    raise SpeechlessError


@tool
def leaving(text: str) -> str:
    """Leave."""
    sys.exit(0)


@tool
def endless(text: str) -> str:
    """Write much."""
    return "\ud800\x00" + "x" * (2 * LONGEST_RESULT)


@tool
async def waiting(text: str) -> str:
    """Never give a result."""
    await asyncio.Event().wait()
    return text


@tool("Search")
def taken(text: str) -> str:
    """Has the name of the search."""
    return text


@tool("two words")
def two_words(text: str) -> str:
    """Has a name of two words."""
    return text


SHOUTING = """
from langchain_core.tools import tool

@tool
def shout(text: str) -> str:
    "Shout."
    return text + "!"

def make(settings):
    return shout
"""


def only(given: str | BaseTool, settings: Settings | None = None) -> Tool:
    (made,) = create_tools([given], settings or Settings(_env_file=None))
    return made


def result(given: str | BaseTool, text: str) -> str:
    (passage,) = asyncio.run(only(given).use(text))
    assert passage.metadata["title"] == text
    return passage.page_content


@pytest.mark.parametrize(
    ("given", "text", "said"),
    [
        ("calculator", "6 * 7", "42"),
        (length, "Vellin", "6"),
        (times, '{"a": 6, "b": 7}', "42"),
        (now, "whatever", "noon"),
        (passages, "two", "one\ntwo"),
        (broken, "x", "The tool failed: OSError: out of paper"),
        (times, "[6, 7]", "The tool failed: ValueError: the input '[6, 7]' is no JSON object with a, b"),
    ],
)
def test_a_tool_of_langchain_gives_one_passage(given: str | BaseTool, text: str, said: str) -> None:
    assert result(given, text) == said


@pytest.mark.parametrize(
    ("given", "text"), [(times, "6, 7"), (times, '{"a": 6}'), ("calculator", "x"), (leaving, "x"), (speechless, "x")]
)
def test_a_failure_is_a_result(given: str | BaseTool, text: str) -> None:
    assert result(given, text).startswith("The tool failed: ")


def test_a_result_can_be_stored_and_is_cut() -> None:
    said = result(endless, "x")
    assert "\x00" not in said
    assert len(said.encode()) < 2 * LONGEST_RESULT


def test_a_result_has_the_id_of_tool_input_and_text() -> None:
    ids = {asyncio.run(only(each).use(text))[0].metadata["chunk_id"] for each in (length, now) for text in ("a", "bb")}
    assert len(ids) == 4
    assert asyncio.run(only(length).use("a"))[0].metadata["chunk_id"] in ids


def test_the_agent_is_told_what_a_tool_does_on_one_line() -> None:
    assert only(length).description == "Count the letters of a word."
    assert only(times).description == "Multiply. Its input is a JSON object with a, b."


def test_a_version_tells_tools_apart() -> None:
    versions = {only(each).version for each in (length, times, now, "calculator")}
    assert len(versions) == 4
    assert only(length).version in versions


def test_a_tool_is_found_by_its_import_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "my_shouting_tools.py").write_text(SHOUTING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert result("my_shouting_tools:shout", "Hey") == "Hey!"
    assert only("my_shouting_tools:make").name == "shout"
    assert only("my_shouting_tools:shout").version.startswith("my_shouting_tools:shout ")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["hammer"], r"Unknown tool 'hammer'. Allowed: calculator, web; or the import path"),
        (["os:getcwd"], r"Give a tool of LangChain"),
        (["no_such_module:x"], r"cannot be imported"),
        (["web"], r"JUDGETREE_SEARXNG_URL"),
        ([length, length], r"'length' is the name of two tools"),
        ([taken], r"'Search' is an action of every agent"),
        ([two_words], r"'two words' needs another name"),
    ],
)
def test_what_is_no_tool_is_refused(given: list[str | BaseTool], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        create_tools(given, Settings(_env_file=None))


def test_a_tool_that_gives_no_result_in_time_has_failed() -> None:
    made = only(waiting, Settings(_env_file=None, timeout_s=0.05))
    (passage,) = asyncio.run(made.use("x"))
    assert passage.page_content == "The tool failed: no result within 0.05 s"
