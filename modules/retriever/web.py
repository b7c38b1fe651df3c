"""Web search for questions that the documents do not answer: the protocol, and SearXNG."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re
from collections.abc import Sequence
from typing import Annotated, Protocol
from urllib.parse import urlsplit

import httpx
from langchain_core.documents import Document
from pydantic import BaseModel, BeforeValidator, ConfigDict, FiniteFloat, ValidationError

from ..addresses import Address
from ..background.closing import closing
from ..digests import text_digest
from ..errors import SearchArgumentError, SettingsError, faults_of
from ..network.certificates import trusted_certificates
from ..network.clients import async_client
from ..network.proxies import proxy_for, through
from ..redaction import starred
from ..settings import without_secrets
from ..storage.texts import storable

logger = logging.getLogger(__name__)

SEARXNG_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 8_000_000
"""Most bytes of a page of results; SearXNG's have some hundred kilobytes."""

# Linear in the text; an HTML parser is quadratic in unclosed tags.
_INLINE_TAG = re.compile(r"</?(?:a|b|em|i|mark|span|strong|sub|sup|u|wbr)(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)

_REMEDIES = {
    400: "Check the question, and the language and categories that were set",
    403: "Allow JSON in its settings.yml (search: formats: [html, json]), and this address in its limiter",
    404: "Check that JUDGETREE_SEARXNG_URL is its address without /search",
    429: "Ask less often, or switch its limiter off (settings.yml, server: limiter: false)",
}


class WebSearch(Protocol):
    """A search engine for passages on the web."""

    async def search(self, query: str, *, limit: int) -> list[Document]:
        """Return at most ``limit`` distinct passages, best first; empty if nothing is found.

        A text is the page's title and the engine's excerpt. Metadata: ``chunk_id`` (digest of address and text),
        ``source`` (the address), ``title``, and ``retrieval_score`` (higher is better) if the engine gives one.

        Raises:
            SettingsError: The engine cannot be used; the message says what to do.
            SearchArgumentError: ``limit`` is less than 1.
        """
        ...


def _storable(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


# Engines may cut a text inside an emoji, and pydantic refuses lone surrogates.
_Text = Annotated[str, BeforeValidator(_storable)]


class _Result(BaseModel):
    model_config = ConfigDict(extra="ignore")

    url: _Text | None = None
    title: _Text | None = None
    content: _Text | None = None
    score: FiniteFloat | None = None


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore")

    results: list[_Result]
    unresponsive_engines: object = None


class SearxngSearch:
    """A SearXNG instance behind its JSON API, which its settings.yml must allow (``search: formats``).

    Scores are SearXNG's own: from 0 up, by the number of engines that found a page and its ranks there.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float = SEARXNG_TIMEOUT_S,
        language: str | None = None,
        categories: Sequence[str] | None = None,
    ) -> None:
        """Use a SearXNG instance; no request is made before the first search.

        Args:
            base_url: Address of the instance, such as ``http://127.0.0.1:8080``; it may hold user and password.
            timeout_s: Seconds that a search may take.
            language: Code such as ``en`` or ``zh-CN``; None for the instance's default.
            categories: Names such as ``general``, ``science``; None for the instance's default.

        Raises:
            SettingsError: The address is not an HTTP address.
        """
        address = Address(base_url)
        if not _is_http(address):
            raise SettingsError(
                f"The address {without_secrets(address)!r} is not allowed for SearXNG. Set JUDGETREE_SEARXNG_URL to "
                "one such as http://127.0.0.1:8080."
            )
        self._url = address.joined("search")
        self._timeout_s = timeout_s
        self._fixed = {**address.query_params(), "format": "json"}
        if language:
            self._fixed["language"] = language
        if categories:
            self._fixed["categories"] = ",".join(categories)

    async def search(self, query: str, *, limit: int) -> list[Document]:
        """Return at most ``limit`` distinct passages, best first, at the cost of one HTTP request without retries."""
        if limit < 1:
            raise SearchArgumentError(f"limit={limit} is not allowed. Give a whole number from 1 on.")
        reply = self._parsed(await self._fetched(query))
        found = {document.metadata["chunk_id"]: document for document in map(_as_document, reply.results) if document}
        if not found and reply.unresponsive_engines:
            engines = starred(str(reply.unresponsive_engines), self._url.secrets())
            logger.warning("%s found nothing; without a reply: %s", self._name, engines)
        return list(found.values())[:limit]

    @property
    def _name(self) -> str:
        return f"SearXNG at {self._url}"

    async def _fetched(self, query: str) -> bytes:
        asked = {**self._fixed, "q": storable(query)}
        headers = {**self._url.headers(), "Accept-Encoding": "identity"}
        certificates = await asyncio.to_thread(trusted_certificates)
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                async_client(timeout_s=self._timeout_s, verify=certificates) as client,
                client.stream("GET", self._url, params=asked, headers=headers) as response,
            ):
                if not response.is_success:
                    raise self._refused(response)
                return await self._body(response)
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"{self._name} did not answer within {self._timeout_s:g} s. Check that it runs, or give it more."
            raise SettingsError(message) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = starred(str(error), self._url.secrets()) or type(error).__name__
            message = f"{self._name} cannot be reached: {what}. Check JUDGETREE_SEARXNG_URL and that it runs."
            raise SettingsError(message) from error

    async def _body(self, response: httpx.Response) -> bytes:
        packing = response.headers.get("content-encoding", "identity")
        if packing.strip().lower() not in ("", "identity"):  # few packed bytes may unpack to many
            raise SettingsError(
                f"{self._name} answers packed ({packing:.40}), which was not asked for. Switch the compression of "
                "SearXNG, or of a proxy before it, off."
            )
        body = bytearray()
        async with closing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    raise SettingsError(
                        f"{self._name} sends more than {MAX_REPLY_BYTES:,} bytes for one search. Check that "
                        "JUDGETREE_SEARXNG_URL is the address of SearXNG."
                    )
        return bytes(body)

    def _refused(self, response: httpx.Response) -> SettingsError:
        status = response.status_code
        location = starred(without_secrets(response.headers.get("location", "")), self._url.secrets())
        elsewhere = f", go to {location}" if response.has_redirect_location else ""
        remedy = _REMEDIES.get(status, "Check JUDGETREE_SEARXNG_URL and the log of SearXNG")
        way = through(proxy_for(self._url))
        return SettingsError(f"{self._name} answered HTTP {status}{elsewhere}. {remedy}.{way}")

    def _parsed(self, body: bytes) -> _Reply:
        try:
            return _Reply.model_validate(json.loads(body))
        except (ValueError, RecursionError) as error:  # pydantic's ValidationError is a ValueError
            faults = faults_of(error, whole="the reply") if isinstance(error, ValidationError) else ["it is not JSON"]
            raise SettingsError(
                f"{self._name} did not answer with search results ({'; '.join(faults[:3])}). Check that "
                "JUDGETREE_SEARXNG_URL is the address of SearXNG, and its version."
            ) from error


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an open bracket, or a port that is not a number
        return False


def _as_document(result: _Result) -> Document | None:
    """Return the passage of a result; None without address or text, since it could not be cited."""
    url, title = (result.url or "").strip(), _as_text(result.title or "")
    text = "\n".join(part for part in (title, _as_text(result.content or "")) if part)
    if not url or not text:
        return None
    chunk_id = text_digest(url, text).hex()
    metadata: dict[str, object] = {"chunk_id": chunk_id, "source": url, "title": title}
    if result.score is not None:
        metadata["retrieval_score"] = result.score
    return Document(page_content=text, metadata=metadata)


def _as_text(marked_up: str) -> str:
    return " ".join(storable(html.unescape(_TAG.sub(" ", _INLINE_TAG.sub("", marked_up)))).split())
