"""A tool that an agent uses by its name: the protocol, and any tool of LangChain."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Protocol

from langchain_core.documents import Document
from langchain_core.tools import BaseTool

from ..digests import canonical_json, text_digest
from ..errors import NoFailure, UserError
from ..parts import Part, guard_exit
from ..storage.texts import storable

LONGEST_RESULT = 8_000
"""Most characters of a tool's result that an agent and the reader see."""


class Tool(Protocol):
    """Protocol of the tools of an agent; ``create_tools`` makes them."""

    @property
    def name(self) -> str:
        """Name by which the agent calls it."""
        ...

    @property
    def description(self) -> str:
        """What it does and what its input is, in one line for the agent."""
        ...

    @property
    def version(self) -> str:
        """What determines its results, for fingerprints."""
        ...

    async def use(self, given: str) -> list[Document]:
        """Return the results for an input, each with ``chunk_id`` and ``source``; a failure is a result too.

        Raises:
            UserError: The user must correct a setting before it can be used.
        """
        ...


class LangChainTool:
    """A tool of LangChain. One that takes several arguments takes them as a JSON object."""

    def __init__(self, tool: BaseTool, part: Part, *, timeout_s: float) -> None:
        """``part`` has the name under which the tool was given, and the digest of its source."""
        self._tool = tool
        self._timeout_s = timeout_s
        self._part = part
        self.name = tool.name
        arguments = ", ".join(tool.args)
        how = f" Its input is a JSON object with {arguments}." if len(tool.args) > 1 else ""
        self.description = " ".join(f"{tool.description}{how}".split())

    @property
    def version(self) -> str:
        """The name under which it was given, and the digest of its source, description and arguments."""
        shown = canonical_json([self._part.source, self.description, self._tool.args])
        return f"{self._part.name} {text_digest(shown).hex()[:12]}"

    async def use(self, given: str) -> list[Document]:
        """Return the result as one passage; of a tool that raises, a passage that says so."""
        deadline = asyncio.timeout(self._timeout_s)
        try:
            with guard_exit(self._part.name):
                async with deadline:
                    result = _text(await self._tool.ainvoke(self._arguments(given)))
        except Exception as error:
            if isinstance(error, NoFailure | UserError):
                raise
            late = f"no result within {self._timeout_s:g} s"
            result = f"The tool failed: {late if deadline.expired() else f'{type(error).__name__}: {_said_by(error)}'}"
        return [as_result(self.name, given, result)]

    def _arguments(self, given: str) -> dict[str, object]:
        names = list(self._tool.args)
        if len(names) <= 1:
            return dict.fromkeys(names, given)
        arguments = json.loads(given)
        if not isinstance(arguments, Mapping):
            raise ValueError(f"the input {given!r:.80} is no JSON object with {', '.join(names)}")
        return {str(name): value for name, value in arguments.items()}


def as_result(tool: str, given: str, text: str) -> Document:
    """Return a tool's result as a passage, cut at ``LONGEST_RESULT`` characters, whose title is the input."""
    text = storable(text)
    shown = text if len(text) <= LONGEST_RESULT else f"{text[:LONGEST_RESULT]} …"
    chunk_id = text_digest(tool, given, shown).hex()[:32]
    return Document(page_content=shown, metadata={"chunk_id": chunk_id, "source": tool, "title": given})


def _said_by(error: Exception) -> str:
    try:
        return str(error) or repr(error.__cause__ or "")
    except Exception:  # noqa: BLE001 - an error of one's own may fail to show itself
        return "it does not say why"


def _text(result: object) -> str:
    """Return a tool's result as text; of LangChain's content blocks, their texts."""
    if isinstance(result, list):
        return "\n".join(str(each.get("text", each)) if isinstance(each, Mapping) else _text(each) for each in result)
    return result.page_content if isinstance(result, Document) else str(result)
