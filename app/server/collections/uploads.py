"""Uploads in the background: a bounded queue, one at a time for each collection."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, cast

from fastapi import Depends, Request

from ....modules.errors import JudgetreeError
from ....modules.settings import Settings
from ..safety.key_watch import KeyWatch
from ..serving.caller import Caller
from ..serving.errors import ApiError, as_api_error
from ..serving.options import ServerOptions
from ..serving.validity import Validity, key_ended
from .arriving import check_unpacked, file_names
from .filling import PendingUpload, fill

logger = logging.getLogger(__name__)

MAX_OPEN = 16
"""Uploads that wait or are indexed; half of them may be of one key."""
_MOST_RUNNING = 2
_MOST_REMEMBERED = 1_000
_SAFE_TO_STOP = ("wait", "load", "embed")

JobStatus = Literal["queued", "running", "done", "failed"]


@dataclass(kw_only=True)
class UploadJob:
    """An upload on its way into a collection."""

    id: str
    owner: str
    """Id of the key that sent it; ``""`` for the user of this machine."""
    collection: str
    files: list[str]
    refused: list[str] = field(default_factory=list)
    """Why other files that were sent with them were not taken."""
    status: JobStatus = "queued"
    done: int = 0
    """Chunks that are embedded."""
    total: int = 0
    """Chunks to embed; 0 until the files are read."""
    error: str | None = None
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What no chunk holds, by source and kind, as in ``IndexReport``."""
    is_stopped: bool = False
    """Whether its key was revoked."""

    @property
    def is_open(self) -> bool:
        """Whether it waits or is running."""
        return self.status in ("queued", "running")

    def stop(self) -> None:
        """Fail the job because its key was revoked; it stops before its next piece."""
        self.is_stopped = True
        self.status, self.error = "failed", str(key_ended())


class _Stopped(JudgetreeError):
    """The server, or the key, ends before an upload is indexed."""


