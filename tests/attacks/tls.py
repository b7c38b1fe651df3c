"""Servers whose TLS is wrong: certificates that prove nothing, handshakes that break off, and the wrong protocol."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from .servers import GOOD, reply

Fault = Callable[[socket.socket, ssl.SSLContext, threading.Event], None]
"""Speaks with one client, until it is done or the event is set."""

_HELLO = b"\x16\x03\x03"
_REPLY = reply("200 OK", GOOD)


def _encrypted(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """All as it should be, but for the certificate."""
    with context.wrap_socket(client, server_side=True) as secure:
        secure.recv(65_536)
        secure.sendall(_REPLY)


def _silent(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    over.wait()


def _closes(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    client.recv(1)


def _plain(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    client.recv(65_536)
    client.sendall(_REPLY)


def _garbage(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    client.recv(65_536)
    client.sendall(b"\x00\xff" * 32_768)


def _alert(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    client.recv(65_536)
    client.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # fatal: handshake failure


def _half_record(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    client.recv(65_536)
    client.sendall(_HELLO + b"\x40\x00" + b"\x02" * 100)


def _endless_hello(client: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """Handshake records without end, each of which is a hello request that clients skip."""
    client.recv(65_536)
    while not over.is_set():
        client.sendall((_HELLO + b"\x00\x04\x00\x00\x00\x00") * 100)


FAULTS: Mapping[str, Fault] = {
    "self-signed": _encrypted,
    "silent-handshake": _silent,
    "closed-handshake": _closes,
    "plain-http-on-a-tls-port": _plain,
    "garbage-handshake": _garbage,
    "alert": _alert,
    "half-record": _half_record,
    "endless-hello": _endless_hello,
}
"""What is wrong behind an address that begins with https."""


def _make_certificate(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@contextmanager
def faulty_tls(fault: Fault, folder: Path) -> Iterator[str]:
    """The host and port of a server with a fault, for as long as the context is open."""
    context, over = _make_certificate(folder), threading.Event()

    def speak(client: socket.socket) -> None:
        with suppress(OSError), client:
            fault(client, context, over)

    def accept() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                client, _ = listener.accept()
                client.settimeout(None)
                threading.Thread(target=speak, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            accepting.join()
