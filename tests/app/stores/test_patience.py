"""Stores that hang: each caller waits so long and no longer, and no thread is wasted on a store known to hang."""

from __future__ import annotations

import asyncio
import threading

import pytest

from judgetree.app.stores.patience import Patience
from judgetree.modules.errors import StoreFailure


def test_calls_of_a_store_that_hangs_fail_and_no_more_are_made_until_it_answers() -> None:
    over, made = threading.Event(), []
    patience = Patience(0.05, lambda limit_s: StoreFailure(f"{limit_s:g} s"))

    def hang(number: int) -> int:
        made.append(number)
        over.wait()
        return number

    async def calls() -> int:
        for number in range(10):
            with pytest.raises(StoreFailure, match=r"0.05 s"):
                await patience.call(hang, number)
        over.set()
        while True:
            try:
                return await patience.call(hang, 10)
            except StoreFailure:
                await asyncio.sleep(0)

    assert asyncio.run(calls()) == 10
    assert made == [0, 10]


def test_the_error_of_a_call_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Patience(60, lambda _: StoreFailure("late")).call(lambda: 1 / 0))
