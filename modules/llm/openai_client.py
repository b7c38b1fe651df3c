"""The HTTP client of chat models: one connection pool a process, plain data both ways, reasoning preserved."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar

import httpx2
import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field, SecretStr

from ..addresses import Address
from ..background.closing import closing
from ..background_loop import BackgroundLoop, background_loop
from ..callbacks import run_callbacks
from ..calls.completion import (
    BYTES_A_BYTE_STREAMED,
    BYTES_A_BYTE_WHOLE,
    TURN_BYTES,
    StreamedMessage,
    cap_reply,
    cut_error_short,
)
from ..calls.messages import Message
from ..calls.reported_usage import NO_TOKENS, attach_usage, sanitize_usage, usage_in
from ..errors import SessionError
from ..network.certificates import trusted_certificates
from ..network.proxies import Proxy, check_no_proxy_reply, naming_proxy, through
from ..settings import MAX_REPLY_BYTES
from .attempts import check_no_page, check_no_redirect
from .wire.adaptations import Adaptations
from .wire.chat_reply import ChoiceOfStream, as_chunk, result_of, starts_over
from .wire.events import Event, events_in, has_events, said_by
from .wire.refusals import noting_refusals

UNREAD: dict[str, Any] = {"cast_to": object, "stream": True, "stream_cls": openai.AsyncStream[object]}
"""Options of a request whose response is returned before its body has been read."""
_CLOSING_S = 2.0
"""Most seconds that closing the connections may delay the end of the process."""
_REST_S = 2.0
"""Most seconds in which the rest of a failed stream may tell its usage."""
CONNECTING_S = 20.0
"""Most seconds for making a connection."""
_NOT_KEPT = httpx2.Limits(max_keepalive_connections=0)
_UNPACKED = ("Accept-Encoding", "identity")
"""Header of all requests: a packed reply is refused, see ``cap_reply``."""
_COMPLETION = "chat completion"
_ROLES = {"human": "user", "ai": "assistant"}
_url = functools.lru_cache(maxsize=256)(httpx2.URL)


def open_chat(
    model: str,
    *,
    base_url: str | None,
    api_key: str,
    timeout_s: float,
    max_reply_bytes: int = MAX_REPLY_BYTES,
    client: type[ReasoningChatOpenAI] | None = None,
    adaptations: Adaptations | None = None,
) -> ReasoningChatOpenAI:
    """Return a client without retries for the background loop, sharing the connections of all other clients.

    The proxy variables of the environment apply, see ``proxy_for``.

    Args:
        model: Name of the model at the endpoint.
        base_url: None for OpenAI's own address. User and password in it are sent in place of the key, and its query
            string with every request.
        api_key: Key, sent with each call.
        timeout_s: Seconds that a call may take from its request to the end of its reply, streamed or not.
        max_reply_bytes: Most bytes of a reply's text and thinking.
        client: Class of the client; None for ``ReasoningChatOpenAI``.
        adaptations: What the model refuses, shared with others who ask it; None for none that is known.
    """
    address = Address(base_url or "")
    return (client or ReasoningChatOpenAI)(
        model=model,
        base_url=str(address) or None,
        default_headers=address.headers(),
        default_query=address.query_params() or None,
        api_key=SecretStr(api_key),
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECTING_S)),
        call_timeout_s=timeout_s,
        max_reply_bytes=max_reply_bytes,
        adaptations=adaptations or Adaptations(),
        max_retries=0,
        cache=False,  # judgetree has its own; LangChain's gives back replies without their tokens
        use_responses_api=False,
        http_socket_options=(),  # those of a client that is not used; with a proxy in sight it warns of them
        http_client=_unused_client(),
        http_async_client=http_client_on(background_loop()),
    )


class ReasoningChatOpenAI(ChatOpenAI):
    """``ChatOpenAI`` that keeps the fields of compatible servers which langchain-openai drops.

    Of langchain-openai it has the settings and the SDK's client; requests and replies are plain JSON of ours. Reasoning
    is in ``additional_kwargs["reasoning"]``, a refusal in ``["refusal"]``. Servers may put the whole answer into the
    reasoning and leave the content empty. A whole completion in place of a stream is accepted; ``was_not_streamed``
    detects it. Of several choices one is taken; ``starts_over`` detects the piece of a stream that brings a better one.
    A reply that is too long raises ``ReplyTooLong``; impossible usage becomes None. An error on a reply has its usage
    for ``attached_usage``.
    """

    call_timeout_s: float = 600.0
    """Seconds that a call may take; enforced by the caller."""
    max_reply_bytes: int = MAX_REPLY_BYTES
    """Most bytes of text and thinking of one reply; in a stream they are counted by the caller."""
    adaptations: Adaptations = Field(default_factory=Adaptations, exclude=True)
    """What the model has refused, and what it is sent in its place."""
    path: ClassVar[str] = "/chat/completions"
    own_stops: ClassVar[tuple[str, ...]] = ()
    """Stop texts that every call needs."""
    style: ClassVar[str] = ""
    """Part of names and fingerprints where an endpoint is asked in another way than a chat."""

    async def reply_to(self, prompt: Sequence[Message], **params: Any) -> AIMessage:
        """Return the reply to a prompt: that of ``ainvoke``, without its bookkeeping where no callback is registered.

        The bookkeeping takes two fifths of a call's CPU time.
        """
        if _is_heard():
            return await self.ainvoke(list(prompt), **params)
        result = await self._agenerate(convert_to_messages(prompt), **params)
        return _message_of(result.generations[0], result.llm_output)

    async def pieces_of_reply(self, prompt: Sequence[Message], **params: Any) -> AsyncIterator[AIMessage]:
        """Yield the pieces of the reply to a prompt: those of ``astream``, as ``reply_to`` does."""
        if _is_heard():
            async with closing(self.astream(list(prompt), **params)) as messages:
                async for message in messages:
                    yield message
            return
        async with closing(self._astream(convert_to_messages(prompt), **params)) as chunks:
            async for chunk in chunks:
                yield _message_of(chunk)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        # Plain data both ways: the SDK's type conversion takes a quarter of a call's CPU time.
        body = self.adaptations.applied(self.body_of(messages, stop, **kwargs))
        with noting_refusals(body):
            async with await self.root_async_client.post(self.address, body=body, **UNREAD) as stream:
                with attach_usage(NO_TOKENS):  # the reply has begun, so that it may be billed
                    self._cap(stream.response)
                    whole = await stream.response.aread()
                check_no_page(stream.response, whole, no=_COMPLETION)
                if has_events(whole):
                    return await self._result_of_events(_pieces(whole))
                with attach_usage(NO_TOKENS):
                    return self._result(json.loads(whole))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        streamed = self.body_of(messages, stop, stream=True, stream_options={"include_usage": True}, **kwargs)
        body = self.adaptations.applied(streamed)
        with noting_refusals(body):
            async with await self.root_async_client.post(self.address, body=body, **UNREAD) as stream:
                self._cap(stream.response)
                if is_whole := _is_json(stream.response):
                    whole = await stream.response.aread()
                    check_no_page(stream.response, whole, no=_COMPLETION)
                    if not has_events(whole):
                        yield as_chunk(self._result(json.loads(whole)))
                        return
                pieces = _pieces(whole) if is_whole else stream.response.aiter_raw()
                async with closing(self._chunks(pieces)) as chunks:
                    async for chunk in chunks:
                        yield chunk

    async def _chunks(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[ChatGenerationChunk]:
        """Yield what the events of a stream add."""
        choice, is_done = ChoiceOfStream(), False
        least: UsageMetadata | None = NO_TOKENS  # a reply came, which may be billed
        async with closing(events_in(pieces, max_bytes=self.max_reply_bytes)) as events:
            async for event in events:
                if is_done := event.is_last:
                    break
                if not event.data.strip():
                    continue
                try:
                    chunk = choice.chunk_of(self.as_chat(said_by(event), is_piece=True))
                except Exception:
                    if not event.is_ended:  # the stream broke off
                        break
                    with attach_usage(await _usage_from(event, events) or least):
                        raise
                least = None
                if chunk is not None:
                    yield chunk
        if (end := choice.missing_end(is_done=is_done)) is not None:
            yield end

    async def _result_of_events(self, pieces: AsyncIterator[bytes]) -> ChatResult:
        """Return the reply that stands in events, though it was to be sent whole.

        Raises:
            ValueError: The stream broke off.
        """
        streamed = StreamedMessage(self.max_reply_bytes)
        async with closing(self._chunks(pieces)) as chunks:
            async for chunk in chunks:
                piece = _message_of(chunk)
                if starts_over(piece):
                    streamed = StreamedMessage(self.max_reply_bytes)
                with attach_usage(piece.usage_metadata):
                    streamed.feed(piece)
        return ChatResult(generations=[ChatGeneration(message=streamed.whole_message())])

    @property
    def address(self) -> str:
        """The whole address of requests."""
        return f"{str(self.root_async_client.base_url).rstrip('/')}{self.path}"  # the SDK would parse a path each time

    def body_of(self, messages: list[BaseMessage], stop: list[str] | None, **params: Any) -> dict[str, Any]:
        """Return the JSON of a request."""
        is_o_series = self.model_name[:1] == "o" and self.model_name[1:2].isdigit()  # it calls a system a developer
        instructing = "developer" if is_o_series else "system"
        sent = [{"role": _ROLES.get(each.type, instructing), "content": each.content} for each in messages]
        body = {"model": self.model_name, "stream": False, "messages": sent, **params}
        return {**body, "stop": stop} if stop else body

    def as_chat(self, reply: Any, *, is_piece: bool) -> Any:
        """Translate a reply, or a piece of its stream, to that of a chat."""
        return reply

    def _cap(self, response: httpx2.Response) -> None:
        bytes_a_byte = BYTES_A_BYTE_WHOLE if _is_json(response) else BYTES_A_BYTE_STREAMED
        cap_reply(response, limit=self.max_reply_bytes * bytes_a_byte, max_bytes=self.max_reply_bytes)

    def _result(self, reply: Any) -> ChatResult:
        sanitize_usage(reply)
        with attach_usage(usage_in(reply)):
            return result_of(self.as_chat(reply, is_piece=False))


def _is_heard() -> bool:
    """Return whether LangChain's callbacks or tracers may hear of a call: outside of a graph, always."""
    manager = run_callbacks()
    return manager is None or bool(manager.handlers)


