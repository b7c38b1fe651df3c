"""What the checks of parts share: the error, the chunks, and running on judgetree's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from langchain_core.documents import Document

from ..modules.background_loop import background_loop
from ..modules.errors import reason_of
from ..modules.judge.contract import AnyJudge
from ..modules.parts import guard_exit
from ..modules.retriever.contract import ChunkRetriever
from .search.policy import Policy

T = TypeVar("T")

LONGEST_S = 60.0


class ContractError(AssertionError):
    """A part does not keep a rule that judgetree relies on; the message names the rule and what the part did."""


def chunk_of(place: int, text: str) -> Document:
    """Return the chunk of a place, counted from 0."""
    return Document(page_content=text, metadata={"chunk_id": f"chunk-{place}", "source": "ks-1.md"})


def check_fingerprint(part: AnyJudge | ChunkRetriever | Policy) -> None:
    """Check that a fingerprint gives texts by name, always the same."""
    rule = "fingerprint gives texts by name"
    try:
        first = part.fingerprint()
    except Exception as error:
        raise ContractError(
            f"{rule}; it raised {type(error).__name__}: {reason_of(error)}. Give an object, not its class"
        ) from error
    is_text = isinstance(first, Mapping) and all(isinstance(each, str) for pair in first.items() for each in pair)
    require(is_text, rule, first)
    again = part.fingerprint()
    require(again == first, "fingerprint gives the same each time", (first, again))


async def called(call: Callable[[], Awaitable[T]], rule: str) -> T:
    """Return what a call of a part gives, which may fail before it is awaited, as one with other arguments does."""
    try:
        work = call()
    except Exception as error:
        raise ContractError(f"{rule}; it raised {type(error).__name__}: {error}") from error
    return await awaited(work, rule)


async def awaited(work: Awaitable[T], rule: str) -> T:
    """Return what a method of a part gives; an error breaks ``rule``."""
    require(hasattr(work, "__await__"), f"{rule}: its method is a coroutine", work)
    try:
        with guard_exit("The part"):
            return await asyncio.wait_for(work, LONGEST_S)
    except Exception as error:
        raise ContractError(f"{rule}; it raised {type(error).__name__}: {error}") from error


def run_check(check: Awaitable[None]) -> None:
    """Run a check on judgetree's own loop."""

    async def checked() -> None:
        await check

    background_loop().run(checked())


def require(holds: bool, rule: str, given: object) -> None:
    """Raise ContractError, with the rule and what was given, unless it holds."""
    if not holds:
        raise ContractError(f"{rule}; it gave {given!r:.300}")
