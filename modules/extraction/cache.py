"""The file of triples by passage and model, so that a passage is paid for once."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..errors import WritingError
from ..llm.cache import CacheableLLM
from ..llm.contract import model_fingerprint, tuning_fingerprint
from ..storage.sqlite import transaction
from ..storage.sqlite_cache import SqliteCache
from ..structure.triples import Triple
from .prompts import EXTRACTION
from .replies import Extracted

logger = logging.getLogger(__name__)

FILE_NAME = "triples.sqlite"
_SCHEMA = """\
CREATE TABLE IF NOT EXISTS extracted (
    key BLOB PRIMARY KEY,  -- sha256 of model, endpoint, prompt and passage
    reply_tokens INTEGER NOT NULL,  -- 0 where the endpoint gave none
    dropped INTEGER NOT NULL,
    triples TEXT NOT NULL  -- JSON: a list of subject, relation, object each
)"""
_KEYS_PER_SELECT = 500
"""Keys in one statement; SQLite builds may allow only 999 parameters."""


@dataclass(frozen=True, kw_only=True)
class KeptTriples:
    """The triples of a passage as they are kept, with what they cost."""

    extracted: Extracted
    reply_tokens: int
    """Tokens of the reply; estimated where the endpoint gave none."""


_SAVED = TypeAdapter(tuple[Triple, ...])


class TripleKeys:
    """The keys of passages for one model and prompt.

    They hold all that decides the triples: endpoint, model with its settings, prompt, parser and the passage as shown.
    """

    def __init__(self, llm: CacheableLLM, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        made_by = {"endpoint": llm.endpoint, **model_fingerprint(llm), **tuning_fingerprint(llm)}
        made_by["prompt"] = prompts.version(EXTRACTION)
        self._made_by = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode())

    @property
    def made_by(self) -> str:
        """SHA-256 of everything but the passage."""
        return self._made_by.hexdigest()

    def of(self, text: str) -> bytes:
        """Return the key of a text of ``passage_text``."""
        digest = self._made_by.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()


class TripleCache(SqliteCache):
    """A file of the triples of passages, by ``TripleKeys``.

    ::

        with TripleCache(load_settings().home / FILE_NAME) as cache:
            kept = cache.get_many(keys)
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, thing="triples")

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, KeptTriples]:
        """Return what is kept by key; a key without triples, or whose triples are damaged, is left out."""
        wanted = list(dict.fromkeys(keys))

        def select(connection: sqlite3.Connection) -> dict[bytes, KeptTriples]:
            found: dict[bytes, KeptTriples] = {}
            for start in range(0, len(wanted), _KEYS_PER_SELECT):
                some = wanted[start : start + _KEYS_PER_SELECT]
                query = f"SELECT * FROM extracted WHERE key IN ({','.join('?' * len(some))})"
                for key, reply_tokens, dropped, triples in connection.execute(query, some):
                    try:
                        read = _SAVED.validate_json(triples)
                    except ValidationError:
                        logger.warning("Triples of a passage in %s are damaged, and are asked for again.", self.path)
                        continue
                    extracted = Extracted(triples=read, dropped=dropped)
                    found[bytes(key)] = KeptTriples(extracted=extracted, reply_tokens=reply_tokens)
            return found

        return self.attempt(select, otherwise={})

    def put(self, key: bytes, kept: KeptTriples) -> None:
        """Keep the triples of a passage.

        Raises:
            WritingError: They could not be kept.
        """
        triples = json.dumps(kept.extracted.triples, ensure_ascii=False, separators=(",", ":"))
        row = (key, kept.reply_tokens, kept.extracted.dropped, triples)

        def insert(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                connection.execute("INSERT OR REPLACE INTO extracted VALUES (?, ?, ?, ?)", row)
            return True

        # Each passage is paid for, and is kept nowhere else.
        if not self.attempt(insert, otherwise=False, writes=True):
            raise WritingError(
                f"{self.path} could not be written, so no further passage is asked about. Make room or check the disk "
                "and its rights; what it has is kept, and the same command continues."
            )
