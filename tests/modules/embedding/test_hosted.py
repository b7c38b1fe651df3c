"""Embedding endpoints over HTTP: parallel batches, limits, failures, and replies that cannot be."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judgetree.modules.background_loop import background_loop
from judgetree.modules.embedding.embedder import CachedEmbedder, Embedder, create_embeddings
from judgetree.modules.embedding.hosted import EmbeddingEndpoint
from judgetree.modules.embedding.refusals import LearnedWays
from judgetree.modules.errors import LoopReentryError, ModelCallError, ModelRequestError, ModelSetupError, SessionError
from judgetree.modules.index.dense_fields import embed_chunks
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import rates_of, resolve_endpoint
from judgetree.modules.llm.rate_limit import RateLimit
from judgetree.modules.settings import Settings
from judgetree.modules.wanted import in_thread
from tests.loopback import QuietHandler, serving
from tests.modules.model_endpoints import PATIENCE_S, Clock, serve_raw

TEXTS = ["x" * length for length in range(1, 41)]


def reply_to(texts: Sequence[str]) -> dict[str, object]:
    """Vectors that begin with the length of their text, in the order of the texts from behind."""
    data = [{"index": place, "embedding": [float(len(text)), 0.5]} for place, text in enumerate(texts)]
    return {"data": data[::-1], "usage": {"total_tokens": 10 * len(texts)}}


@dataclass
class Hosted:
    """An endpoint and what it has been sent; ``answer`` gives status and body of a request's texts."""

    base_url: str = ""
    answer: Callable[[list[str]], tuple[int, bytes]] = lambda texts: (200, json.dumps(reply_to(texts)).encode())
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)

    def embedder(self, home: Path, *, spec: str = "", cache: bool = False, **settings: object) -> Embedder:
        given = Settings(home=home, **{"retries": 0, **settings})  # type: ignore[arg-type]
        return create_embeddings(spec or f"{self.base_url}#m", given, cache=cache)


@pytest.fixture
def hosted() -> Iterator[Hosted]:
    hosted = Hosted()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            hosted.calls.append(texts)
            status, body = hosted.answer(texts)
            with contextlib.suppress(ConnectionError):  # the client may have had enough
                self.answer(body, status=status, headers=hosted.headers)

    with serving(Handler) as address:
        hosted.base_url = f"{address}/v1"
        yield hosted


def lengths(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [vector[0] for vector in vectors]


@pytest.mark.parametrize("on_own_loop", [True, False])
def test_queries_in_all_threads_of_a_loop_are_answered(hosted: Hosted, tmp_path: Path, on_own_loop: bool) -> None:
    named = hosted.base_url.replace("127.0.0.1", "localhost")
    embedder = hosted.embedder(tmp_path, spec=f"{named}#m")

    async def ask() -> list[list[float]]:
        calls = (asyncio.to_thread(embedder.embed_query, "x" * length) for length in range(1, 201))
        return await asyncio.wait_for(asyncio.gather(*calls), PATIENCE_S)

    vectors = background_loop().run(ask()) if on_own_loop else asyncio.run(ask())
    assert lengths(vectors) == list(range(1, 201))


def test_batches_are_sent_at_once_up_to_the_cap(hosted: Hosted, tmp_path: Path) -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE_S)  # breaks unless three are under way
    running, peak = 0, 0
    lock = threading.Lock()

    def answer(texts: list[str]) -> tuple[int, bytes]:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        meeting.wait()
        with lock:
            running -= 1
        return 200, json.dumps(reply_to(texts)).encode()

    hosted.answer = answer
    texts = ["x" * length for length in range(1, 64 * 5 + 2)]
    assert lengths(hosted.embedder(tmp_path, max_concurrency=3).embed_documents(texts)) == [*map(len, texts)]
    assert (peak, len(hosted.calls)) == (3, 6)


