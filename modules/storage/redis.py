"""Connections to Redis that give up waiting, scripts that run as one step, and errors that say what to do.

The extra ``redis`` must be installed to call the functions.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ..addresses import Address
from ..errors import DependencyError, LostParts, SettingsError, StoreFailure
from ..redaction import starred
from .formats import check_format, format_of
from .server_report import ServerReport

if TYPE_CHECKING:
    from redis import Redis as BlockingRedis
    from redis.asyncio import Redis

PREFIX = b"judgetree:"
"""What the names of all keys begin with."""
FORMAT_KEY = PREFIX + b"format"
"""Its value is the format and, behind a space, a random word, by which a database that was emptied is known."""

logger = logging.getLogger(__name__)

_NO_FORMAT = (
    "The Redis %r has lost its key judgetree:format, which is made anew: other keys may be lost too, and judgetree "
    "processes that run must be started again."
)
_PATH = re.compile(r"(/\d*)?")
"""What may stand behind the host: the number of a database."""
_CONNECT_S = 10.0
_ANSWER_S = 30.0
"""Seconds of silence after which a command is given up, as with PostgreSQL; ``?socket_timeout=`` sets others."""
_CONNECTIONS = 8
_TRIES_AGAIN = 5
"""Further tries after a connection broke or was refused: over two seconds, in which a server restarts."""
_REMEDY = "Check JUDGETREE_CHECKPOINTS and that Redis is running and writable."
_REMEDIES = {
    "AuthenticationError": "Check the user and password in JUDGETREE_CHECKPOINTS: redis://user:password@host:6379/0",
    "NoPermissionError": "The user needs the keys judgetree:* and the commands of scripts, hashes, sets and INFO.",
    "OutOfMemoryError": "Redis has reached its maxmemory: raise it, or delete conversations (judgetree conversations "
    "expire); what was saved is kept.",
    "ReadOnlyError": "Name the primary: this server is a replica.",
}
_UNLIKE_TLS = frozenset({"TimeoutError", "SSLError"})
_CLOSED = re.compile("SSL|[Cc]losed|reset|disconnected|Protocol")
_TLS = (" If its port speaks TLS, write rediss://.", " If its port speaks no TLS, write redis://.")
"""What to try where the sides may not speak alike: of an address without and with TLS."""
_WORDS = {"OOM ": "OutOfMemoryError", "READONLY ": "ReadOnlyError", "NOPERM ": "NoPermissionError"}
"""Words of an error within a script, which older servers send without its kind."""


def bytes_of(answer: object) -> bytes:
    """Return an answer, which is never decoded, as its bytes."""
    return cast(bytes, answer)


def key(*parts: str) -> bytes:
    """Return the name of a key: the parts behind ``judgetree:``, halves of surrogate pairs included."""
    return PREFIX + ":".join(parts).encode("utf-8", "surrogatepass")


def new_mark() -> str:
    """Return a value of ``FORMAT_KEY`` for a database that has none."""
    return f"{format_of('redis')} {uuid.uuid4().hex}"


@asynccontextmanager
async def open_redis(url: str) -> AsyncIterator[tuple[Redis, bytes]]:
    """Open connections to a Redis for the running event loop, check its format, and close them at the end.

    With the client comes the value of ``FORMAT_KEY``; another value later means that the database was emptied. A
    command whose connection breaks is sent again, so every one of judgetree's has the same effect twice.

    Raises:
        StoreFailure: Redis cannot be reached, or refuses.
        SettingsError: The address is malformed, or the data in Redis has another format.
        DependencyError: The extra ``redis`` is not installed.
    """
    with redis_errors(url, is_opening=True):
        client = _client(url)
        try:
            if (found := await client.get(FORMAT_KEY)) is None:  # a full memory would refuse a write of what is there
                if await client.exists(key("saved"), key("names")):
                    logger.warning(_NO_FORMAT, str(Address(url)))
                await client.set(FORMAT_KEY, new_mark(), nx=True)
                found = await client.get(FORMAT_KEY)
        except BaseException:
            await client.aclose()
            raise
    try:
        remedy = "Name another database of the server, such as /1."
        mark = bytes_of(found or b"")
        named = mark.decode("utf-8", "replace").partition(" ")[0]
        check_format(named, "redis", where=f"The Redis {str(Address(url))!r}", remedy=remedy, error=SettingsError)
        yield client, mark
    finally:
        await client.aclose()


class RedisAtFirstUse:
    """Connections to a Redis that are opened at their first use; use it on one event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._client: Redis | None = None
        self.mark = b""
        """Value of ``FORMAT_KEY`` when the connections were opened."""

    async def open(self) -> Redis:
        """Return the client, opened if there is none; see ``open_redis``."""
        async with self._opening:
            if self._client is not None:
                return self._client
            client, self.mark = await self._stack.enter_async_context(open_redis(self.url))
            self._client = client
            return client

    async def aclose(self) -> None:
        """Close the connections if there are any; ``open`` opens them again."""
        self._client = None
        await self._stack.aclose()


def emptied(url: str) -> LostParts:
    """Return the error of a database that is no longer the one that was opened."""
    return LostParts(
        f"The Redis {str(Address(url))!r} has lost everything that was saved in it: it was emptied (FLUSHALL), or "
        "restarted without what it wrote to its disk. Start judgetree again, and bring back a copy if there is one."
    )


