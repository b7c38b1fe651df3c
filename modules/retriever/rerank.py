"""Fusion of the hits of several fields inside Milvus (``RANKERS``), and rerank models (``RERANK_SERVICES``).

A new fusion is a function and a line in ``RANKERS``; a new rerank service a class and a line in ``RERANK_SERVICES``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import operator
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..addresses import Address, with_addresses
from ..background_loop import background_loop
from ..errors import ModelCallError, ProxyFault, SearchArgumentError, SettingsError, error_class_of
from ..llm.attempts import Attempts, EndpointFailure, RedirectedError, endpoint_failure, retry_after_s
from ..llm.wire.error_words import ReportedError, code_of, error_in_text
from ..network.keys import sendable_key
from ..network.long_waits import LONG_WAITS
from ..network.proxies import proxy_for, through
from ..redaction import starred
from ..settings import load_settings, without_secrets
from ..wanted import check_wanted

if TYPE_CHECKING:
    from pymilvus.client.abstract import BaseRanker

logger = logging.getLogger(__name__)

RRF_K = 60
MAX_RRF_K = 16_383
RERANK_TIMEOUT_S = 30.0
_LONG_S = 5.0
"""Seconds of a wait from which on people are told of it."""
_LOOKED_AFTER_S = 0.5
DASHSCOPE_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"

_MALFORMED_REPLY = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)

RankerParams = Mapping[str, object]

MODEL = "model"
"""The ``ranker_type`` of a rerank model."""
PRE_PARAMS = ("pre_topk", "pre_ranker_type", "pre_ranker_params")
"""Parameters of the coarse search, before what reorders its hits."""


@runtime_checkable
class RerankModel(Protocol):
    """A model that reads query and text together to score their fit: slower and better than vectors."""

    @property
    def name(self) -> str:
        """Name in fingerprints and call records, without a key."""
        ...

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        """Return at most ``top_n`` pairs (position in ``documents``, score), best first, on the model's own scale.

        Raises:
            ModelCallError: The service failed.
        """
        ...


def reciprocal_rank_fusion(params: RankerParams, fields: Sequence[str]) -> BaseRanker:
    """Sum 1 / (k + rank) over the fields, ranks from 1; ``k`` defaults to 60. Scores are in (0, fields / k).

    Source: Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet (SIGIR 2009).

    Raises:
        SearchArgumentError: ``k`` is not allowed, or another parameter is given.
    """
    from pymilvus import RRFRanker  # noqa: PLC0415 - takes a second to import

    check_params(params, {"k"}, "rrf")
    k = params.get("k", RRF_K)
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MAX_RRF_K:
        raise SearchArgumentError(f"ranker_params k={k!r} is not allowed. Give a whole number from 1 to {MAX_RRF_K}.")
    return RRFRanker(k)


def weighted_sum(params: RankerParams, fields: Sequence[str]) -> BaseRanker:
    """Sum weight times score, each score scaled to [0, 1] by Milvus; weights default to equal.

    Raises:
        SearchArgumentError: The weights do not fit the fields, or another parameter is given.
    """
    from pymilvus import WeightedRanker  # noqa: PLC0415 - takes a second to import

    check_params(params, {"weights"}, "weighted")
    weights = params.get("weights", [1 / len(fields)] * len(fields))
    if not isinstance(weights, Sequence) or isinstance(weights, str) or len(weights) != len(fields):
        raise SearchArgumentError(
            f"ranker_params weights={weights!r} does not fit the {len(fields)} fields searched ({', '.join(fields)}). "
            "Give one weight a field, in their order."
        )
    for weight in weights:
        if not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise SearchArgumentError(f"The weight {weight!r} is not allowed. Weights lie between 0 and 1.")
    # BM25 scores would drown cosines unscaled, and the default differs between Lite, servers and client versions.
    return WeightedRanker(*weights, norm_score=True)


RANKERS: Mapping[str, Callable[[RankerParams, Sequence[str]], BaseRanker]] = {
    "rrf": reciprocal_rank_fusion,
    "weighted": weighted_sum,
}
"""Fusions by ``ranker_type``; further types reorder the hits of one of these, see ``reordering.REORDERING``."""


class HttpReranker:
    """A rerank model behind the ``/rerank`` API that Jina, Cohere, vLLM and llama.cpp share."""

    def __init__(self, url: str, model: str, *, api_key: str = "", timeout_s: float = RERANK_TIMEOUT_S) -> None:
        """Use an endpoint; user and password in ``url`` are sent in place of the key.

        Raises:
            SettingsError: The key cannot be sent.
        """
        self._url = Address(url)
        self._model = model
        self._api_key = sendable_key(api_key, "The key of the rerank model (JUDGETREE_RERANK_API_KEY)")
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        """Address and model."""
        return f"{self._url}#{self._model}"

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        """Return (position, score) pairs, best first, at the cost of one HTTP request."""
        body = {"model": self._model, "query": query, "documents": list(documents), "top_n": top_n}
        secrets = (self._api_key, *self._url.secrets())
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        reply = _post(self._url, body, headers | self._url.headers(), self._timeout_s, secrets)
        return _read_results(reply.get("results"), len(documents), top_n, self.name, secrets)


class DashScopeReranker:
    """DashScope's ``TextReRank``. Limits of the service: 500 texts, 4,000 tokens each."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        timeout_s: float = RERANK_TIMEOUT_S,
        base_url: str = DASHSCOPE_BASE_URL,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._timeout_s = timeout_s
        key = api_key or os.environ.get("DASHSCOPE_API_KEY", "")
        self._api_key = sendable_key(key, "The key of the DashScope rerank model (DASHSCOPE_API_KEY)")
        if not self._api_key:
            raise SettingsError("The DashScope rerank model needs a key. Set DASHSCOPE_API_KEY, or give api_key.")

    @property
    def name(self) -> str:
        """``dashscope:MODEL``."""
        return f"dashscope:{self._model}"

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        """Return (position, score) pairs, best first, at the cost of one HTTP request."""
        import requests  # noqa: PLC0415 - comes with dashscope, which takes a second to import
        from dashscope import TextReRank  # noqa: PLC0415
        from dashscope.common.error import DashScopeException  # noqa: PLC0415

        from .rerank_replies import rerank_session  # noqa: PLC0415

        try:
            reply = TextReRank.call(
                model=self._model,
                query=query,
                documents=list(documents),
                top_n=top_n,
                return_documents=False,
                api_key=self._api_key,
                base_address=self._base_url,
                request_timeout=self._timeout_s,
                session=rerank_session(),
            )
        # The SDK lets its parser's errors through on a malformed reply.
        except (requests.RequestException, DashScopeException, ProxyFault, RedirectedError, *_MALFORMED_REPLY) as error:
            found = endpoint_failure(error)
            what = found.what or f"{type(error).__name__}: {starred(str(error), (self._api_key,))}"
            raise found.error_class(f"{self.name} cannot be used: {what}{found.to_do}") from error
        if reply.status_code != _OK:  # HTTP errors come back as replies
            failure = error_class_of(reply.status_code, str(reply.code))
            said = starred(f"{reply.code} {reply.message}", (self._api_key,))
            way = through(proxy_for(self._base_url))
            raise failure(f"{self.name} answered {reply.status_code}: {said}.{way}", status=reply.status_code)
        results = reply.output.get("results") if isinstance(reply.output, Mapping) else None
        return _read_results(results, len(documents), top_n, self.name, (self._api_key,))