def test_redirect_is_named_and_no_text_is_sent_there(hosted: Hosted, tmp_path: Path) -> None:
    with serve_raw() as elsewhere:
        hosted.answer = lambda texts: (308, b"")
        hosted.headers = {"location": f"{elsewhere.base_url}/embeddings"}
        words = f"m failed in attempt 1 of 3: it redirects to {elsewhere.base_url}/embeddings, where nothing is sent"
        with pytest.raises(ModelSetupError, match=words):
            hosted.embedder(tmp_path, retries=2).embed_query("a")
        assert (elsewhere.bodies, len(hosted.calls)) == ([], 1)


@pytest.mark.parametrize("spec", ["dashscope:m", "{}/dashscope#m"])
def test_dashscope_gets_ten_texts_a_call(hosted: Hosted, tmp_path: Path, spec: str) -> None:
    spec = spec.format(hosted.base_url)
    embedder = hosted.embedder(tmp_path, spec=spec, llm_base_url=hosted.base_url, llm_api_key="k")
    assert lengths(asyncio.run(embedder.aembed_documents(TEXTS))) == [*map(len, TEXTS)]
    assert sorted(map(len, hosted.calls)) == [10] * 4


def test_failure_names_its_texts_and_finished_batches_stay(hosted: Hosted, tmp_path: Path) -> None:
    last_begun = threading.Event()

    def answer(texts: list[str]) -> tuple[int, bytes]:
        if "fail" in texts:
            last_begun.wait(PATIENCE_S)
            return 400, b'{"error": {"message": "too hot"}}'
        if "last" in texts:
            last_begun.set()
        return 200, json.dumps(reply_to(texts)).encode()

    hosted.answer = answer
    texts = [f"{number}" for number in range(100)] + ["fail"] + [f"{number}" for number in range(101, 191)] + ["last"]
    embedder = hosted.embedder(tmp_path, cache=True)
    assert isinstance(embedder, CachedEmbedder)
    with pytest.raises(ModelRequestError, match=r"#m failed on texts 65 to 128 of 192 in attempt 1.*too hot"):
        embedder.embed_documents(texts)
    hosted.calls.clear()
    saved = texts[:64] + texts[128:]
    assert len(embedder.embed_documents(saved)) == 128
    assert hosted.calls == []
    embedder.close()


def test_a_single_text_is_named_as_one(hosted: Hosted, tmp_path: Path) -> None:
    hosted.answer = lambda texts: (
        (400, b'{"error": {"message": "too hot"}}') if "fail" in texts else (200, json.dumps(reply_to(texts)).encode())
    )
    with pytest.raises(ModelRequestError, match=r"#m failed on text 65 of 65 in attempt 1.*too hot"):
        hosted.embedder(tmp_path, cache=True).embed_documents([*map(str, range(64)), "fail"])


def endpoint_at(
    hosted: Hosted, clock: Clock, gate: CallGate | None = None, rates: RateLimit | None = None
) -> EmbeddingEndpoint:
    settings = Settings(home=Path("unused"))
    endpoint = resolve_endpoint(f"{hosted.base_url}#m", settings)
    ways = LearnedWays(model="m", texts_a_call=10)
    return EmbeddingEndpoint(
        endpoint, name="m", gate=gate or CallGate(2), rates=rates or RateLimit(), ways=ways, sleep=clock.sleep
    )


def test_attempts_follow_in_one_place_and_obey_retry_after(hosted: Hosted) -> None:
    failing = iter([429, 503])

    def answer(texts: list[str]) -> tuple[int, bytes]:
        status = next(failing, 200) if TEXTS[0] in texts else 200
        return status, json.dumps(reply_to(texts)).encode()

    hosted.answer, hosted.headers = answer, {"Retry-After": "40"}
    clock = Clock()
    vectors = background_loop().run(endpoint_at(hosted, clock).embed(TEXTS))
    assert lengths(vectors) == [*map(len, TEXTS)]
    assert len(hosted.calls) == 6
    assert sum(40 <= rest <= 50 for rest in clock.slept_s) == 2  # other rests spread those out that were paused


