"""``GET /`` and ``/assets/…``: the page and its files, which need no key and make no request elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import PurePosixPath

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ....graphs.search.policies.registry import POLICIES
from ....graphs.search.policies.treequest_policy import TreeQuest
from ..serving.caller import LOCAL
from ..serving.errors import ApiError
from ..serving.request_keys import QuestionLimits
from ..serving.served import ServedBy, asks_sub_questions
from .bundle import bundle

router = APIRouter(include_in_schema=False)

PAGE = "index.html"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the files that are served; all others are not."""
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
"""Content-Security-Policy of the page: its own files alone, and no markup that scripts make."""
_UPLOADS = "/v1/collections/{name}/documents"
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file of the page."""

    body: bytes
    packed: bytes
    """The body by gzip."""
    kind: str
    """Media type."""
    tag: str
    """Entity tag."""
    keeps: bool
    """True if what its path stands for never changes."""

    @classmethod
    def of(cls, path: str, body: bytes, *, keeps: bool = False) -> Asset:
        """Compress a file, whose suffix gives its media type."""
        return cls(
            body=body,
            packed=gzip.compress(body, mtime=0),
            kind=_KINDS[PurePosixPath(path).suffix],
            tag=hashlib.sha256(body).hexdigest()[:32],
            keeps=keeps,
        )


@cache
def assets() -> dict[str, Asset]:
    """Return the files of the page by path, such as ``js/main.js``, and those that join them."""
    files = dict(_files_below(resources.files(__package__), PurePosixPath()))
    joined = bundle(files, PAGE)
    plain = {path: Asset.of(path, body) for path, body in {**files, PAGE: joined.page}.items()}
    return plain | {path: Asset.of(path, body, keeps=True) for path, body in joined.files.items()}


def _files_below(folder: Traversable, place: PurePosixPath) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in folder.iterdir():
        path = place / each.name
        if each.is_dir():
            found += _files_below(each, path)
        elif path.suffix in _KINDS:
            found.append((str(path), each.read_bytes()))
    return found


@router.get("/")
async def page(request: Request) -> Response:
    """Return the page."""
    return _answer(request, assets()[PAGE], {"Content-Security-Policy": POLICY})


@router.get("/assets/options.json")
async def choices(request: Request, served: ServedBy) -> Response:
    """Return what the page offers to choose, besides the models."""
    options, limits = served.options, served.limits_of(LOCAL)
    given = {
        "policies": [name for name in POLICIES if name != TreeQuest.name or find_spec("treequest")],
        "judging": [system for system in options.systems if asks_sub_questions(system)],
        "limits": {"topk": None, **{name: getattr(limits, name) for name in QuestionLimits.model_fields}},
        "max_question_chars": options.max_question_chars,
        "needs_key": options.demands_keys,
        "takes_uploads": _UPLOADS in request.app.openapi()["paths"],
    }
    return Response(json.dumps(given), media_type="application/json", headers=_HEADERS)


@router.get("/assets/{path:path}")
async def asset(request: Request, path: str) -> Response:
    """Return a file of the page.

    Raises:
        ApiError: HTTP 404: there is none.
    """
    found = assets().get(path)
    if found is None or path == PAGE:
        raise ApiError.not_found("file", path)
    return _answer(request, found, {})


def _answer(request: Request, found: Asset, headers: Mapping[str, str]) -> Response:
    is_packed = _takes_gzip(request.headers.get("Accept-Encoding", ""))
    tag = f'"{found.tag}-gzip"' if is_packed else f'"{found.tag}"'
    given = {**_HEADERS, **(_FOR_EVER if found.keeps else {}), **headers, "ETag": tag, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=given)
    if is_packed:
        given["Content-Encoding"] = "gzip"
    return Response(found.packed if is_packed else found.body, media_type=found.kind, headers=given)


def _takes_gzip(accepted: str) -> bool:
    """Read ``Accept-Encoding``.

    >>> [_takes_gzip(accepted) for accepted in ("", "br, gzip", "gzip;q=0", "GZIP; q=0.5")]
    [False, True, False, True]
    """
    named = (part.casefold().replace(" ", "").partition(";q=") for part in accepted.split(","))
    return any(coding == "gzip" and (not weight or weight.strip("0.") != "") for coding, _, weight in named)
