"""The recorder of model calls: it writes their transcripts in a thread of its own, many a commit."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import SettingsError, UserError
from ..redaction import starred
from ..settings import without_secrets
from ..storage.write_errors import is_full_disk
from ..transcripts.rows import TranscriptFile, TranscriptRow
from .completion import Completion
from .messages import CallOptions, Message
from .record import CallRecord
from .transcripts import TranscriptPlace, call_key_of, packed, parts_of

logger = logging.getLogger(__name__)

_TEXTS_REMEMBERED = 256
"""Texts that are starred and compressed once while they repeat, such as the instructions of a judge."""


@dataclass(frozen=True, kw_only=True)
class _Taken:
    root: str
    owner: str
    record: CallRecord
    messages: Sequence[Message]
    options: CallOptions
    reply: Completion | None


class TranscriptWriter:
    """Writes the transcripts of one place. ``keep`` returns at once; the coroutines run on judgetree's own loop.

    A write that fails, as on a full disk, costs no question: recording stops, with a warning.
    """

    def __init__(
        self, place: TranscriptPlace, *, record: Literal["full", "prompts"], secrets: Iterable[str] = ()
    ) -> None:
        """Write to a place, opened by ``open``; ``secrets`` are starred out of every text."""
        self.place = place
        self._keeps_replies = record == "full"
        self._secrets = tuple(secrets)
        self._file: TranscriptFile | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transcripts")
        self._lock = threading.Lock()
        self._waiting: list[_Taken] = []
        self._writing: Future[None] | None = None
        self._packed = functools.lru_cache(_TEXTS_REMEMBERED)(lambda text: packed(self._starred(text)))

    async def open(self) -> None:
        """Open the place, so that an unusable one is reported before the first call.

        Raises:
            SettingsError: It cannot be opened, or has another format.
        """
        try:
            self._file = await asyncio.get_running_loop().run_in_executor(self._thread, self.place.open)
        except UserError:
            raise
        except Exception as error:
            raise SettingsError(
                f"The transcripts {self.place.url} cannot be written: {' '.join(str(error).split())}. Check the file "
                "and its rights, or record nothing: JUDGETREE_RECORD=none."
            ) from error

    def keep(
        self,
        record: CallRecord,
        messages: Sequence[Message],
        options: CallOptions,
        reply: Completion | None,
        *,
        root: str,
        owner: str,
    ) -> None:
        """Take a transcript, which is on the disk after ``flush``; one that is there already stays.

        Args:
            record: Record of the call.
            messages: What was sent.
            options: Options of the call.
            reply: What came back; None for a failed call.
            root: Root thread of the call's tree.
            owner: Id of the conversation, or the root again; its deletion deletes the transcript.
        """
        if self._file is None:
            return
        reply = reply if self._keeps_replies else None
        taken = _Taken(root=root, owner=owner, record=record, messages=messages, options=options, reply=reply)
        with self._lock:
            self._waiting.append(taken)
            if self._writing is None:
                self._writing = self._thread.submit(self._write_all)

    async def flush(self) -> None:
        """Wait until all transcripts taken so far are written."""
        writing = self._writing
        if writing is not None:
            await asyncio.shield(asyncio.wrap_future(writing))

    async def aclose(self) -> None:
        """Write what is waiting and close the place."""
        await self.flush()
        file, self._file = self._file, None
        if file is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, file.close)
        self._thread.shutdown(wait=False)

    # --- in the thread ---

    def _write_all(self) -> None:
        while True:
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._writing = None
                    return
            self._write(batch)

    def _write(self, batch: Sequence[_Taken]) -> None:
        file = self._file
        if file is None:
            return
        try:
            file.add([self._row(taken) for taken in batch])
        except Exception as error:  # noqa: BLE001 - what was asked matters more than what was written about it
            self._file = None
            cause = "the disk is full" if is_full_disk(error) else " ".join(str(error).split())
            logger.warning("Calls are no longer recorded: %s cannot be written (%s).", self.place.url, cause)
            file.close()

    def _row(self, taken: _Taken) -> TranscriptRow:
        # Before they become JSON, whose escapes would hide where a word begins, and whose signs may look like a secret.
        record = {**taken.record, "error": self._starred(taken.record["error"])}
        reply = taken.reply and self._starred_reply(taken.reply)
        parts = parts_of(taken.messages, taken.options, reply)
        return TranscriptRow(
            key=call_key_of(taken.record["call_id"]),
            root=taken.root,
            owner=taken.owner,
            record=packed(json.dumps(record, separators=(",", ":"), ensure_ascii=False))[1],
            parts=tuple(
                (each.role, *(packed(each.text) if each.is_json else self._packed(each.text))) for each in parts
            ),
        )

    def _starred_reply(self, reply: Completion) -> Completion:
        return Completion(
            text=self._starred(reply.text),
            thinking=self._starred(reply.thinking),
            finish_reason=self._starred(reply.finish_reason),
            first_token=tuple(replace(token, token=self._starred(token.token)) for token in reply.first_token),
            refusal=self._starred(reply.refusal),
            is_from_thinking=reply.is_from_thinking,
        )

    def _starred(self, text: str) -> str:
        return without_secrets(starred(text, self._secrets)) if text else text


@dataclass(frozen=True, kw_only=True)
class ThreadTranscripts:
    """The recorder of the calls of one tree, or of one turn of a conversation."""

    writer: TranscriptWriter
    root: str
    owner: str

    def keep(
        self, record: CallRecord, messages: Sequence[Message], options: CallOptions, reply: Completion | None
    ) -> None:
        """Take the transcript of a call; see ``TranscriptWriter.keep``."""
        self.writer.keep(record, messages, options, reply, root=self.root, owner=self.owner)

    async def flush(self) -> None:
        """Wait until all transcripts taken so far are written."""
        await self.writer.flush()


async def forget_transcripts(place: TranscriptPlace | None, names: Iterable[str]) -> None:
    """Delete the transcripts of root threads or conversations, whether or not calls are recorded now.

    Raises:
        SettingsError: The place has another format.
    """
    if place is None or not place.exists():
        return
    deleted = list(names)

    def delete() -> None:
        file = place.open()
        try:
            file.delete(deleted)
        finally:
            file.close()

    await asyncio.to_thread(delete)