def test_no_request_begins_after_a_failure_where_others_wait_for_a_slot(hosted: Hosted) -> None:
    hosted.answer = lambda texts: (400, b"{}")
    endpoint = endpoint_at(hosted, Clock(), gate := CallGate(2))

    async def embed() -> None:
        with contextlib.suppress(TimeoutError), gate.watched():
            raise TimeoutError  # leaves one slot of two
        await endpoint.embed(TEXTS)

    with pytest.raises(ModelRequestError):
        background_loop().run(embed())
    assert len(hosted.calls) == 1


def test_tokens_are_reserved_and_corrected(hosted: Hosted) -> None:
    rates = RateLimit(tokens_per_minute=100_000)
    background_loop().run(endpoint_at(hosted, Clock(), rates=rates).embed(TEXTS))
    assert rates._tokens is not None
    assert rates._tokens._used == 10 * len(TEXTS)


class Counted:
    """Rate limits of several processes, which count."""

    def __init__(self) -> None:
        self.admitted: list[str] = []
        self.corrected: list[int] = []

    async def admit(self, endpoint: str, tokens: int) -> int:
        self.admitted.append(endpoint)
        return len(self.admitted)

    async def correct(self, number: int, tokens: int) -> None:
        self.corrected.append(tokens)

    async def pause(self, endpoint: str, for_s: float, spread_s: float) -> None:
        """Not asked: no endpoint of these tests asks for a pause."""


def test_limits_of_several_processes_are_asked(hosted: Hosted, tmp_path: Path) -> None:
    settings, shared = Settings(home=tmp_path, tokens_per_minute=5000), Counted()
    embedder = create_embeddings(f"{hosted.base_url}#m", settings, cache=False, admissions=shared)
    embedder.embed_documents(["a"] * 100)
    assert shared.admitted == [f"{hosted.base_url.removeprefix('http://')} m"] * 2
    assert sorted(shared.corrected) == [360, 640]


def test_chat_and_embeddings_of_one_model_share_their_limits(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, requests_per_minute=60)
    one, again, other = (resolve_endpoint(f"http://127.0.0.1:9/v1#{model}", settings) for model in ("m", "m", "n"))
    assert rates_of(one, settings) is rates_of(again, settings) is not rates_of(other, settings)


def changed(**changes: object) -> bytes:
    return json.dumps(
        {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [3, 4], **changes}]}
    ).encode()


BAD = {
    "NaN": (changed(embedding=[1.0, float("nan")]), "finite number"),
    "infinite": (changed(embedding=[1.0, float("-inf")]), "finite number"),
    "too large a number": (changed().replace(b"3,", b"1e999,"), "finite number"),
    "beyond float32": (changed(embedding=[1.0, 1e39]), "less than or equal"),
    "words": (changed(embedding=["1.0", "2.0"]), "valid number"),
    "packed numbers": (changed(embedding="AACAPwAAAEA="), "valid array"),
    "empty": (changed(embedding=[]), "at least 1 item"),
    "unequal": (changed(embedding=[1.0]), "different lengths: 1, 2"),
    "one index twice": (changed(index=0), "indexes"),
    "too few": (b'{"data": []}', "0 vectors came back for 2 texts"),
    "no list": (b'{"data": null}', "no list of embeddings"),
    "no JSON": (b"<html>", "no list of embeddings"),
    "nested": (b'{"data":' + b"[" * 50_000, "no list of embeddings"),
    "long": (b" " * 3_000_000, "longer than 2,099,152 bytes, which 2 vectors of length 32,768 need"),
}


@pytest.mark.parametrize(("body", "what"), BAD.values(), ids=BAD)
def test_reply_that_cannot_be_is_refused(hosted: Hosted, tmp_path: Path, body: bytes, what: str) -> None:
    hosted.answer = lambda _: (200, body)
    with pytest.raises(ModelCallError, match=what):
        hosted.embedder(tmp_path).embed_documents(["a", "b"])


