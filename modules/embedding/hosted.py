"""Calls of embedding endpoints: parallel batches within cap and rate limits, retries, and checked replies."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice

import httpx2
import openai
from openai._base_client import get_platform

from ..background_loop import background_loop
from ..calls.completion import PackedReply, ReplyTooLong, cap_reply
from ..calls.tokens import text_tokens
from ..errors import ModelCallError
from ..llm.attempts import Attempts, PageReply, check_no_page, endpoint_failure, redacted_line, retry_after_s, spread_s
from ..llm.call_gate import CallGate
from ..llm.factory import Endpoint, gate_at, rates_of
from ..llm.openai_client import CONNECTING_S, UNREAD, http_client_on
from ..llm.rate_limit import Admissions, RateLimit
from ..llm.wire.refusals import noting_refusals
from ..network.long_waits import LONG_WAITS
from ..settings import Settings
from ..wanted import check_wanted
from .refusals import LearnedWays, described, fewer_texts, is_text_too_long, pieces_of, refuses_format, ways_at
from .replies import MAX_DIMENSION, EmbeddingsReply, parse_reply

logger = logging.getLogger(__name__)

TEXTS_A_CALL = 64
DASHSCOPE_TEXTS_A_CALL = 10
"""Most texts that DashScope accepts in one call."""
_BYTES_A_NUMBER = 32
"""A double takes at most 25 bytes in JSON, with its comma; the rest is for spaces."""
_BYTES_A_TEXT = 1_000
"""Bytes that a reply may take for each vector besides its numbers."""
_TOO_MANY_REQUESTS = 429
_BACKOFF_S = 0.5
"""Mean seconds before the second attempt; doubled with each further one. Retry-After overrides it."""

Vectors = dict[int, list[float]]
"""Vectors by the position of their texts."""


@dataclass(kw_only=True)
class _Batch:
    """The texts of one call."""

    start: int
    texts: Sequence[str]
    of: int
    """Number of all texts."""
    is_sending: bool = False
    """True while a request is under way."""
    names_format: bool = True
    """Whether the newest request names ``encoding_format``."""
    is_last_attempt: bool = False
    """True once another batch has failed, so that this one makes no further attempt."""

    @property
    def in_words(self) -> str:
        """Which texts these are, for messages; ``""`` if they are all."""
        first, last = self.start + 1, self.start + len(self.texts)
        which = f"text {first:,}" if first == last else f"texts {first:,} to {last:,}"
        return f" on {which} of {self.of:,}" if len(self.texts) < self.of else ""


class _TooMuch(Exception):
    """A request was refused for its size; what it holds goes in requests of at most ``size`` texts."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


_CLIENT_ERRORS = (openai.OpenAIError, httpx2.HTTPError, TimeoutError, ValueError, PageReply)


