"""What an endpoint is called in caches and records: where it is, without what it takes to be let in."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

OPENAI_BASE_URL = "https://api.openai.com/v1"
"""Address of OpenAI's own endpoint."""
LOCAL_ENDPOINT = "local:"
"""Name of the model that runs in this process, whose address is another one in every process."""

_PORTS = {"http": 80, "https": 443}


def endpoint_name(address: str, names: Iterable[tuple[str, str]] = ()) -> str:
    """Host, port and path of an address, or the name that ``names`` gives to it.

    User, password, query and model are left out. ``names`` are pairs of such an address, with
    or without ``http://``, and a name, under which an endpoint that moves is the same one.

    >>> endpoint_name("https://ada:secret@Example.org/v1/?key=k#model")
    'example.org:443/v1'
    >>> endpoint_name("http://10.0.0.7:8000/v1", [("10.0.0.7:8000/v1", "lab")])
    'lab'
    """
    name = _place(address)
    return {_place(given): own for given, own in names}.get(name, name)


def _place(address: str) -> str:
    url = urlsplit(address if "://" in address else f"http://{address}")
    return f"{url.hostname or ''}:{url.port or _PORTS.get(url.scheme, '')}{url.path.rstrip('/')}"