class Uploads:
    """The uploads of a process, all of whose methods are to be called on the server's loop.

    Jobs end with the process: another worker does not know them, and after a restart none is left. What they had kept
    and not yet indexed is indexed when the same files are sent again.
    """

    def __init__(self, settings: Settings, options: ServerOptions, watch: KeyWatch) -> None:
        """``watch`` knows which keys are revoked, whose uploads end."""
        self._settings = settings
        self._watch = watch
        self._options = options
        self._jobs: dict[str, UploadJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._running = asyncio.Semaphore(_MOST_RUNNING)
        self._ending = threading.Event()

    def find(self, caller: Caller, job_id: str) -> UploadJob:
        """Return a job of the caller; the user of this machine sees all.

        Raises:
            ApiError: HTTP 404: there is none, or it is another caller's.
        """
        found = self._jobs.get(job_id)
        if found is None or not (caller.is_local or found.owner == caller.key_id):
            raise ApiError.not_found("job", job_id)
        return found

    async def add(self, caller: Caller, collection: str, files: Sequence[tuple[str, BinaryIO]]) -> UploadJob:
        """Take files with their names, and index them in the background.

        Raises:
            ApiError: HTTP 413, 422: all files are refused. HTTP 429: too many uploads wait.
        """
        self._check_room(caller)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="judgetree-upload-"))
        try:
            arrived, refused = await asyncio.to_thread(_store, folder, files, self._options.max_upload_bytes)
            if not arrived:
                raise refused[0]
            self._check_room(caller)  # again, since others came meanwhile
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        job = UploadJob(
            id=secrets.token_hex(16),
            owner=caller.key_id,
            collection=collection,
            files=[file.name for file in arrived],
            refused=[str(each) for each in refused],
        )
        self._remember(job)
        task = asyncio.create_task(self._index(job, arrived, folder), name=f"upload {job.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def close(self) -> None:
        """End all uploads: those that wait at once, running ones before their next file or piece of embedding."""
        self._ending.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _check_room(self, caller: Caller) -> None:
        waiting = [job for job in self._jobs.values() if job.is_open]
        own = sum(job.owner == caller.key_id for job in waiting)
        if self._ending.is_set() or len(waiting) >= MAX_OPEN or (not caller.is_local and own >= MAX_OPEN // 2):
            raise ApiError(
                429,
                "Too many uploads wait to be indexed. Send this one again once some are done.",
                kind="rate_limit_error",
                code="too_many_uploads",
                headers={"Retry-After": "10"},
            )

    def _remember(self, job: UploadJob) -> None:
        self._jobs[job.id] = job
        while len(self._jobs) > _MOST_REMEMBERED:
            del self._jobs[next(known.id for known in self._jobs.values() if not known.is_open)]

    async def _index(self, job: UploadJob, arrived: Sequence[PendingUpload], folder: Path) -> None:
        with self._watch.watched(job.owner, Validity(job.stop)):
            await self._indexed(job, arrived, folder)

    async def _indexed(self, job: UploadJob, arrived: Sequence[PendingUpload], folder: Path) -> None:
        try:
            # The turn first: an upload that waits for its collection keeps none of another from running.
            async with self._turns.setdefault(job.collection, asyncio.Lock()), self._running:
                if not job.is_stopped:
                    job.status = "running"
                    problem = await asyncio.to_thread(self._fill, job, arrived)
                    job.status, job.error = ("failed", problem) if problem else ("done", None)
        except Exception as error:  # noqa: BLE001 - a failure is data of the job; an unexpected one is logged
            job.status, job.error = "failed", " ".join([str(as_api_error(error)), *job.refused])
        finally:
            if job.is_open:
                job.status, job.error = "failed", "The server ended."
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            logger.info("upload %s of %s files into %s: %s", job.id, len(job.files), job.collection, job.status)

    def _fill(self, job: UploadJob, arrived: Sequence[PendingUpload]) -> str:
        """Index an upload; returns which files could not be read, in words."""

        def on_progress(done: int, total: int, stage: str) -> None:
            if stage in _SAFE_TO_STOP and job.is_stopped:
                raise _Stopped(str(key_ended()))
            if stage in _SAFE_TO_STOP and self._ending.is_set():
                raise _Stopped("The server ended before the files were indexed. Send them again.")
            if stage == "embed":
                job.done, job.total = done, total

        on_progress(0, 0, "wait")
        limit = self._options.max_upload_bytes
        report = fill(job.collection, arrived, self._settings, max_file_bytes=limit, on_progress=on_progress)
        job.left_out, skipped = report.left_out, report.skipped
        unread = len(skipped) + len(job.refused)
        reasons = [*(f"{file.source}: {file.reason}." for file in skipped), *job.refused]
        total = len(job.files) + len(job.refused)
        count = f"{unread} of {total} files could not be read{'; the others are indexed' if unread < total else ''}."
        return " ".join([count, *reasons]) if unread else ""


def _store(
    folder: Path, files: Sequence[tuple[str, BinaryIO]], max_bytes: int
) -> tuple[list[PendingUpload], list[ApiError]]:
    """Copy the files to the folder; returns those that are taken, and why the others are not."""
    arrived, refused = [], []
    names = file_names([sent for sent, _ in files])
    for number, (name, (_, stream)) in enumerate(zip(names, files, strict=True)):
        try:
            if isinstance(name, ApiError):
                raise name
            path = folder / str(number)
            with path.open("wb") as file:
                shutil.copyfileobj(stream, file)
            check_unpacked(path, name, max_bytes=max_bytes)
            arrived.append(PendingUpload(name=name, path=path))
        except ApiError as error:
            refused.append(error)
    return arrived, refused


def uploads_of(request: Request) -> Uploads:
    """Return the uploads of the application."""
    return cast(Uploads, request.app.state.uploads)


UploadsBy = Annotated[Uploads, Depends(uploads_of)]
