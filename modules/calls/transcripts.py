"""Transcripts of model calls: what each call was sent, and what came back."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from ..addresses import Address
from ..digests import text_digest
from ..errors import SettingsError, UserError, reason_of
from ..storage.databases import Database, ReadableDatabase, open_database
from ..storage.sqlite import SqliteReader
from ..storage.tables import Statement, Tables
from ..storage.texts import storable
from .completion import Completion
from .messages import PLAIN_TEXT, CallOptions, Message
from .record import CallRecord

TRANSCRIPT_TABLES = Tables(
    thing="transcripts",
    names=("transcripts", "transcript_parts", "transcript_texts", "transcript_format"),
    create=(
        "CREATE TABLE IF NOT EXISTS {prefix}transcripts (call_key {bytes} PRIMARY KEY, root TEXT NOT NULL, "
        "owner TEXT NOT NULL, record {bytes} NOT NULL)",
        "CREATE INDEX IF NOT EXISTS {prefix}transcripts_by_root ON {prefix}transcripts (root)",
        "CREATE INDEX IF NOT EXISTS {prefix}transcripts_by_owner ON {prefix}transcripts (owner)",
        "CREATE TABLE IF NOT EXISTS {prefix}transcript_parts (call_key {bytes} NOT NULL, place INTEGER NOT NULL, "
        "role TEXT NOT NULL, digest {bytes} NOT NULL, PRIMARY KEY (call_key, place))",
        "CREATE TABLE IF NOT EXISTS {prefix}transcript_texts (digest {bytes} PRIMARY KEY, content {bytes} NOT NULL)",
    ),
    remedy="Move it away; what earlier calls were sent is lost with it, and nothing else.",
    exclusive=True,
)

_OPTIONS, _REPLY = "options", "reply"
"""Roles of the parts that are no messages."""
_MOST_KEYS = 500
"""Calls that one query reads; SQLite takes 32,766 parameters."""
_SELECT = (
    "SELECT transcripts.call_key, record, role, content FROM transcripts "
    "JOIN transcript_parts ON transcript_parts.call_key = transcripts.call_key "
    "JOIN transcript_texts ON transcript_texts.digest = transcript_parts.digest "
    "WHERE {} ORDER BY transcripts.call_key, place"
)


DAMAGED = "(this text is damaged in the file of transcripts)"
"""In place of a text that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """The texts of one model call, with secrets starred out."""

    messages: tuple[Message, ...]
    """What was sent, in order."""
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    """Options of the call that differ from those of plain text, such as ``temperature`` or ``json_format``."""
    reply: Completion | None = None
    """What came back; None for a failed call, or where only prompts are recorded."""


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """A call with its transcript, as a file of transcripts has it."""

    record: CallRecord
    transcript: Transcript


@dataclass(frozen=True, kw_only=True)
class TranscriptPart:
    """One text of a transcript, as it is written."""

    role: str
    """Role of the message, "options" or "reply"."""
    text: str
    is_json: bool = False


def options_of(options: CallOptions) -> Mapping[str, JsonValue]:
    """Return the options that differ from those of plain text."""
    values = {each.name: getattr(options, each.name) for each in fields(options)}
    return {name: value for name, value in values.items() if value != getattr(PLAIN_TEXT, name)}


def parts_of(messages: Sequence[Message], options: CallOptions, reply: Completion | None) -> Iterator[TranscriptPart]:
    """Split a transcript into the texts that are kept once each: the messages in order, the options, the reply."""
    for role, text in messages:
        yield TranscriptPart(role=role, text=text)
    if changed := options_of(options):
        options_text = json.dumps(changed, sort_keys=True, default=dict, ensure_ascii=False)
        yield TranscriptPart(role=_OPTIONS, text=options_text, is_json=True)
    if reply is not None:
        reply_text = json.dumps(reply.to_document(), separators=(",", ":"), ensure_ascii=False)
        yield TranscriptPart(role=_REPLY, text=reply_text, is_json=True)


def packed(text: str) -> tuple[bytes, bytes]:
    """Return the digest of a text, and the text compressed."""
    data = storable(text).encode()
    return hashlib.sha256(data).digest()[:16], zlib.compress(data, 6)


def call_key_of(call_id: str) -> bytes:
    """Return the key of a call in files of transcripts."""
    return text_digest(call_id)[:16]