def test_packed_reply_is_not_unpacked(hosted: Hosted, tmp_path: Path) -> None:
    hosted.headers = {"Content-Encoding": "gzip"}
    hosted.answer = lambda texts: (200, gzip.compress(json.dumps(reply_to(texts)).encode()))
    with pytest.raises(ModelCallError, match=r"packed \(gzip\)"):
        hosted.embedder(tmp_path, retries=3).embed_query("a")
    assert len(hosted.calls) == 1


def test_later_reply_has_the_length_of_the_first(hosted: Hosted, tmp_path: Path) -> None:
    embedder = hosted.embedder(tmp_path)
    embedder.embed_query("a")
    hosted.answer = lambda _: (200, b'{"data": [{"embedding": [1, 2, 3]}]}')
    with pytest.raises(ModelCallError, match="length 3, those before had 2"):
        embedder.embed_query("a")


def test_caller_that_gives_up_waits_for_no_reply(hosted: Hosted, tmp_path: Path) -> None:
    begun, over = threading.Event(), threading.Event()

    def answer(texts: list[str]) -> tuple[int, bytes]:
        begun.set()
        over.wait(PATIENCE_S)
        return 200, json.dumps(reply_to(texts)).encode()

    async def give_up() -> None:
        task = asyncio.create_task(hosted.embedder(tmp_path).aembed_documents(["a"] * 1000))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S / 2)

    hosted.answer = answer
    try:
        asyncio.run(give_up())
    finally:
        over.set()


def test_blocking_call_on_our_own_loop_says_what_to_do(hosted: Hosted, tmp_path: Path) -> None:
    async def block() -> None:
        hosted.embedder(tmp_path).embed_query("a")

    with pytest.raises(LoopReentryError, match="async twin"):
        background_loop().run(block())


def test_progress_counts_texts_as_they_are_done(hosted: Hosted, tmp_path: Path) -> None:
    seen: list[int] = []
    embedder = hosted.embedder(tmp_path, cache=True)
    texts = {str(number): text for number, text in enumerate(TEXTS * 4)}
    both = {"dense": embedder, "other": embedder}
    found = dict(embed_chunks(both, texts, {}, lambda done, *_: seen.append(done)))
    assert {chunk: vectors["dense"][0] for chunk, vectors in found.items()} == {
        chunk: len(text) for chunk, text in texts.items()
    }
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 160)


@pytest.mark.parametrize(
    "told",
    [
        {"error": {"code": "content_filter", "message": "A text was filtered."}},
        {"code": "DataInspectionFailed", "message": "Input data may hold what is unfit."},
        {"error": "The input violates our content policy."},
    ],
)
def test_a_filter_that_is_told_in_a_reply_is_final(hosted: Hosted, tmp_path: Path, told: dict[str, object]) -> None:
    """It was tried again like a reply that is none, and its words were not shown."""
    hosted.answer = lambda texts: (200, json.dumps(told).encode())
    with pytest.raises(ModelRequestError, match=r"(filtered|unfit|content policy).*ask in other words"):
        hosted.embedder(tmp_path, retries=2).embed_documents(["one"])
    assert len(hosted.calls) == 1


def test_a_search_that_was_given_up_embeds_no_more(hosted: Hosted, tmp_path: Path) -> None:
    came, ended = threading.Event(), threading.Event()

    def answer(texts: list[str]) -> tuple[int, bytes]:
        came.set()
        return 503, b"{}"

    hosted.answer = answer
    embedder = hosted.embedder(tmp_path, retries=5)

    def search() -> None:
        try:
            embedder.embed_query("a")
        except SessionError:
            ended.set()

    async def give_up() -> None:
        searching = asyncio.create_task(in_thread(search))
        await asyncio.to_thread(came.wait, PATIENCE_S)
        searching.cancel()
        await asyncio.wait([searching])

    asyncio.run(give_up())
    assert ended.wait(PATIENCE_S)
    assert len(hosted.calls) == 1
