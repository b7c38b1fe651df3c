"""One run: its figures as data, and its report as a page."""

from __future__ import annotations

import re
from html import unescape
from typing import cast

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from pydantic import ConfigDict, JsonValue
from pydantic.config import JsonDict

from ..serving.segment_route import SegmentRoute
from .figures import SUMMARY_EXAMPLE, ListedRun, summarize
from .folder import RunName, RunsBy
from .plain import plain
from .scored import drawn, scored

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=SegmentRoute)

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_DETAILS: JsonDict = {"identity": {"llm": "openai:gpt-4o", "topk": 3}, "report": {"systems": [], "failures": []}}


class RunDetails(ListedRun):
    """A run with its settings and its whole report."""

    model_config = ConfigDict(json_schema_extra={"example": {**SUMMARY_EXAMPLE, **_DETAILS}})

    identity: dict[str, JsonValue]
    """What all answers of the run share: data, models, options and versions of prompts."""
    report: dict[str, JsonValue]
    """Means, comparisons, kinds of failures and figures of judges, as of ``judgetree eval report --json``."""


@router.get("/{run}")
async def one_run(run: RunName, runs: RunsBy) -> RunDetails:
    """Return a run with its report as data; the first request of a run takes some seconds."""
    found = runs.find(run)
    summary = await runs.made_of(found, summarize, keep=1_000)
    both = await scored(runs, run)
    report = await runs.work(lambda: plain(both.report.to_document() | {"run": found.name}))
    identity = plain(both.run.manifest.get("identity") or {})
    return RunDetails.model_validate(summary.model_dump() | {"identity": identity, "report": report})


@router.get(
    "/{run}/report",
    response_class=Response,  # whose errors are JSON
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def run_report(run: RunName, runs: RunsBy) -> HTMLResponse:
    """Return the report as one page, with every question and its search trees; it makes no request."""
    page = await drawn(runs, run)
    return HTMLResponse(page, headers={"Content-Security-Policy": policy_of(page)})


def policy_of(page: str) -> str:
    """Return the policy that a page of judgetree has in itself, for its header, where it may also forbid frames."""
    found = cast(re.Match[str], _POLICY.search(page))
    return f"{unescape(found[1])}; frame-ancestors 'self'"
