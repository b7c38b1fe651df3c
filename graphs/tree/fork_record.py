"""Where a fork comes from, as its fingerprint says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ..threads.fingerprint import FORK_KEY


@dataclass(frozen=True, kw_only=True)
class Fork:
    """The origin of a search tree that is another one with one change.

    >>> Fork.of_fingerprint({"fork": Fork(thread_id="t", node="2#1", changes={"score": "2"}).to_text()}).node
    '2#1'
    """

    thread_id: str
    """Root thread of the other tree."""
    node: str
    """Name of the changed node in the other tree (see ``find_place``)."""
    depth: int = 0
    """Level of the changed query."""
    chunk_id: str = ""
    """Id of the changed chunk; ``""`` where the query itself is changed."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """What was set, by name."""

    @property
    def words(self) -> str:
        """What was set, as "score=0"."""
        return ", ".join(f"{name}={value}" if value else name for name, value in self.changes.items())

    def to_text(self) -> str:
        """Return the value of the fingerprint's key."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def of_fingerprint(cls, fingerprint: Mapping[str, str]) -> Fork | None:
        """Return the origin that a fingerprint names; None for a tree that is no fork."""
        given = fingerprint.get(FORK_KEY)
        return None if given is None else cls(**json.loads(given))

    def __str__(self) -> str:
        return f"fork of {self.thread_id} at {self.node}: {self.words}"
