"""Tools by name, import path or object, and the search on the web as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from langchain_core.documents import Document
from langchain_core.tools import BaseTool

from ..errors import SettingsError
from ..parts import Part, check_name, instantiate, part_of, source_of
from ..reader.multistep_prompts import FINISH_WORDS, SEARCH_WORDS
from ..retriever.web import SearxngSearch, WebSearch
from ..settings import Settings
from .calculator import calculator
from .tool import LangChainTool, Tool

_PAGES = 3
"""Passages that a search on the web returns."""
_NAME = re.compile(r"[^\W\d][\w-]{0,63}")


class WebTool:
    """A search on the web, whose results are passages with their addresses."""

    name = "web"
    description = "searches the web for a query that is understood by itself"
    version = "web"

    def __init__(self, search: WebSearch) -> None:
        """Search by ``search``."""
        self._search = search

    async def use(self, given: str) -> list[Document]:
        """Return the best passages for a query.

        Raises:
            SettingsError: The engine cannot be used.
        """
        return await self._search.search(given, limit=_PAGES)


def _web(settings: Settings) -> Tool:
    if not settings.searxng_url:
        raise SettingsError("The tool web needs a web search: set JUDGETREE_SEARXNG_URL.")
    return WebTool(SearxngSearch(settings.searxng_url))


TOOLS: Mapping[str, Callable[[Settings], Tool]] = {
    "calculator": lambda settings: LangChainTool(
        calculator(), part_of("tool", calculator), timeout_s=settings.timeout_s
    ),
    "web": _web,
}
"""Makers of judgetree's tools by name."""


def check_tools(given: Iterable[str]) -> None:
    """Check that each name is that of a tool, a plug-in or an import path; nothing is imported.

    Raises:
        SettingsError: A name is none of them.
    """
    for name in given:
        check_name("tool", name, TOOLS)


def create_tools(given: Iterable[str | BaseTool], settings: Settings) -> tuple[Tool, ...]:
    """Make the tools of an agent, for ``RagContext(tools=…)``.

    >>> [tool.name for tool in create_tools(["calculator"], Settings())]
    ['calculator']

    Args:
        given: Each "calculator", "web", or a tool of LangChain: itself, its ``module:name``, or a plug-in's name. A
            class or function that makes one may take ``settings``.
        settings: The settings in force.

    Raises:
        SettingsError: One cannot be imported or made, is no tool of LangChain, or has the name of another.
    """
    tools: dict[str, Tool] = {}
    reserved = (*SEARCH_WORDS, *FINISH_WORDS)
    for each in given:
        tool = _created(each, settings)
        if not _NAME.fullmatch(tool.name):
            raise SettingsError(f"The tool {tool.name!r} needs another name: letters, digits, _ and -.")
        key = tool.name.casefold()
        if key in tools or key in reserved:
            taken = "an action of every agent" if key in reserved else "the name of two tools"
            raise SettingsError(f"{tool.name!r} is {taken}. Give the tool another name.")
        tools[key] = tool
    return tuple(tools.values())


def tool_part(given: str | BaseTool) -> Part:
    """Return a tool of LangChain, or what makes it, with the digest of the source of its function.

    Raises:
        SettingsError: It cannot be imported.
    """
    part = part_of("tool", given)
    code = getattr(part.value, "func", None) or getattr(part.value, "coroutine", None)
    return part if code is None else replace(part, source=source_of(code))


def _created(given: str | BaseTool, settings: Settings) -> Tool:
    if isinstance(given, str):
        check_tools([given])
        if given in TOOLS:
            return TOOLS[given](settings)
    part = tool_part(given)
    tool = instantiate(part, settings=settings)
    if not isinstance(tool, BaseTool):
        raise SettingsError(
            f"The tool {part.name!r} is {tool!r:.100}. Give a tool of LangChain, such as a function under "
            "langchain_core.tools.tool."
        )
    return LangChainTool(tool, part, timeout_s=settings.timeout_s)