class EmbeddingEndpoint:
    """A model behind an OpenAI-compatible endpoint, called on judgetree's own loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        name: str,
        gate: CallGate,
        rates: RateLimit,
        ways: LearnedWays | None = None,
        retries: int = 3,
        timeout_s: float = 600.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Open a client without retries of its own; nothing is sent.

        Args:
            endpoint: Address, model and key.
            name: The model in messages.
            gate: Cap on simultaneous calls; none counts that waits for its rate or for its next attempt.
            rates: The endpoint's limits a minute.
            ways: How it is asked, by what it has refused; None for nothing yet.
            retries: Further attempts of each request after a failed one.
            timeout_s: Seconds that an attempt may take to the end of its reply.
            sleep: Waits the given seconds.
        """
        address = endpoint.base_url
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=str(address) if address else None,
            default_headers=address.headers() if address else None,
            default_query=dict(address.query_params()) if address else None,
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECTING_S)),
            max_retries=0,
            http_client=http_client_on(background_loop()),
        )
        # The first request would find it in the loop's default threads, which may all wait for this request.
        self._client._platform = get_platform()
        self._model = endpoint.model
        self._name = name
        self._gate = gate
        self._rates = rates
        self._ways = ways or LearnedWays(model=f"The embedding model {name}", texts_a_call=TEXTS_A_CALL)
        self._attempts = retries + 1
        self._timeout_s = timeout_s
        self._secrets = endpoint.secrets()
        self._sleep = sleep
        self._dimension = 0  # until the first reply

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in their order, see ``batches``."""
        vectors: Vectors = {}
        async for batch in self.batches(texts):
            vectors |= batch
        return [vectors[position] for position in range(len(texts))]

    async def batches(self, texts: Sequence[str]) -> AsyncIterator[Vectors]:
        """Yield the vectors of each request once it is done, in any order.

        As many requests as the gate allows are under way or wait for it, so that another caller waits for no more.
        After a failure no request starts; those under way are yielded before it is raised.

        Raises:
            ModelCallError: A request failed after its last attempt, or its reply is malformed.
            ModelSetupError: The endpoint can serve no request: key, account, model or address are wrong.
            ModelRequestError: The endpoint refused the texts for good.
        """
        waiting = self._batches_of(texts)
        running: dict[asyncio.Task[Vectors], _Batch] = {}
        failure: BaseException | None = None
        try:
            while True:
                for batch in islice(waiting, 0 if failure else self._gate.max_concurrency - len(running)):
                    running[asyncio.create_task(self._embed(batch, running))] = batch
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del running[task]
                    if task.cancelled():
                        continue
                    if (error := task.exception()) is None:
                        yield task.result()
                    else:
                        failure = failure or error
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        if failure is not None:
            raise failure

    def _batches_of(self, texts: Sequence[str]) -> Iterator[_Batch]:
        start = 0
        while start < len(texts):
            end = start + self._ways.texts_a_call  # it may become less meanwhile
            yield _Batch(start=start, texts=texts[start:end], of=len(texts))
            start = end

    async def _embed(self, batch: _Batch, running: Mapping[asyncio.Task[Vectors], _Batch]) -> Vectors:
        try:
            return await self._attempted(batch)
        except Exception:
            _wind_down(running)  # now: before the failure is seen, the slot that came free would be used
            raise

    async def _attempted(self, batch: _Batch) -> Vectors:
        """Return the vectors of a batch, in smaller requests where the endpoint refuses so many texts at once."""
        vectors: Vectors = {}
        waiting = deque([(batch.start, batch.texts)])
        while waiting:
            batch.start, batch.texts = waiting.popleft()
            if len(batch.texts) > self._ways.texts_a_call:  # others have learned it meanwhile
                waiting.extendleft(reversed(pieces_of(batch.start, batch.texts, self._ways.texts_a_call)))
                continue
            try:
                vectors |= await self._sent(batch)
            except _TooMuch as refused:
                waiting.extendleft(reversed(pieces_of(batch.start, batch.texts, refused.size)))
        return vectors

    async def _sent(self, batch: _Batch) -> Vectors:
        tokens = sum(map(text_tokens, batch.texts)) if self._rates.counts_tokens else 0
        attempts = Attempts(self._attempts, backoff_s=_BACKOFF_S)
        while True:
            try:
                async with self._rates.admitted(self._gate, tokens) as correct:
                    batch.is_sending = True
                    batch.names_format = self._ways.names_format
                    async with asyncio.timeout(self._timeout_s):
                        reply = parse_reply(await self._post(batch))
                    if reply.total_tokens is not None:
                        correct(reply.total_tokens)
                return dict(enumerate(self._checked(reply, len(batch.texts)), batch.start))
            except _CLIENT_ERRORS as error:
                batch.is_sending = False
                if self._is_adapted(error, batch):
                    continue
                if (failure := await self._back_off(error, attempts, batch)) is not None:
                    raise failure from error

    async def _post(self, batch: _Batch) -> bytes:
        texts = batch.texts
        body = {"model": self._model, "input": list(texts)}
        body |= {"encoding_format": "float"} if batch.names_format else {}
        with noting_refusals(body):
            opened = await self._client.post("/embeddings", body=body, **UNREAD)
        async with opened as stream:
            a_text = _BYTES_A_TEXT + _BYTES_A_NUMBER * (self._dimension or MAX_DIMENSION)
            limit = len(texts) * a_text
            cap_reply(stream.response, limit=limit, max_bytes=limit)
            try:
                whole: bytes = await stream.response.aread()
                check_no_page(stream.response, whole, no="list of embeddings")
                return whole
            except ReplyTooLong:
                longest = self._dimension or MAX_DIMENSION
                raise ReplyTooLong(limit, end=f", which {len(texts)} vectors of length {longest:,} need") from None

    def _is_adapted(self, error: Exception, batch: _Batch) -> bool:
        """Return whether the batch is sent again in another form after a refusal.

        Raises:
            _TooMuch: In smaller requests.
        """
        if batch.names_format and refuses_format(error, batch.texts):
            self._ways.leave_out_format()
            return True
        count = len(batch.texts)
        is_long = is_text_too_long(error, batch.texts)
        if not is_long and (size := fewer_texts(error, batch.texts)):
            self._ways.take_fewer(size)
            raise _TooMuch(size)
        if is_long and count > 1:  # one of them, or all together
            raise _TooMuch(count // 2)
        return False

    def _checked(self, reply: EmbeddingsReply, count: int) -> list[list[float]]:
        vectors = reply.vectors(count)
        self._dimension = self._dimension or len(vectors[0])
        if len(vectors[0]) != self._dimension:
            raise ValueError(f"its vectors have length {len(vectors[0])}, those before had {self._dimension}")
        return vectors

    async def _back_off(self, error: Exception, attempts: Attempts, batch: _Batch) -> ModelCallError | None:
        """Wait before the next attempt; return the error to raise if there is none."""
        found, asked_s = endpoint_failure(error), retry_after_s(error)
        is_final = found.is_final or batch.is_last_attempt or isinstance(error, PackedReply | ReplyTooLong)
        wait_s = attempts.wait_s(replace(found, is_final=is_final), asked_s=asked_s)
        said = found.what or redacted_line(error, self._secrets)
        if not found.what and isinstance(error, TimeoutError | openai.APITimeoutError):
            said = f"no whole reply came within {self._timeout_s:g} s. To allow more: JUDGETREE_TIMEOUT_S"
        to_do = found.to_do
        if len(batch.texts) == 1 and is_text_too_long(error, batch.texts):
            which = described(batch.texts[0], batch.start, batch.of)
            to_do = (
                f". The model takes no such long text: {which}. To do: index in smaller chunks, or take another model."
            )
        when = f"in {attempts.in_words}{found.in_status(said)}"
        what = f"The embedding model {self._name} failed{batch.in_words} {when}: {said}{to_do}"
        failure = found.error_class(what, status=found.status)
        if wait_s is None:
            return failure
        logger.info("%s; the next attempt follows in %.1f s", failure, wait_s)
        if failure.status == _TOO_MANY_REQUESTS:
            self._rates.tell_of_wait(f"The embedding model {self._name}", wait_s)
        # A wait that the endpoint asks of one call holds for all calls.
        with self._rates.paused(for_s=wait_s, spread_s=spread_s(asked_s)) if asked_s else nullcontext():
            async with LONG_WAITS.one() if failure.status == _TOO_MANY_REQUESTS or asked_s else nullcontext():
                await self._sleep(wait_s)
        check_wanted()
        return None


def open_embedding_endpoint(
    endpoint: Endpoint, settings: Settings, *, name: str, texts_a_call: int, admissions: Admissions | None = None
) -> EmbeddingEndpoint:
    """Return the endpoint with the limits of the settings, shared by all embedders of its model in the process.

    Args:
        endpoint: Address, model and key.
        settings: Give cap, rates, retries and time-out.
        name: The model in messages.
        texts_a_call: Most texts in one request.
        admissions: Rate limits that other processes share; None for those of this process.
    """
    return EmbeddingEndpoint(
        endpoint,
        name=name,
        gate=gate_at(background_loop(), endpoint.base_url, endpoint.model, settings.max_concurrency),
        rates=rates_of(endpoint, settings, admissions),
        ways=ways_at(background_loop(), endpoint.base_url, endpoint.model, name, texts_a_call),
        retries=settings.retries,
        timeout_s=settings.timeout_s,
    )


def _wind_down(running: Mapping[asyncio.Task[Vectors], _Batch]) -> None:
    for task, batch in running.items():
        batch.is_last_attempt = True
        if not batch.is_sending and task is not asyncio.current_task():
            task.cancel()
