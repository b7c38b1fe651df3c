"""Calls through a fixed and an adaptive gate to three endpoints on loopback, of 0.5 s latency.

One takes any number at once; one refuses more than 24 at once with HTTP 429 and no Retry-After; one serves 32 at once
and lets the others wait. At 0.2 s, 64 calls at once would need more than a core for the client and its endpoint.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.openai_client import open_chat

from .measurement import Row

CALLERS = 128
CASE_S = 20.0
LATENCY_S = 0.5
CAP = 64
_CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}
_REPLY = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [_CHOICE]})
_REFUSAL = json.dumps({"error": {"message": "too many at once"}})


class FixedGate(CallGate):
    """As many calls at once as the cap, whatever comes back."""

    def _here(self):  # type: ignore[no-untyped-def]
        slots = super()._here()
        slots.limit.limit = self.max_concurrency
        return slots


@dataclass
class Endpoint:
    """An endpoint that answers each call after ``LATENCY_S``."""

    refuses_above: int = 10**6
    serves: int = 10**6
    running: int = 0
    most: int = 0
    """Most calls that ran or waited at once."""
    refused: int = 0
    answered: int = 0

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Yield the base URL, served on the running loop; connections are closed at the end."""
        self._places = asyncio.Semaphore(self.serves)
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=512)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith(b"content-length:")))
                status, body = await self._reply()
                headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
                writer.write(f"HTTP/1.1 {status} X\r\n{headers}\r\n\r\n{body}".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self) -> tuple[int, str]:
        if self.running >= self.refuses_above:
            self.refused += 1
            return 429, _REFUSAL
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            async with self._places:
                await asyncio.sleep(LATENCY_S)
        finally:
            self.running -= 1
        self.answered += 1
        return 200, _REPLY


def measure() -> list[Row]:
    """Make the same calls at each endpoint by fixed gates and an adaptive one."""
    kinds = (
        ("any number at once", {}, (8, 16, 64)),
        ("429 beyond 24 at once", {"refuses_above": 24}, (8, 24, 64)),
        ("32 at once, others wait", {"serves": 32}, (8, 32, 64)),
    )
    return [row for what, options, fixed in kinds for row in _rows(what, options, fixed)]


def _rows(what: str, options: dict[str, int], fixed: tuple[int, ...]) -> Iterator[Row]:
    for cap in (*fixed, 0):
        endpoint = Endpoint(**options)
        gate = FixedGate(cap) if cap else CallGate(CAP)
        rate, found, limit = background_loop().run(_ask(endpoint, gate))
        adapted = "" if cap else f"; at most {endpoint.most} at once, limit {limit} at the end"
        yield Row(
            f"{what}: {f'fixed {cap}' if cap else f'adaptive, cap {CAP}'}",
            f"{rate:.0f} calls a second",
            values=(rate,),
            unit="calls a second",
            note=f"{found}, {endpoint.refused} refused of {endpoint.refused + endpoint.answered}{adapted}",
        )


async def _ask(endpoint: Endpoint, gate: CallGate) -> tuple[float, str, int]:
    """Call for ``CASE_S`` seconds; return calls a second, what else was measured, and the last limit."""
    async with endpoint.served() as base_url:
        llm = EndpointLLM(open_chat("m", base_url=base_url, api_key="none", timeout_s=60.0), gate=gate, retries=3)
        await llm.complete([("user", "warm up")], meter=CallMeter(node="generate"))
        started_s = time.monotonic()
        lasted_s: list[float] = []
        halves = [0, 0]

        async def call_on() -> None:
            while time.monotonic() < started_s + CASE_S:
                meter = CallMeter(node="generate")
                await llm.complete([("user", "six by nine")], meter=meter)
                ended_s = time.monotonic() - started_s
                if ended_s < CASE_S:
                    halves[int(ended_s * 2 / CASE_S)] += 1
                    lasted_s.append(meter.records[0]["seconds"])

        await asyncio.gather(*(call_on() for _ in range(CALLERS)))
    found = f"{halves[1] * 2 / CASE_S:.0f} in the second half, median {statistics.median(lasted_s):.2f} s"
    return sum(halves) / CASE_S, found, gate.limit
