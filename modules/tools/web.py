"""The web search as a tool of agents."""

from __future__ import annotations

from langchain_core.documents import Document

from ..retriever.web import WebSearch

_PAGES = 3


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