def _message_of(generation: ChatGeneration, output: Mapping[str, Any] | None = None) -> AIMessage:
    """Return the message of a reply, with what LangChain adds to its metadata."""
    message = generation.message
    assert isinstance(message, AIMessage)
    message.response_metadata = {**(output or {}), **(generation.generation_info or {}), **message.response_metadata}
    return message


async def _usage_from(event: Event, rest: AsyncIterator[Event]) -> UsageMetadata | None:
    """Return the last usage in an event and those behind it, which are read for it as far as they come within 2 s."""
    used: UsageMetadata | None = None
    with contextlib.suppress(Exception):  # its call has failed already
        used = _usage_of(event)
        async with asyncio.timeout(_REST_S):
            async for each in rest:
                used = _usage_of(each) or used
    return used


def _usage_of(event: Event) -> UsageMetadata | None:
    with contextlib.suppress(ValueError, RecursionError):
        said = said_by(event)
        if isinstance(said, dict):
            sanitize_usage(said)
            return usage_in(said)
    return None


def _is_json(response: httpx2.Response) -> bool:
    """Return whether a reply is said to be JSON, or a page, which some servers call any reply."""
    said = response.headers.get("content-type", "").lower()
    return "json" in said or "html" in said


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), TURN_BYTES):
        yield body[start : start + TURN_BYTES]


