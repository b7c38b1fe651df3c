"""A small HTTP proxy on loopback, which answers tunnels and requests in absolute form as it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def refusal(status: str) -> bytes:
    """An answer without a body."""
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@dataclass
class SmallProxy:
    """What a proxy was asked."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    """Request lines, without the version."""
    heads: list[str] = field(default_factory=list)


@contextmanager
def small_proxy(answer: bytes = OK, *, tunnel_to: int = 0) -> Iterator[SmallProxy]:
    """A proxy that gives one answer to everything; tunnels lead to a port of loopback if there is one."""
    seen, over = SmallProxy(), threading.Event()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def speak(client: socket.socket) -> None:
        with suppress(OSError), client:
            head = b""
            while b"\r\n\r\n" not in head and (piece := client.recv(65_536)):
                head += piece
            seen.heads.append(head.decode("latin-1"))
            seen.asked.append(head.decode("latin-1").partition(" HTTP/")[0])
            if not (head.startswith(b"CONNECT") and tunnel_to):
                client.sendall(answer)
                return
            with socket.create_connection(("127.0.0.1", tunnel_to)) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()

    def accept() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                client, _ = listener.accept()
                client.settimeout(30)
                threading.Thread(target=speak, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        seen.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield seen
        finally:
            over.set()
            accepting.join()
