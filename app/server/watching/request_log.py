"""One line of the log for each request, without a word of questions, answers, documents or keys."""

from __future__ import annotations

import json
import logging
import re
import uuid
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import Scope

from ....modules.settings import without_secrets
from ..serving.caller import LOCAL

logger = logging.getLogger("judgetree.server")

_REQUEST_ID = re.compile(r"[\w.-]{1,128}", re.ASCII)
_UNKNOWN = "none"


def request_id_of(scope: Scope) -> str:
    """Return the id of a request: its ``X-Request-Id`` if that is a plain name, else a new one."""
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def door_of(scope: Scope) -> str:
    """Return the path of the door with the names of its parameters, ``none`` where there is no door."""
    return str(getattr(scope.get("route"), "path", "") or _UNKNOWN)


def log_request(scope: Scope, request_id: str, *, status: int, seconds: float) -> None:
    """Log a request with its door, status, duration and caller."""
    caller = scope.get("state", {}).get("caller", LOCAL)
    fields = {
        "request_id": request_id,
        "method": scope["method"],
        "door": door_of(scope),
        "thread_id": scope.get("path_params", {}).get("thread_id", ""),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "caller": caller.name,
    }
    logger.info("%s %s %d", fields["method"], fields["door"], status, extra={"request": fields})


class PlainLines(logging.Formatter):
    """Formats each record as text, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines, with those of an exception."""
        return without_secrets(super().format(record))


class JsonLines(logging.Formatter):
    """Formats each record as a JSON document on a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; text of an exception goes without secrets."""
        document: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            document["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(document | getattr(record, "request", {}), ensure_ascii=False)