def delete_statements(names: Iterable[str]) -> list[Statement]:
    """Return the statements that delete the transcripts of roots and owners, and the texts that no call needs then."""
    chosen = "SELECT call_key FROM transcripts WHERE root = ? OR owner = ?"
    statements: list[Statement] = []
    for name in names:
        statements.append((f"DELETE FROM transcript_parts WHERE call_key IN ({chosen})", (name, name)))
        statements.append(("DELETE FROM transcripts WHERE root = ? OR owner = ?", (name, name)))
    unused = "DELETE FROM transcript_texts WHERE digest NOT IN (SELECT digest FROM transcript_parts)"
    return [*statements, (unused, ())]


@dataclass(frozen=True, kw_only=True)
class TranscriptPlace:
    """Where transcripts are: a SQLite file, or tables in PostgreSQL."""

    url: Address
    """``sqlite:///path`` of the file, or ``postgresql://…``."""
    shared: bool = False
    """Whether several machines may write the file, which then has no log beside it (WAL): those need one memory."""
    private: bool = True
    """Whether the file is made for this user alone; that of a run is made by the umask, like the run's other files."""

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for PostgreSQL."""
        return Path(self.url.removeprefix("sqlite:///")) if self.url.startswith("sqlite:///") else None

    def exists(self) -> bool:
        """Return whether there may be transcripts; True for PostgreSQL, which is not asked."""
        return self.file is None or self.file.exists()

    def open(self) -> Database:
        """Open the place for reading and writing, created if missing; it blocks.

        Raises:
            SettingsError: It has another format.
        """
        if self.file is not None and not self.private:
            self.file.touch()  # what exists keeps its mode
        return open_database(self.file or self.url, TRANSCRIPT_TABLES, keeps_log=not self.shared)

    def read(self, call_ids: Iterable[str], *, root: str = "") -> list[RecordedCall]:
        """Read the transcripts of calls, and of all calls of a root thread if one is given; it blocks.

        The result is in no order, and has no entry for a call that was not recorded.

        Raises:
            SettingsError: The place cannot be read, or has another format.
        """
        if not self.exists():
            return []
        keys = [call_key_of(call_id) for call_id in call_ids]
        queries: list[Statement] = [(_SELECT.format("transcripts.root = ?"), (root,))] if root else []
        for start in range(0, len(keys), _MOST_KEYS):
            some = keys[start : start + _MOST_KEYS]
            queries.append((_SELECT.format(f"transcripts.call_key IN ({', '.join('?' * len(some))})"), some))
        try:
            with closing(self._readable()) as file:
                return list({key: call for query in queries for key, call in _calls_in(file.read(query))}.values())
        except UserError:
            raise
        except Exception as error:
            raise SettingsError(
                f"The transcripts {self.url} cannot be read: {reason_of(error)}. Move the file away to go on without."
            ) from error

    def _readable(self) -> ReadableDatabase:
        return self.open() if self.file is None else SqliteReader(self.file, TRANSCRIPT_TABLES)


def _calls_in(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, RecordedCall]]:
    return ((key, _call_of(list(group))) for key, group in groupby(rows, key=itemgetter(0)))


def _call_of(rows: Sequence[tuple[object, ...]]) -> RecordedCall:
    parts = [(str(role), _text_of(content)) for _, _, role, content in rows]
    named = dict(parts)
    transcript = Transcript(
        messages=tuple((role, text) for role, text in parts if role not in (_OPTIONS, _REPLY)),
        options=json.loads(named.get(_OPTIONS, "{}").replace(DAMAGED, "{}")),
        reply=_reply_of(named[_REPLY]) if _REPLY in named else None,
    )
    return RecordedCall(record=cast(CallRecord, json.loads(_unpacked(rows[0][1]))), transcript=transcript)


def _reply_of(text: str) -> Completion:
    if text == DAMAGED:
        return Completion(text=DAMAGED, finish_reason="unknown")
    return Completion.of_document(json.loads(text))


def _text_of(content: object) -> str:
    """Return a text; ``DAMAGED`` for one that cannot be read, whose call has others that can."""
    try:
        return _unpacked(content)
    except (zlib.error, ValueError):
        return DAMAGED


def _unpacked(content: object) -> str:
    return zlib.decompress(bytes(content)).decode()  # type: ignore[call-overload]