class _Connections(openai.DefaultAioHttpClient):
    """Connections of the background loop; calls on a loop of the user's, as LangGraph's server has, get their own.

    A connection belongs to the loop that made it. Those of other loops are closed after each call, since
    the end of such a loop cannot be seen. Each proxy has a client of its own.
    """

    def __init__(self, loop: BackgroundLoop, **options: Any) -> None:
        super().__init__(**options)
        self._home = loop
        self._given = options
        self._others: dict[tuple[asyncio.AbstractEventLoop | None, str], httpx2.AsyncClient] = {}

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        # The SDK gives whole addresses and headers. Merging them with the client's own, of which there are none, would
        # take a tenth of a call's CPU time.
        timeout = httpx2.Timeout(given.pop("timeout")).as_dict()
        extensions = {"timeout": timeout, **(given.pop("extensions", None) or {})}
        headers = [*given.pop("headers"), _UNPACKED]
        return httpx2.Request(method, _url(url), headers=headers, cookies=self.cookies, extensions=extensions, **given)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        with naming_proxy(str(request.url)) as proxy:
            if proxy is not None and request.url.scheme == "http":  # else aiohttp gives them to the tunnel
                request.headers.update(proxy.headers())
            other = self._other_client(proxy)
            response = await (super().send(request, **options) if other is None else other.send(request, **options))
            check_no_proxy_reply(proxy, str(request.url), response.status_code)
        if proxy is not None:
            response.extensions["proxy"] = through(proxy)
        return response

    async def aclose(self) -> None:
        for client in self._others.values():
            await client.aclose()
        await super().aclose()

    def _other_client(self, proxy: Proxy | None) -> httpx2.AsyncClient | None:
        """Return the client of another loop, or of a proxy; None for this one."""
        if proxy is None and self._home.is_current:
            return None
        loop = None if self._home.is_current else asyncio.get_running_loop()
        key = loop, proxy.url if proxy else ""
        if key not in self._others:
            gone = [each for each in self._others if each[0] is not None and each[0].is_closed()]
            self._others = {each: client for each, client in self._others.items() if each not in gone}
            kind = openai.DefaultAsyncHttpxClient if loop else openai.DefaultAioHttpClient
            limits: dict[str, Any] = {"limits": _NOT_KEPT} if loop else {}
            # aiohttp warns of user and password in the address.
            way = httpx2.Proxy(str(proxy.address), headers=proxy.headers()) if proxy else None
            self._others[key] = kind(proxy=way, **limits, **self._given)
        return self._others[key]


@functools.cache
def http_client_on(loop: BackgroundLoop) -> httpx2.AsyncClient:
    """Return the client whose connections all models share.

    Packed replies are not asked for, redirects are refused, errors are cut short.
    """
    # aiohttp takes a third less CPU a call than the SDK's own transport.
    client = _Connections(
        loop,
        event_hooks={"response": [check_no_redirect, cut_error_short]},
        verify=trusted_certificates(),
        trust_env=False,  # proxies are chosen by address, see ``proxy_for``
    )
    atexit.register(_close, client, loop)
    return client


@functools.cache
def _unused_client() -> httpx2.Client:
    """Return a client for synchronous calls, which are never made; langchain-openai would make one for each address."""
    return httpx2.Client(verify=trusted_certificates(), trust_env=False)


def _close(client: httpx2.AsyncClient, loop: BackgroundLoop) -> None:
    if loop.pid != os.getpid():  # a forked child inherits the exit handler, but not the loop's thread
        return
    with contextlib.suppress(TimeoutError, SessionError):  # a loop that a part blocks closes nothing
        loop.run(asyncio.wait_for(client.aclose(), _CLOSING_S))
