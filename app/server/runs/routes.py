"""All doors below ``/v1/runs``."""

from __future__ import annotations

from fastapi import APIRouter

from ..serving.errors import ErrorAnswer
from . import comparison, listing, questions, report, trees

router = APIRouter(responses={status: {"model": ErrorAnswer} for status in (409, 501)})
# "compare" before the names of runs, of which none can be called so.
for each in (listing, comparison, questions, trees, report):
    router.include_router(each.router)
