"""Recording of model calls: which texts are kept, and where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ...modules.addresses import Address
from ...modules.calls.transcript_writer import TranscriptWriter
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.recorded_texts import Record
from ...modules.settings import Settings, load_settings
from ..stores.registry import is_postgres, store_of

RUN_FILE = "transcripts.sqlite"
"""Name of the file of transcripts in a run directory."""
_SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Which texts of a graph's model calls are kept, and where.

    >>> Recording().record
    'full'
    """

    record: Record = "full"
    file: Path | None = None
    """SQLite file of the transcripts; None keeps them beside the checkpoints: in a file of their own, or in the same
    database of a server."""
    conversations: bool = True
    """Whether turns of conversations are recorded too."""
    secrets: tuple[str, ...] | None = field(default=None, repr=False)
    """Keys and passwords, which are starred out of every text; None takes those of settings and environment."""

    @classmethod
    def of(cls, settings: Settings, *, file: Path | None = None) -> Recording:
        """Return the recording that settings describe; one that is not set is full, without conversations."""
        wanted = settings.record
        return cls(record=wanted or "full", file=file, conversations=bool(wanted), secrets=settings.secrets())

    def place_for(self, checkpoints: str) -> TranscriptPlace | None:
        """Return the place of the transcripts of a checkpoint store, which need not exist; None for one in memory."""
        if self.file is not None:
            return TranscriptPlace(url=Address(f"{_SQLITE}{self.file}"), shared=is_postgres(checkpoints), private=False)
        return store_of(checkpoints).transcripts() if checkpoints else None


@asynccontextmanager
async def open_recorder(recording: Recording, checkpoints: str) -> AsyncIterator[TranscriptWriter | None]:
    """Open the recorder of a checkpoint store's calls; None where none are recorded.

    Raises:
        SettingsError: The file of transcripts cannot be opened, or has another format.
    """
    place = recording.place_for(checkpoints)
    if place is None or recording.record == "none":
        yield None
        return
    secrets = load_settings().secrets() if recording.secrets is None else recording.secrets
    writer = TranscriptWriter(place, record=recording.record, secrets=secrets)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.aclose()
