"""Addresses at which only this user reaches a Milvus Lite folder, which itself asks for no password.

Where there are Unix sockets, the address is that of one in a folder that only this user can enter. Elsewhere (Windows)
it is a port of loopback with a random password, which no other process knows.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .usable import NotTrusted

if TYPE_CHECKING:
    import grpc

SOCKET = "unix:"
MOST_SOCKET_BYTES = 100
"""Most bytes of a socket's path; systems take 104 to 108."""
SHORT_FOLDERS = ("/tmp", "/var/tmp")
"""Folders for sockets where the usual ones have long paths."""
_MISREAD = frozenset("%?#")
"""gRPC reads the path as that of an address: it decodes %20, and cuts off what follows "?" or "#"."""
_USER = "judgetree"


def has_unix_sockets() -> bool:
    """Return whether folders can be served at Unix sockets here."""
    return hasattr(socket, "AF_UNIX")


def earlier_address(path: Path, published: str) -> str:
    """Return the address that a folder was served at before, if only this user can have put a socket there; else ""."""
    before = Path(published.removeprefix(SOCKET))
    is_ours = has_unix_sockets() and before.name == _name_of(path) and is_private(before.parent)
    return f"{SOCKET}{before}" if is_ours and not _problem(before.parent.parent, before) else ""


def socket_address(path: Path) -> str:
    """Return the address of a new socket for a Milvus Lite folder, in a folder that only this user can enter.

    The folder is ``judgetree-UID`` below ``XDG_RUNTIME_DIR`` or a folder for temporary files, else, where others have
    taken these names, one with a random name. It is made if it does not exist.

    Raises:
        NotTrusted: No such folder is possible; the message says why, and what to set.
    """
    name, problems = _name_of(path), []
    bases = list(_bases())
    for base in bases:
        folder = base / f"judgetree-{os.getuid()}"
        problem = _problem(base, folder / name)
        if not problem:
            if _made_private(folder):
                return f"{SOCKET}{folder / name}"
            problem = f"{folder} cannot be made, or is not this user's alone"
        problems.append(problem)
    for base in bases:
        with suppress(OSError):
            if not _problem(base, base / "judgetree-12345678" / name):
                return f"{SOCKET}{Path(tempfile.mkdtemp(prefix='judgetree-', dir=base), name)}"
    raise NotTrusted(
        f"{path} cannot be opened: there is no place for a socket that this user alone can reach "
        f"({'; '.join(problems) or 'there is no folder for temporary files'}). Set XDG_RUNTIME_DIR to an existing "
        f"folder of yours whose path has at most {_most_base_bytes()} bytes and none of the characters % ? #."
    )


def remake_folder(address: str) -> None:
    """Make the folder of a socket anew if a cleaner of temporary files has removed it.

    Raises:
        NotTrusted: Others can enter the folder, or it cannot be made.
    """
    folder = Path(address.removeprefix(SOCKET)).parent
    if not _made_private(folder):
        raise NotTrusted(f"{folder} is not this user's alone, so that no socket is put there. Remove it.")


def _made_private(folder: Path) -> bool:
    """Make a folder that only this user can enter; return whether it is one, made now or before."""
    with suppress(OSError):
        folder.mkdir(0o700, exist_ok=True)
    return is_private(folder)


def is_private(folder: Path) -> bool:
    """Return whether a path is a folder, no link to one, that belongs to this user and lets no other in."""
    with suppress(OSError):
        status = folder.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return False


def new_password() -> str:
    """Return a random password for a port of loopback."""
    return secrets.token_urlsafe(32)


def port_address(port: int, password: str) -> str:
    """Return the address of a port of loopback, with the password that clients of pymilvus send."""
    return f"http://{_USER}:{password}@127.0.0.1:{port}"


def password_check(password: str) -> grpc.ServerInterceptor:
    """Return what lets a gRPC server refuse every call without the password."""
    import grpc  # noqa: PLC0415 - takes a second to import

    expected = base64.b64encode(f"{_USER}:{password}".encode())

    def refuse(_: object, context: grpc.ServicerContext) -> None:
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "This Milvus Lite serves one process, which alone knows its password."
        )

    class PasswordCheck(grpc.ServerInterceptor):  # type: ignore[misc] # grpc has no types
        def intercept_service(self, continuation: object, details: object) -> object:
            sent = dict(details.invocation_metadata).get("authorization", "")  # type: ignore[attr-defined]
            if hmac.compare_digest(str(sent).encode(), expected):
                return continuation(details)  # type: ignore[operator]
            return grpc.unary_unary_rpc_method_handler(refuse)

    return PasswordCheck()


def _name_of(path: Path) -> str:
    return hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:16]


def _bases() -> Iterator[Path]:
    given = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), *SHORT_FOLDERS)
    for base in dict.fromkeys(Path(one).absolute() for one in given if one):
        if base.is_dir():
            yield base


def _problem(base: Path, place: Path) -> str:
    """Return why a socket cannot be at a place below a folder; ``""`` if it can."""
    if len(os.fsencode(place)) > MOST_SOCKET_BYTES:
        return f"the path of {base} is too long"
    if _MISREAD & set(str(place)):
        return f"the path of {base} has one of % ? #"
    if any(_lets_others_rename(each) for each in (base.resolve(), *base.resolve().parents)):
        return f"other users can rename what is in {base}"
    return ""


def _lets_others_rename(folder: Path) -> bool:
    try:
        bits = folder.stat().st_mode
    except OSError:
        return True
    return bool(bits & stat.S_IWOTH) and not bits & stat.S_ISVTX


def _most_base_bytes() -> int:
    return MOST_SOCKET_BYTES - len(f"/judgetree-{os.getuid()}/") - len(_name_of(Path()))
