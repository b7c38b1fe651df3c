"""A relay between a browser and a server, whose connections can be cut."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Relay(socketserver.ThreadingTCPServer):
    """Passes on what comes and goes."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Pair)
        self.target = ("127.0.0.1", urlsplit(target).port)
        self.open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """Address for the browser."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        """Break all connections off; new ones are made as before."""
        for each in list(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Pair(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as other:
            both = {self.request, other}
            self.server.open |= both
            back = threading.Thread(target=_pass_on, args=(other, self.request), daemon=True)
            back.start()
            _pass_on(self.request, other)
            back.join()
            self.server.open -= both


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            sink.sendall(piece)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relaying(target: str) -> Iterator[Relay]:
    """Relay to a server as long as the context is open."""
    with Relay(target) as relay:
        thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield relay
        finally:
            relay.cut()
            relay.shutdown()
            thread.join()