def _http(spec: str, timeout_s: float) -> HttpReranker:
    address = Address(spec)
    key = load_settings().rerank_api_key.get_secret_value()
    return HttpReranker(address.endpoint, address.model, api_key=key, timeout_s=timeout_s)


def _dashscope(spec: str, timeout_s: float) -> DashScopeReranker:
    return DashScopeReranker(spec.partition(":")[2] or "gte-rerank-v2", timeout_s=timeout_s)


RERANK_SERVICES: Mapping[str, Callable[[str, float], HttpReranker | DashScopeReranker]] = {
    "dashscope": _dashscope,
    "http": _http,
    "https": _http,
}
"""Functions of (spec, timeout_s) by the scheme of a spec."""


class RetryingReranker:
    """A rerank model whose failed requests are sent again: after a wait, as those of chat models are."""

    def __init__(self, model: HttpReranker | DashScopeReranker, *, retries: int, backoff_s: float = 0.5) -> None:
        """Ask ``model``, with at most ``retries`` further attempts after one that failed."""
        self._model = model
        self._attempts = retries + 1
        self._backoff_s = backoff_s

    @property
    def name(self) -> str:
        """The model's own."""
        return self._model.name

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        """Return (position, score) pairs, best first, at the cost of one HTTP request an attempt.

        Raises:
            ModelCallError: The last attempt failed, or one that would fail again.
            SessionError: The process is to end, or the caller of the search has left.
        """
        attempts = Attempts(self._attempts, backoff_s=self._backoff_s)
        while True:
            try:
                return self._model.rerank(query, documents, top_n)
            except ModelCallError as error:
                asked_s = retry_after_s(error.__cause__) if isinstance(error.__cause__, Exception) else 0.0
                wait_s = attempts.wait_s(_failure_of(error), asked_s=asked_s)
                if wait_s is None:
                    raise
                told = logger.warning if wait_s > _LONG_S else logger.info
                told("%s. The next attempt follows in %.1f s.", str(error).rstrip("."), wait_s)
            _rest(wait_s)


