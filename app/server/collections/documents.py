"""``POST /v1/collections/{name}/documents``, ``GET /v1/jobs/{id}``: files are sent, and indexed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, get_args

from fastapi import APIRouter, File, Path, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict
from sse_starlette import ServerSentEvent

from ....modules.index.schema import check_documents_name
from ..serving.caller import CallerBy
from ..serving.errors import ApiError
from ..serving.segment_route import SegmentRoute
from ..serving.served import ServedBy
from ..serving.streams import EVENTS, described_events, event_stream, json_event
from ..trees.forms import JSON, wanted_form
from .names import CollectionName
from .uploads import JobStatus, UploadJob, UploadsBy

router = APIRouter(tags=["collections"], route_class=SegmentRoute)

_LOOK_EVERY_S = 0.1
MAX_FILES = 200
"""Most files of one upload."""


class JobAnswer(BaseModel):
    """An upload on its way into a collection."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "9f86d081884c7d659a2feaa0c55ad015",
                "collection": "standards",
                "status": "running",
                "files": ["vessels.md"],
                "done": 10,
                "total": 12,
                "error": None,
                "left_out": {},
            }
        }
    )

    id: str
    collection: str
    status: JobStatus
    """``failed`` also if only some files were refused or could not be read; the others are indexed."""
    files: list[str]
    """Names under which the files are kept, without those that were refused."""
    done: int
    """Chunks that are embedded."""
    total: int
    """Chunks to embed; 0 until the files are read, and if nothing in them is new."""
    error: str | None
    """Why it failed."""
    left_out: dict[str, dict[str, int]]
    """What no chunk holds of the files, such as scanned pages: kinds and their numbers by source."""


@router.post("/v1/collections/{name}/documents", status_code=202)
async def upload_documents(
    name: CollectionName,
    files: Annotated[list[UploadFile], File(min_length=1, max_length=MAX_FILES, description="Documents.")],
    served: ServedBy,
    caller: CallerBy,
    uploads: UploadsBy,
) -> JobAnswer:
    """Add files to a collection, which is made if there is none; a file replaces an earlier upload of its name.

    The answer comes before the files are indexed: ask for the job until its status is ``done`` or ``failed``. Other
    files of the collection stay as they are.
    """
    if not served.may_use(caller, name):
        allowed = ", ".join(served.usable_names(caller) or ()) or "none"
        raise ApiError(
            404, f"There is no collection {name!r:.200} that you may fill. You may fill: {allowed}.", param="name"
        )
    check_documents_name(name, served.settings)
    return _answer(await uploads.add(caller, name, [(file.filename or "", file.file) for file in files]))


@router.get(
    "/v1/jobs/{id}",
    response_model=None,
    responses={200: {"model": JobAnswer, "content": described_events(*get_args(JobStatus))}},
)
async def one_job(
    request: Request,
    job_id: Annotated[str, Path(alias="id", min_length=1, max_length=100, description="Id of an upload's job.")],
    served: ServedBy,
    caller: CallerBy,
    uploads: UploadsBy,
) -> Response:
    """Return how far an upload is; a server remembers the last thousand until it ends.

    With ``Accept: text/event-stream`` an event comes at each change, until the job is done or has failed. The type of
    an event is the status, its data the same document.
    """
    job = uploads.find(caller, job_id)
    if wanted_form(request.headers.get("Accept", "*/*"), (JSON, EVENTS)) == EVENTS:
        return event_stream(_changes(job), heartbeat_s=served.options.heartbeat_s)
    return Response(_answer(job).model_dump_json(), media_type=JSON)


async def _changes(job: UploadJob) -> AsyncIterator[ServerSentEvent]:
    told = None
    while True:
        now = _answer(job)
        if now != told:
            yield json_event(now.model_dump_json(), kind=now.status)
            told = now
        if now.status in ("done", "failed"):
            return
        await asyncio.sleep(_LOOK_EVERY_S)


def _answer(job: UploadJob) -> JobAnswer:
    return JobAnswer.model_validate(job, from_attributes=True)
