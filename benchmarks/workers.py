"""Processes of ``judgetree serve`` over one PostgreSQL and one Milvus server, and their clients."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from judgetree.app.scripted.endpoints import Responses
from judgetree.app.scripted.server import ScriptedServer
from tests.database_servers import milvus_lite_server, postgres_server

from .corpus import COLLECTION, indexed_standards, questions, settings_for

CALLS_AT_ONCE = 1000
"""Model calls of a worker: open streams wait for a model too, and must not keep others from it."""
_STARTING_S = 60.0
_PORTS = range(20_000, 30_000)
"""Below those of outgoing connections, one of which could take the port of a worker that is started again."""
_REQUESTS_PER_MINUTE = 1_000_000
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(kw_only=True)
class Worker:
    """A server process."""

    port: int
    environment: Mapping[str, str]
    folder: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; it listens afterwards."""
        command = [sys.executable, "-m", "judgetree.app", "serve", "--port", str(self.port), "-c", COLLECTION]
        command += ["--max-runs", str(CALLS_AT_ONCE), "--requests-per-minute", str(_REQUESTS_PER_MINUTE)]
        environment = dict(self.environment)
        log_file = self.folder / f"worker-{self.port}.log"
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, cwd=self.folder, stderr=log, stdout=log)
        until = time.monotonic() + _STARTING_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                httpx.get(f"{self.url}/v1/models", timeout=30).raise_for_status()
                return
            except httpx.TransportError:
                time.sleep(0.1)
        said = log_file.read_text()[-2_000:]
        raise RuntimeError(f"the worker at {self.url} does not listen, status {self._process.poll()}: {said}")

    def kill(self) -> None:
        """End it without a farewell (-9)."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it as a deployment does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=60)

    @property
    def cpu_s(self) -> float:
        """Seconds of CPU so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass(frozen=True, kw_only=True)
class Site:
    """Workers that behave as one server, and what they stand on."""

    workers: tuple[Worker, ...]
    model: ScriptedServer
    folder: Path
    settings: Mapping[str, str]
    """Settings of the workers, as in the environment."""


@contextmanager
def site(*, workers: int, latency_s: float, responses: Responses | None = None) -> Iterator[Site]:
    """Run workers over PostgreSQL and ``milvus-lite server`` while the context is open."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jt")))
        model = stack.enter_context(ScriptedServer(questions(), responses=responses))
        milvus = stack.enter_context(milvus_lite_server(folder / "milvus"))
        postgres = stack.enter_context(postgres_server())
        with indexed_standards(settings_for(folder, model.base_url, milvus_uri=milvus.uri)):
            pass
        model.configure(latency_s=latency_s)
        chosen = {
            "JUDGETREE_LLM": f"{model.base_url}#scripted",
            "JUDGETREE_HOME": str(folder),
            "JUDGETREE_MILVUS_URI": milvus.uri,
            "JUDGETREE_CHECKPOINTS": postgres,
            "JUDGETREE_MAX_CONCURRENCY": str(CALLS_AT_ONCE),
        }
        environment = {**os.environ, **chosen}
        started = tuple(Worker(port=free_port(), environment=environment, folder=folder) for _ in range(workers))
        for worker in started:
            worker.start()
            stack.callback(worker.stop)
        yield Site(workers=started, model=model, folder=folder, settings=chosen)


def free_port() -> int:
    """Return a free port that no outgoing connection will take."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port from {_PORTS.start} to {_PORTS.stop} is free")


def body_of(question: str, **more: object) -> dict[str, object]:
    """Return the body of a streamed chat completion."""
    model = f"{COLLECTION}/judge"
    return {"model": model, "messages": [{"role": "user", "content": question}], "stream": True} | more


async def chunks_of(answer: httpx.Response) -> AsyncIterator[dict[str, object]]:
    """Yield the chunks of a stream as they come, without heartbeats and the end mark."""
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def text_of(chunk: Mapping[str, object]) -> str:
    """Return the answer text of a chunk; ``""`` without any."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or not choices:
        return ""
    return str(choices[0]["delta"].get("content") or "")