def _rest(wait_s: float) -> None:
    """Wait, no longer than the search is wanted."""
    until_s = time.monotonic() + wait_s
    while (left_s := until_s - time.monotonic()) > 0:
        background_loop().run(_rest_a_moment(min(left_s, _LOOKED_AFTER_S)))
        check_wanted()


async def _rest_a_moment(for_s: float) -> None:
    async with LONG_WAITS.one():
        await asyncio.sleep(for_s)


def _failure_of(error: ModelCallError) -> EndpointFailure:
    """Classify a failure; a reply that came and cannot be used would come again, and a rate limit is one like others.

    The hits have an order without the model: minutes of waiting for another are not worth it.
    """
    from .rerank_replies import ReplyRefused  # noqa: PLC0415

    cause = error.__cause__
    if error.status is not None or cause is None:
        is_final = error.status is None or type(error) is not ModelCallError
        return EndpointFailure(error_class=type(error), is_final=is_final, what="", remedy="")
    found = endpoint_failure(cause)
    is_of_the_reply = isinstance(cause, (*_MALFORMED_REPLY, ReplyRefused)) or isinstance(cause.__cause__, ReplyRefused)
    return replace(found, is_final=found.is_final or is_of_the_reply)


def create_reranker(spec: str, *, timeout_s: float = RERANK_TIMEOUT_S, retries: int | None = None) -> RetryingReranker:
    """Create the rerank model ``dashscope:MODEL`` or ``URL#MODEL``, with the URL of a ``/rerank`` endpoint.

    The key is DASHSCOPE_API_KEY or, for a URL, JUDGETREE_RERANK_API_KEY. Failed requests are sent again, ``retries``
    times at most (None: as often as the setting says).

    Raises:
        SearchArgumentError: The spec names no service.
        SettingsError: The key of the service is missing.
    """
    service = RERANK_SERVICES.get(spec.partition(":")[0])
    if service is None:
        raise SearchArgumentError(
            f"Unknown rerank model {without_secrets(Address(spec))!r}. Allowed: dashscope:MODEL, or URL#MODEL such as "
            "http://127.0.0.1:8080/v1/rerank#bge-reranker-v2-m3."
        )
    return RetryingReranker(service(spec, timeout_s), retries=load_settings().retries if retries is None else retries)


_OK = 200


def _post(
    url: Address, body: Mapping[str, object], headers: Mapping[str, str], timeout_s: float, secrets: Sequence[str]
) -> Mapping[str, object]:
    import httpx  # noqa: PLC0415 - keeps the package's import fast

    from .rerank_replies import ReplyRefused, posted  # noqa: PLC0415

    try:
        got, content = posted(url, body, headers, timeout_s)
        if not got.is_success:
            said = starred(content.decode(errors="replace"), secrets)[:200]
            message = f"The rerank endpoint {url} answered {got.status_code}: {said}. Check address, model and key."
            message += through(proxy_for(url))
            reason = httpx.HTTPStatusError(message, request=got.request, response=got)
            code = code_of(ReportedError(error_in_text(content)))
            raise error_class_of(got.status_code, code)(message, status=got.status_code) from reason
        reply = json.loads(content)
    except (httpx.HTTPError, httpx.InvalidURL, ProxyFault, RedirectedError, ReplyRefused) as error:
        found = endpoint_failure(error)
        what = found.what or starred(str(error), secrets) or type(error).__name__
        message = f"The rerank endpoint {url} cannot be reached: {what}{found.to_do}"
        raise found.error_class(message) from error
    except (ValueError, RecursionError) as error:
        raise ModelCallError(f"The rerank endpoint {url} did not answer with JSON.") from error
    if not isinstance(reply, dict):
        said = starred(str(reply), secrets)[:100]
        raise ModelCallError(f"The rerank endpoint {url} answered {said!r} instead of an object.")
    return reply


