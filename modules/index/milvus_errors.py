"""Errors of Milvus in the user's words: every call of an open connection's client raises ``MilvusFailure``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from ..errors import MilvusFailure

if TYPE_CHECKING:
    from pymilvus import MilvusClient

_REMEDIES = (
    (
        ("fail connecting", "unavailable", "deadline", "timeout", "timed out", "closed"),
        "Check that the server runs and can be reached, then try again.",
    ),
    (
        ("permission", "privilege", "unauthenticated", "auth"),
        "Check JUDGETREE_MILVUS_TOKEN and what its user is allowed to do.",
    ),
    (
        ("quota", "rate limit", "exhausted", "no space", "disk", "memory"),
        "The server is short of room: give it more or wait, then try again.",
    ),
    (
        ("not found", "not exist", "can't find"),
        "It was dropped or replaced meanwhile: look at `judgetree collections`, then try again.",
    ),
)
_OTHER_REMEDY = "Look into the server's log, and check that it is Milvus 2.5 or newer."


def explained(client: MilvusClient) -> MilvusClient:
    """The client, with ``MilvusFailure`` in place of ``MilvusException`` and of errors of its connection."""
    return cast("MilvusClient", _ExplainedClient(client))


@contextmanager
def milvus_errors(action: str) -> Iterator[None]:
    """Around calls to Milvus that ``action`` names, as in "Milvus could not {action}".

    Raises:
        MilvusFailure: Milvus refused, or did not answer.
    """
    from grpc import RpcError  # type: ignore[import-untyped]  # noqa: PLC0415 - takes a second to import
    from pymilvus.exceptions import MilvusException  # noqa: PLC0415

    try:
        yield
    except (MilvusException, RpcError) as error:
        said = " ".join(str(getattr(error, "message", "") or error or type(error).__name__).split())[:300]
        lower = said.lower()
        remedy = next((remedy for words, remedy in _REMEDIES if any(word in lower for word in words)), _OTHER_REMEDY)
        raise MilvusFailure(f"Milvus could not {action}: {said.rstrip('.')}. {remedy}") from error


class _ExplainedClient:
    def __init__(self, client: MilvusClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        value = getattr(self._client, name)
        return _explained_call(name, value) if callable(value) else value


def _explained_call(name: str, call: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(call)
    def explained_call(*args: object, **options: object) -> object:
        with milvus_errors(name.replace("_", " ")):
            return call(*args, **options)

    return explained_call
