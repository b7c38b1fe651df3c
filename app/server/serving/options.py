"""What a server serves, to whom, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ....graphs.config.rag_config import RagConfig
from ....modules.errors import SettingsError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts on which a server may listen without keys."""
SourcesForm = Literal["annotations", "markdown", "both", "none"]
"""How chat completions name the sources of an answer."""


class ServerOptions(BaseModel):
    """Options of ``judgetree serve``; frozen.

    >>> ServerOptions().host
    '127.0.0.1'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8808, ge=0, le=65_535)
    allowed_hosts: tuple[str, ...] = ()
    """Names under which the server is called, besides those of loopback: another ``Host`` header is refused."""
    systems: tuple[str, ...] = ("judge", "naive")
    """Systems that answer over each collection."""
    collections: tuple[str, ...] | None = None
    """Collections that are served; None for all."""
    config: RagConfig = RagConfig()
    """What decides the answers; a key that a system has no use for is left out for that system. Requests cannot go
    beyond its limits; the other keys that they may have, such as ``topk``, are defaults and no ceilings."""
    fast_llm: str = ""
    """Model of ``fast``; empty: the setting ``condense_llm``, else ``llm``."""
    llms: Mapping[str, str] = Field(default_factory=dict)
    """Models that a request may choose, by name: specs such as ``openai:gpt-4o``. A request can name no other."""
    sources: SourcesForm = "annotations"
    """Where chat completions name sources: in ``annotations`` and Open WebUI's events, in a list behind the answer
    (``markdown``), in both, or nowhere. A request may choose another (``judgetree.sources``)."""
    runs: Path | None = None
    """Folder with evaluation runs; None serves none."""
    expire_days: int | None = Field(default=None, ge=1)
    """Days after which conversations without a new turn are deleted, once a day; None keeps them."""
    lenient: bool = False
    """Whether parameters of chat completions that the server has no use for, such as ``tools``, are ignored."""
    needs_keys: bool = False
    """Whether a request needs a key; always so on other addresses than loopback."""
    max_body_bytes: int = Field(default=1_000_000, ge=1_000)
    """Largest body of a request that is no upload."""
    max_upload_bytes: int = Field(default=50_000_000, ge=1_000)
    """Largest upload, and most bytes of its unpacked files."""
    max_body_seconds: float = Field(default=30.0, gt=0)
    """Seconds in which a body must arrive, and one more for each 20,000 bytes of it."""
    max_header_seconds: float = Field(default=10.0, gt=0)
    """Seconds in which the head of a request must arrive."""
    max_connections: int = Field(default=1_000, ge=1)
    """Open connections. For further ones those that have been idle the longest are closed; if a request is in progress
    on all, HTTP 503."""
    max_connections_per_address: int = Field(default=250, ge=1)
    """Open connections of one address, of IPv6 of one /64 network, and requests in progress that trusted proxies
    forward for it. Further ones close its idle ones, or are answered with HTTP 429. A quarter of all: more than an
    office behind one address needs, and three others find room beside one that takes all it can."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies, whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed."""
    max_stall_seconds: float = Field(default=60.0, gt=0)
    """Seconds in which a client must read what is written to its connection, which is closed else."""
    max_store_seconds: float = Field(default=5.0, gt=0)
    """Seconds in which Milvus must list or describe collections."""
    max_search_seconds: float = Field(default=60.0, gt=0)
    """Seconds in which a search without a question must be done, the embeddings of its query included."""
    max_answer_seconds: float = Field(default=90.0, gt=0)
    """Seconds in which the answer to a request that only reads must start; others have limits of their own."""
    max_shutdown_seconds: float = Field(default=20.0, ge=0)
    """Seconds that running questions get at the end of the server; then they are cancelled after a checkpoint."""
    grace_s: float | None = Field(default=None, ge=0, le=3_600)
    """Seconds for which a question runs on after its connection was lost, in which the same request, or another view
    of the conversation, gets its answer; then it is cancelled. None: 30 for those of ``/v1/conversations``, as of the
    web page, 0 for others."""
    max_question_chars: int = Field(default=20_000, ge=1)
    max_runs: int = Field(default=64, ge=1)
    """Questions that a worker answers at once; a key may ask as many as are still free. Further ones are refused with
    HTTP 429."""
    requests_per_minute: int = Field(default=600, ge=1)
    """Requests that one key, or one address without keys, may send in a minute."""
    heartbeat_s: float = Field(default=15.0, gt=0)
    """Seconds of silence in a stream after which a comment is sent."""

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, named: tuple[str, ...]) -> tuple[str, ...]:
        for each in named:
            try:
                ip_network(each, strict=False)
            except ValueError:
                raise SettingsError(
                    f"{each!r:.100} is no address of a trusted proxy. Give an address or a network, such as 10.0.0.0/8."
                ) from None
        return named

    def grace_of(self, usual_s: float = 0.0) -> float:
        """Return the seconds of ``grace_s``, or those of a door where it is not set."""
        return usual_s if self.grace_s is None else self.grace_s

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK

    @property
    def demands_keys(self) -> bool:
        """Whether a request needs a key."""
        return self.needs_keys or not self.is_local
