"""The cap on simultaneous calls: of each event loop by itself, also of two that begin at the same moment."""

from __future__ import annotations

import asyncio
import threading

from judgetree.modules.llm.call_gate import CallGate

WAIT_S = 0.3


class HeldLoop(asyncio.SelectorEventLoop):
    """A loop that stops whoever looks whether it is closed, until another loop has its slot."""

    looked = threading.Event()
    other_has_its_slot = threading.Event()

    def is_closed(self) -> bool:
        if threading.current_thread().name == "second":
            self.looked.set()
            self.other_has_its_slot.wait(WAIT_S)
        return super().is_closed()


def test_two_loops_that_begin_at_the_same_moment_keep_their_slots() -> None:
    gate, first = CallGate(1), HeldLoop()
    first.run_until_complete(gate.acquire())

    def second() -> None:
        asyncio.run(gate.acquire())

    async def third() -> bool:
        await gate.acquire()
        HeldLoop.other_has_its_slot.set()
        await asyncio.to_thread(thread.join)
        try:
            await asyncio.wait_for(gate.acquire(), timeout=0.05)
        except TimeoutError:
            return True
        return False

    thread = threading.Thread(target=second, name="second")
    thread.start()
    assert HeldLoop.looked.wait(10)
    try:
        assert asyncio.run(third()), "a second call got a slot of a gate that has one"
    finally:
        first.close()
