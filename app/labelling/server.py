"""The server of the labelling page: on loopback, for one annotator, for as long as the command runs.

Other programs and web pages on the machine are kept out by a random token in the address. A page of another site that
resolves its name to 127.0.0.1 (DNS rebinding) sends its own name as ``Host``; one that posts across origins sends its
own ``Origin`` and may not send JSON. All are refused before anything is read.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from ...evaluation.labels.labelling import Labelling
from ...graphs.drawing.html import Json
from ...modules.background.waiting import wait_for_signal
from ...modules.errors import JudgetreeError, SettingsError, faults_of
from .page import GivenLabel, draw_page, save_given

HOST = "127.0.0.1"
MAX_BODY_BYTES = 64 * 1024
_LENGTH_DIGITS = 9
"""Python refuses to read numbers of thousands of digits."""
_POLL_S = 0.05
_NAMES = frozenset({HOST, "localhost"})
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LabelServer:
    """Serves the page of one annotator.

    ::

        with LabelServer(work) as server:
            print(server.url)
            server.wait()
    """

    def __init__(self, work: Labelling, *, port: int = 0) -> None:
        """Listen at once; port 0 takes any free port.

        Raises:
            SettingsError: The port is taken or not allowed.
        """
        self._token = secrets.token_urlsafe(32)
        try:
            self._http = ThreadingHTTPServer((HOST, port), partial(_Handler, work, self._token))
        except OSError as error:
            raise SettingsError(
                f"Cannot listen on port {port}: {error.strerror}. Give a free --port, or 0 for any."
            ) from error
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(_POLL_S,), name="labelling", daemon=True)

    @property
    def url(self) -> str:
        """Address of the page, with its token."""
        return f"http://{HOST}:{self._http.server_address[1]}/{self._token}/"

    def wait(self) -> None:
        """Wait for Ctrl-C."""
        try:
            wait_for_signal()
        except KeyboardInterrupt:
            return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request: the page, or a label."""

    server_version, sys_version = "judgetree", ""
    timeout = 30
    """Seconds for which a client may be silent."""

    def __init__(self, work: Labelling, token: str, *connection: object) -> None:
        self._work = work
        self._token = token
        super().__init__(*connection)  # type: ignore[arg-type]

    def handle(self) -> None:
        """Answer a request; one whose client leaves, or is silent for too long, is dropped."""
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def do_GET(self) -> None:
        """Send the page."""
        if not self._is_allowed(""):
            return
        try:
            page = draw_page(self._work)
        except JudgetreeError as error:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})
            return
        self._send(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Save a label."""
        if not self._is_allowed("label") or not self._is_own_json():
            return
        try:
            given = GivenLabel.model_validate_json(self.rfile.read(int(self.headers["Content-Length"])))
            self._send_json(HTTPStatus.OK, save_given(self._work, given))
        except ValidationError as error:
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": "; ".join(faults_of(error))})
        except JudgetreeError as error:
            self._send_json(HTTPStatus.CONFLICT, {"error": str(error)})

    def _is_allowed(self, page: str) -> bool:
        """Check name and token; else refuse without a word about what is here."""
        if self.headers.get("Host", "").partition(":")[0].lower() not in _NAMES:
            self._send_json(HTTPStatus.FORBIDDEN, {"error": "Open the page under the address that was printed."})
            return False
        if not hmac.compare_digest(self.path.encode(), f"/{self._token}/{page}".encode()):
            self._send_json(HTTPStatus.NOT_FOUND, {"error": "There is nothing here."})
            return False
        return True

    def _is_own_json(self) -> bool:
        """Check that the page itself sends JSON of a sane size."""
        if self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            self._send_json(HTTPStatus.FORBIDDEN, {"error": "Only the page itself may save labels."})
            return False
        if self.headers.get_content_type() != "application/json":
            self._send_json(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, {"error": "Send JSON."})
            return False
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > _LENGTH_DIGITS or int(length) > MAX_BODY_BYTES:
            self._send_json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"Send at most {MAX_BODY_BYTES} bytes."})
            return False
        return True

    def _send_json(self, status: HTTPStatus, document: Json) -> None:
        self._send(status, json.dumps(document).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep requests, and so the token, out of the terminal."""