@contextmanager
def redis_errors(url: str, *, is_opening: bool = False) -> Iterator[None]:
    """Turn the errors of Redis and its connections into those that users see.

    ``is_opening`` is for the first command, where silence may mean that one side speaks TLS and the other does not.

    Raises:
        StoreFailure: Redis did not answer, or refused.
        DependencyError: The extra ``redis`` is not installed.
    """
    try:
        from redis.exceptions import RedisError  # noqa: PLC0415 - the extra "redis"
    except ImportError as error:
        raise DependencyError('Redis needs an extra: pip install "judgetree[redis]"') from error
    try:
        yield
    except (RedisError, OSError) as error:
        address = Address(url)
        said = starred(" ".join(str(error).split()), address.secrets()).rstrip(".") or type(error).__name__
        kinds = [*(each.__name__ for each in type(error).__mro__), *(_WORDS[word] for word in _WORDS if word in said)]
        remedy = next((_REMEDIES[kind] for kind in kinds if kind in _REMEDIES), _REMEDY)
        if "AuthenticationError" in kinds and urlsplit(address.revealed()).password is None:
            said = "it wants a password, and the address has none"
        elif is_opening and (_UNLIKE_TLS.intersection(kinds) or _CLOSED.search(said)):
            remedy += _TLS[urlsplit(url).scheme == "rediss"]
        raise StoreFailure(f"The checkpoint store {str(address)!r} cannot be used: {said}. {remedy}") from error


async def check_writable(client: Redis) -> None:
    """Write a key that expires at once, which a full memory or a replica refuses."""
    await client.set(key("probe"), b"", px=1)


async def report_of(client: Redis) -> ServerReport:
    """Ask a Redis for version, modules, persistence and eviction; what it may not say is taken as it should be."""
    from redis.exceptions import ResponseError  # noqa: PLC0415 - the extra "redis"

    try:
        said = await client.info("everything")
    except ResponseError as error:
        kept = "what may lose conversations is not known: see that appendonly is yes, maxmemory-policy noeviction"
        return ServerReport(detail=f"it does not answer INFO ({error})", warnings=(kept,))
    try:
        saves = (await client.config_get("save")).get("save", "")
    except ResponseError:  # managed services have no CONFIG
        saves = "unknown"
    name = "Valkey" if "valkey_version" in said else "Redis"
    version = said.get("valkey_version") or said.get("redis_version", "")
    modules = ", ".join(sorted(str(each.get("name", "")) for each in said.get("modules", ())))
    kept = " and ".join(["AOF"] * bool(said.get("aof_enabled")) + ["snapshots"] * bool(saves))
    shown = f"modules {modules}" if modules else "no modules, and none needed"
    warnings = [] if kept else ["it writes nothing to a disk, so a restart loses all: set appendonly yes"]
    policy, limit = str(said.get("maxmemory_policy", "")), int(said.get("maxmemory", 0))
    if policy not in ("", "noeviction"):
        at = f"at {limit / 2**20:.0f} MiB" if limit else "once it has a maxmemory"
        warnings.append(f"{at} it drops keys ({policy}), conversations too: set maxmemory-policy noeviction")
    detail = f"{name} {version}, {shown}; keeps {kept or 'nothing on a disk'}"
    return ServerReport(detail=detail, warnings=tuple(warnings))


def open_blocking_redis(url: str) -> BlockingRedis:
    """Open connections to a Redis for any thread; the caller closes them.

    Raises:
        SettingsError: The address is malformed.
        DependencyError: The extra ``redis`` is not installed.
    """
    with redis_errors(url):
        from redis import BlockingConnectionPool, Redis  # noqa: PLC0415 - the extra "redis"
        from redis.retry import Retry  # noqa: PLC0415

    return Redis.from_pool(_pool(url, BlockingConnectionPool, Retry))


def _client(url: str) -> Redis:
    from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415 - the extra "redis"
    from redis.asyncio.retry import Retry  # noqa: PLC0415

    return Redis.from_pool(_pool(url, BlockingConnectionPool, Retry))


def _pool(url: str, kind: Any, retry: Any) -> Any:
    """Make a pool of connections of redis-py, which has two of each class with equal arguments."""
    from redis.backoff import ExponentialBackoff  # noqa: PLC0415 - the extra "redis"
    from redis.exceptions import ConnectionError  # noqa: PLC0415

    address = Address(url)
    if not _PATH.fullmatch(urlsplit(address).path):  # redis-py takes others for database 0
        raise SettingsError(
            f"The address {str(address)!r} in JUDGETREE_CHECKPOINTS is malformed: behind the host stands the number "
            "of a database, as in redis://user:password@host:6379/0."
        )
    try:
        pool = kind.from_url(
            Address(url).revealed(),
            max_connections=_CONNECTIONS,
            timeout=_ANSWER_S,
            socket_timeout=_ANSWER_S,
            socket_connect_timeout=_CONNECT_S,
            # A server that is silent is not asked again: each try would wait as long.
            retry=retry(ExponentialBackoff(cap=1.0, base=0.05), _TRIES_AGAIN, (ConnectionError,)),
        )
        pool.make_connection()  # connects to nothing, and refuses what an address may not say
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"The address {str(Address(url))!r} in JUDGETREE_CHECKPOINTS is malformed, in what stands behind its "
            "question mark. Allowed: redis://user:password@host:6379/0, rediss:// for TLS, and redis-py's options."
        ) from error
    for name in ("socket_timeout", "socket_connect_timeout"):
        if not 0 < (seconds := pool.connection_kwargs[name]) < math.inf:
            raise SettingsError(
                f"The address {str(address)!r} in JUDGETREE_CHECKPOINTS is malformed: {name}={seconds:g} is no time to "
                "wait. Allowed: seconds above 0; leave it out for the usual ones."
            )
    pool.connection_kwargs["decode_responses"] = False  # an address may say otherwise
    return pool