def _read_results(
    results: object, documents: int, top_n: int, name: str, secrets: Sequence[str]
) -> list[tuple[int, float]]:
    try:
        pairs = [(operator.index(item["index"]), float(item["relevance_score"])) for item in results]  # type: ignore[attr-defined]
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        said = starred(str(results), secrets)[:200]
        raise ModelCallError(f"{name} answered without usable results: {said}") from error
    if documents and not pairs:
        raise ModelCallError(f"{name} ranked none of {documents} documents.")
    positions = {position for position, _ in pairs}
    finite = all(math.isfinite(score) for _, score in pairs)
    if len(positions) != len(pairs) or not positions <= set(range(documents)) or not finite:
        raise ModelCallError(f"{name} answered with wrong positions or scores: {str(pairs[:20])[:200]}")
    return sorted(pairs, key=lambda pair: -pair[1])[:top_n]


def check_params(params: RankerParams, allowed: set[str], ranker: str) -> None:
    """Check the names of parameters.

    Raises:
        SearchArgumentError: One is not in ``allowed``.
    """
    unknown = sorted(params.keys() - allowed)
    if unknown:
        raise SearchArgumentError(
            f"ranker_params {', '.join(unknown)} are unknown to ranker_type={ranker!r}. "
            f"Allowed: {', '.join(sorted(allowed))}."
        )


def fusion_of(
    ranker_type: object, params: object, fields: Sequence[str], *, reordering: Sequence[str] = (MODEL,)
) -> BaseRanker:
    """Return the ranker that fuses the hits of fields, also those of a coarse search that is reordered.

    Args:
        ranker_type: A key of ``RANKERS``, or one of ``reordering``.
        params: Its parameters.
        fields: Names of the fields.
        reordering: Rankers that name the fusion of their coarse search as ``pre_ranker_type``.

    Raises:
        SearchArgumentError: There is no such ranker, or its parameters do not fit.
    """
    if ranker_type in reordering and isinstance(params, Mapping):
        ranker_type, params = params.get("pre_ranker_type", "rrf"), params.get("pre_ranker_params", {})
    if not isinstance(ranker_type, str) or ranker_type not in RANKERS or not isinstance(params, Mapping):
        raise SearchArgumentError(
            f"ranker_type={ranker_type!r} with parameters {without_secrets(repr(params))} is not allowed. "
            f"Allowed types: {', '.join(RANKERS)} and, after one of these, {', '.join(reordering)}; parameters are a "
            "mapping."
        )
    return RANKERS[ranker_type](params, fields)


_MODEL_PARAMS = ("model", "timeout_s", *PRE_PARAMS)


def model_of(params: RankerParams) -> tuple[str | RerankModel, float]:
    """Return the rerank model, or its spec, and its time-out in seconds from the parameters of ``model``.

    Raises:
        SearchArgumentError: They name no model, or something else than is allowed.
    """
    unknown = sorted(params.keys() - set(_MODEL_PARAMS))
    model, timeout_s = params.get("model"), params.get("timeout_s", RERANK_TIMEOUT_S)
    if unknown or not isinstance(model, str | RerankModel) or not isinstance(timeout_s, int | float):
        raise SearchArgumentError(
            f"ranker_params {with_addresses(params)!r} do not fit ranker_type='model'. Needed: model, such as "
            f"'dashscope:gte-rerank-v2' or 'URL#MODEL'. Allowed besides: {', '.join(_MODEL_PARAMS[1:])}."
        )
    return model, timeout_s
