"""Transcripts of model calls: what each call was sent, and what came back."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from ..addresses import Address
from ..digests import text_digest
from ..errors import SettingsError, UserError, reason_of
from ..storage.texts import storable
from ..transcripts.redis import RedisTranscripts
from ..transcripts.rows import FoundRow, ReadableTranscripts, TranscriptFile
from ..transcripts.sql import open_sql_transcripts, read_sql_transcripts
from .completion import Completion
from .messages import PLAIN_TEXT, CallOptions, Message
from .record import CallRecord

_OPTIONS, _REPLY = "options", "reply"
"""Roles of the parts that are no messages."""

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


@dataclass(frozen=True, kw_only=True)
class TranscriptPlace:
    """Where transcripts are: a SQLite file, tables in PostgreSQL, or hashes in Redis."""

    url: Address
    """``sqlite:///path`` of the file, ``postgresql://…`` or ``redis://…``."""
    shared: bool = False
    """Whether several machines may write the file, which then has no log beside it (WAL): those need one memory."""
    private: bool = True
    """Whether the file is made for this user alone; that of a run is made by the umask, like the run's other files."""

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return Path(self.url.removeprefix("sqlite:///")) if self.url.startswith("sqlite:///") else None

    def exists(self) -> bool:
        """Return whether there may be transcripts; True for a server, which is not asked."""
        return self.file is None or self.file.exists()

    def open(self) -> TranscriptFile:
        """Open the place for writing, created if missing; it blocks.

        Raises:
            SettingsError: It has another format.
        """
        if self.file is None and self.url.startswith(("redis://", "rediss://")):
            return RedisTranscripts(self.url)
        if self.file is not None and not self.private:
            self.file.touch()  # what exists keeps its mode
        return open_sql_transcripts(self.file or self.url, keeps_log=not self.shared)

    def read(self, call_ids: Iterable[str], *, root: str = "") -> list[RecordedCall]:
        """Read the transcripts of calls, and of all calls of a root thread if one is given; it blocks.

        The result is in no order, and has no entry for a call that was not recorded.

        Raises:
            SettingsError: The place cannot be read, or has another format.
        """
        if not self.exists():
            return []
        keys = [call_key_of(call_id) for call_id in call_ids]
        try:
            with closing(self._readable()) as file:
                return list({row.key: _call_of(row) for row in file.read(keys, root)}.values())
        except UserError:
            raise
        except Exception as error:
            raise SettingsError(
                f"The transcripts {self.url} cannot be read: {reason_of(error)}. Move the file away to go on without."
            ) from error

    def _readable(self) -> ReadableTranscripts:
        return self.open() if self.file is None else read_sql_transcripts(self.file)


def _call_of(row: FoundRow) -> RecordedCall:
    parts = [(role, _text_of(content)) for role, content in row.parts]
    named = dict(parts)
    transcript = Transcript(
        messages=tuple((role, text) for role, text in parts if role not in (_OPTIONS, _REPLY)),
        options=json.loads(named.get(_OPTIONS, "{}").replace(DAMAGED, "{}")),
        reply=_reply_of(named[_REPLY]) if _REPLY in named else None,
    )
    return RecordedCall(record=cast(CallRecord, json.loads(_unpacked(row.record))), transcript=transcript)


def _reply_of(text: str) -> Completion:
    if text == DAMAGED:
        return Completion(text=DAMAGED, finish_reason="unknown")
    return Completion.of_document(json.loads(text))


def _text_of(content: bytes) -> str:
    """Return a text; ``DAMAGED`` for one that cannot be read, whose call has others that can."""
    try:
        return _unpacked(content)
    except (zlib.error, ValueError):
        return DAMAGED


def _unpacked(content: bytes) -> str:
    return zlib.decompress(content).decode()
