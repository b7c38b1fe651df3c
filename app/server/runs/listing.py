"""``GET /v1/runs``: the runs with their headline figures."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from ..serving.errors import ApiError
from .figures import SUMMARY_EXAMPLE, ListedRun, summarize
from .folder import FoundRun, RunsBy, RunsFolder

router = APIRouter(prefix="/v1/runs", tags=["runs"])


class RunList(BaseModel):
    """A page of the runs."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [SUMMARY_EXAMPLE], "total": 1}})

    data: list[ListedRun]
    """Runs, the most recently started first."""
    total: int
    """Number of all runs."""


@router.get("")
async def list_runs(
    runs: RunsBy,
    limit: Annotated[int, Query(ge=1, le=100, description="Most runs.")] = 20,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Runs to leave out first.")] = 0,
) -> RunList:
    """List the runs; one with a new answer is scored again, which takes some seconds for some hundred questions."""
    found = await asyncio.to_thread(runs.all)
    page = found[offset : offset + limit]
    return RunList(data=[await _summary(runs, run) for run in page], total=len(found))


async def _summary(runs: RunsFolder, run: FoundRun) -> ListedRun:
    """Return the figures of a run; of one that cannot be read, why."""
    try:
        return await runs.made_of(run, summarize, keep=1_000)
    except ApiError as error:
        return ListedRun(name=run.name, started=run.started, problem=str(error))
