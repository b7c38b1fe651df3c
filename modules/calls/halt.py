"""A stop from outside that ends the search of a tree, and not its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..errors import BudgetSpent

if TYPE_CHECKING:
    from .ledger import Ledger


class Halt:
    """Ends the searches that it was given to, as the end of their time does; used on one event loop."""

    def __init__(self) -> None:
        self.is_set = False
        self._scopes: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Cancel the judges, searches, tools and sub-runs of the searches; their roots answer from what was found."""
        self.is_set = True
        for scope in self._scopes:
            if not scope.expired():
                scope.reschedule(asyncio.get_running_loop().time())

    def check(self) -> None:
        """Check that the search was not stopped.

        Raises:
            BudgetSpent: It was stopped.
        """
        if self.is_set:
            raise BudgetSpent("The search was stopped.", limit="stopped")

    @asynccontextmanager
    async def in_time(self, ledger: Ledger | None) -> AsyncIterator[None]:
        """Cancel what is inside once the search is stopped, or once the time of the ledger is over.

        Raises:
            BudgetSpent: One of both.
        """
        self.check()
        try:
            async with asyncio.timeout(None) as scope:
                self._scopes.add(scope)
                try:
                    if ledger is None:
                        yield
                    else:
                        async with ledger.in_time():
                            yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            self.check()
