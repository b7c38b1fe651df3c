"""A scripted model endpoint over real HTTP on the loopback interface.

It replaces a language model, an embedding model and a rerank model in the demo, the notebooks and the tests::

    with ScriptedServer("data/standards_qa.jsonl") as server:
        ...  # point a client at server.base_url

As a process it prints one line ``{"base_url": …, "pid": …}`` once it listens, and knows the dialogues beside the
questions too::

    python -m judgetree.app.scripted.server --questions data/standards_qa.jsonl --latency 0.2 --fault 429:0.1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from ...evaluation.datasets.standards_dialogues import Dialogue, load_dialogues
from ...evaluation.datasets.standards_qa import Question, load_standards_qa
from ...modules.background.waiting import next_item
from ...modules.errors import SettingsError, UserError
from ...modules.prompts.reading import GivenPrompts, load_prompts
from .answers import RequestKind
from .behaviour import FAULTS, Behaviour, changed, parse_fault
from .endpoints import Endpoints, Responses
from .http import HOST, Listener
from .tally import LoggedRequest
from .wire import JsonObject

_START_TIMEOUT_S = 30.0


class ScriptedServer:
    """The scripted model server in a thread of this process; a context manager.

    Args:
        questions: The known questions, or their file; without any it judges every passage 0 and refuses every question.
        dialogues: The known dialogues, with their stand-alone questions.
        behaviour: Latency, refused features and faults; none by default.
        responses: Hook for chat requests, called in a thread of its own; it returns the reply, or None to leave the
            request to the script. Faults apply to its replies too.
        port: Port to listen on; 0 takes any free port.
        prompts: Prompts of one's own that are recognised beside judgetree's.
    """

    def __init__(
        self,
        questions: Iterable[Question] | Path | str = (),
        *,
        dialogues: Sequence[Dialogue] = (),
        behaviour: Behaviour | None = None,
        responses: Responses | None = None,
        port: int = 0,
        prompts: GivenPrompts = None,
    ) -> None:
        own = load_prompts(prompts)
        if isinstance(questions, Path | str):
            questions = load_standards_qa(questions)
        self._endpoints = Endpoints(
            questions, dialogues=dialogues, behaviour=behaviour, responses=responses, prompts=own
        )
        self._wanted_port = port
        self._port: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start to listen and return the server. A server can be started once.

        Raises:
            SettingsError: The port is taken or not allowed.
        """
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), name="scripted-server", daemon=True)
        self._thread.start()
        self._port.result(_START_TIMEOUT_S)
        return self

    def stop(self) -> None:
        """Close every connection and end the thread; active requests break off. Idempotent."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        listener = Listener(self._endpoints)
        try:
            server = await listener.listen(self._wanted_port)
        except SettingsError as problem:
            self._port.set_exception(problem)
            return
        self._port.set_result(server.sockets[0].getsockname()[1])
        await self._stopping.wait()
        await listener.close(server)

    @property
    def root_url(self) -> str:
        """Address without a path; DashScope's clients take ``root_url + "/api/v1"``."""
        return f"http://{HOST}:{self._port.result(0)}"

    @property
    def base_url(self) -> str:
        """Address for OpenAI clients, with ``/v1``."""
        return f"{self.root_url}/v1"

    @property
    def requests(self) -> Counter[RequestKind]:
        """Copy of the number of model requests by kind; 0 for kinds that never came."""
        return self._endpoints.tally.requests()

    @property
    def log(self) -> tuple[LoggedRequest, ...]:
        """Model requests in the order in which their answers were computed."""
        return self._endpoints.tally.log()

    @property
    def peak_active(self) -> int:
        """Largest number of model requests active at once."""
        return self._endpoints.tally.peak_active()

    @property
    def responses(self) -> Responses | None:
        """The hook for chat requests; may be set at any time."""
        return self._endpoints.responses

    @responses.setter
    def responses(self, hook: Responses | None) -> None:
        self._endpoints.responses = hook

    def stats(self) -> JsonObject:
        """Return counters and behaviour like ``GET /_stats``."""
        return self._endpoints.stats()

    def configure(self, **changes: object) -> None:
        """Replace fields of the ``Behaviour`` for later requests.

        Raises:
            SettingsError: A field is unknown or its value not allowed.
        """
        self._endpoints.configure(changes)

    def reset(self) -> None:
        """Clear counters, log and attempts."""
        self._endpoints.tally.reset()

    def wait_for_active(self, at_least: int, timeout_s: float = 30.0) -> bool:
        """Block until that many model requests are active at once; False after ``timeout_s``."""
        return self._endpoints.tally.wait_until(lambda active: active >= at_least, timeout_s)

    def wait_until_idle(self, timeout_s: float = 30.0) -> bool:
        """Block until no model request is active; False after ``timeout_s``."""
        return self._endpoints.tally.wait_until(lambda active: not active, timeout_s)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m judgetree.app.scripted.server",
        description="A model endpoint that answers from a question file, on the loopback interface.",
    )
    parser.add_argument("--questions", metavar="FILE", help="JSON Lines file in the format of standards_qa.jsonl")
    parser.add_argument(
        "--dialogues",
        metavar="FILE",
        help="same for conversations; default: standards_dialogues.jsonl beside it, if any",
    )
    parser.add_argument("--prompts", metavar="FILE", help="YAML file of prompts of your own to recognise too")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes any (default)")
    parser.add_argument("--latency", metavar="S", default="0", help="seconds before each answer")
    parser.add_argument(
        "--fault",
        metavar="KIND:RATE",
        action="append",
        default=[],
        help=f"share of requests that meet a fault; repeatable. Kinds: {', '.join(FAULTS)}",
    )
    parser.add_argument("--seed", default="0", help="seed of the faults")
    parser.add_argument("--knows-by-heart", action="store_true", help="answer closed-book questions too")
    return parser


def find_dialogues(path: Path | str | None = None, *, beside: Path | str | None = None) -> Sequence[Dialogue]:
    """Load the dialogues of a file, by default ``standards_dialogues.jsonl`` beside a question file, if any.

    Raises:
        LoadingError: The file cannot be read, or rows are malformed.
    """
    if path is None and beside is not None:
        neighbour = Path(beside).with_name("standards_dialogues.jsonl")
        path = neighbour if neighbour.exists() else None
    return load_dialogues(path) if path else ()


def _catch_signals() -> SimpleQueue[int]:
    """Return a queue that receives the exit status at SIGINT or SIGTERM."""
    ended: SimpleQueue[int] = SimpleQueue()  # its ``put`` may be called in a signal handler
    signal.signal(signal.SIGINT, lambda *_: ended.put(130))
    signal.signal(signal.SIGTERM, lambda *_: ended.put(0))
    return ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server as a process until SIGINT (exit status 130) or SIGTERM (0); 2 for a user error."""
    given = _parser().parse_args(arguments)
    changes: dict[str, object] = {
        "latency_s": given.latency,
        "faults": dict(parse_fault(text) for text in given.fault),
        "seed": given.seed,
        "knows_by_heart": given.knows_by_heart,
    }
    try:
        behaviour = changed(Behaviour(), changes)
        questions = load_standards_qa(given.questions) if given.questions else []
        dialogues = find_dialogues(given.dialogues, beside=given.questions)
        with ScriptedServer(
            questions, dialogues=dialogues, behaviour=behaviour, port=given.port, prompts=given.prompts
        ) as server:
            ended = _catch_signals()
            print(json.dumps({"base_url": server.base_url, "pid": os.getpid()}), flush=True)
            return next_item(ended)
    except UserError as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
