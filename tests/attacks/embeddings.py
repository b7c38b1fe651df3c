"""Replies of embedding and rerank endpoints that are wrong, each a function of the number of texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

Reply = Callable[[int], bytes]


def _vector(number: int) -> list[float]:
    return [float(number), 1.0, 0.5]


def _items(count: int) -> list[dict[str, object]]:
    return [{"object": "embedding", "index": number, "embedding": _vector(number)} for number in range(count)]


def _data(change: Callable[[list[dict[str, object]]], object], **fields: object) -> Reply:
    return lambda count: json.dumps({"data": change(_items(count)), "model": "m", **fields}).encode()


def _each(embedding: object) -> Reply:
    return _data(lambda items: [{**item, "embedding": embedding} for item in items])


def _raw(number: str) -> Reply:
    """Every vector holds a number that only looks like one in some JSON."""
    return lambda count: _data(lambda items: items)(count).replace(b"0.5", number.encode())


RIGHT: Mapping[str, Reply] = {
    "as-sent": _data(lambda items: items),
    "other-order": _data(lambda items: items[::-1]),
    "no-index": _data(lambda items: [{"embedding": item["embedding"]} for item in items]),
    "usage-negative": _data(lambda items: items, usage={"prompt_tokens": -5, "total_tokens": -5}),
    "usage-huge": _data(lambda items: items, usage={"prompt_tokens": 10**30, "total_tokens": 10**30}),
    "usage-text": _data(lambda items: items, usage="many"),
    "other-model": _data(lambda items: items, id="x" * 100_000),
}
"""Odd, but their vectors are known; the vector of text n begins with n."""

WRONG: Mapping[str, Reply] = {
    "double-index": _data(lambda items: [{**item, "index": 0} for item in items]),
    "index-out-of-range": _data(lambda items: [{**item, "index": 7} for item in items]),
    "index-negative": _data(lambda items: [{**item, "index": -1} for item in items]),
    "index-half": _data(lambda items: [{**item, "index": 0.5} for item in items]),
    "too-few": _data(lambda items: items[:-1]),
    "too-many": _data(lambda items: [*items, *items]),
    "none": _data(lambda items: []),
    "lengths-differ": _data(lambda items: [{**item, "embedding": [1.0] * (n + 1)} for n, item in enumerate(items)]),
    "empty-vector": _each([]),
    "long-vector": _each([0.5] * 40_000),
    "nan": _raw("NaN"),
    "infinity": _raw("Infinity"),
    "beyond-doubles": _raw("1e400"),
    "beyond-floats": _raw("1e39"),
    "null": _raw("null"),
    "text": _raw('"0.5"'),
    "boolean": _raw("true"),
    "nested": _raw("[0.5]"),
    "base64": _each("AACAPwAAgD8AAAA/"),
    "dictionary": _each({"0": 0.5}),
    "zero-vector": _each([0.0, 0.0, 0.0]),
    "data-null": lambda count: b'{"data": null}',
    "data-deep": lambda count: b'{"data": ' + b"[" * 100_000,
    "no-object": lambda count: b"[]",
    "error-with-200": lambda count: b'{"error": {"message": "overloaded"}}',
}
"""Vectors that cannot be those of the texts."""


def _results(change: Callable[[list[dict[str, object]]], object]) -> Reply:
    def reply(count: int) -> bytes:
        results = [{"index": number, "relevance_score": 1.0 / (number + 1)} for number in range(count)]
        return json.dumps({"results": change(results)}).encode()

    return reply


def _each_result(**fields: object) -> Reply:
    return _results(lambda results: [{**result, **fields} for result in results])


RERANKS: Mapping[str, Reply] = {
    "rerank-double-index": _each_result(index=0),
    "rerank-index-out-of-range": _results(lambda results: [{**results[0], "index": 9}]),
    "rerank-index-negative": _results(lambda results: [{**results[0], "index": -1}]),
    "rerank-index-half": _results(lambda results: [{**results[0], "index": 0.9}]),
    "rerank-index-text": _results(lambda results: [{**results[0], "index": "first"}]),
    "rerank-no-index": _results(lambda results: [{"relevance_score": 1.0}]),
    "rerank-no-score": _results(lambda results: [{"index": 0}]),
    "rerank-nan": _each_result(relevance_score=float("nan")),
    "rerank-infinity": _each_result(relevance_score=float("inf")),
    "rerank-null": _each_result(relevance_score=None),
    "rerank-none": _results(lambda results: []),
    "rerank-results-null": lambda count: b'{"results": null}',
    "rerank-results-text": lambda count: b'{"results": "none"}',
    "rerank-list": lambda count: b"[]",
    "rerank-deep": lambda count: b"[" * 100_000,
}
"""Ranks that cannot be those of the documents."""
