"""Addresses of services: the secrets that they ask for kept apart, and their names in caches and records."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import GetCoreSchemaHandler, SecretStr
from pydantic_core import PydanticCustomError, core_schema

T = TypeVar("T")

_NETLOC_END = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
_PATHS = frozenset({"sqlite", "file"})
"""Schemes of files, whose names may hold ``@`` and ``?``."""
_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|auth|sig|cred", re.IGNORECASE)
_LONG_VALUE = 16
"""Characters from which any value in a query string counts as a secret."""


class Address(str):
    """A URL, or the spec of a model such as ``URL#MODEL``, whose text is scheme, host, port, path and model only.

    User, password and query string are cut off and travel with the object, so that whatever is printed, compared,
    hashed or saved of it holds no secret. Text that is no URL stays as it is. String methods give plain text, without
    the secrets.

    >>> address = Address("http://ada:lovelace@127.0.0.1:8000/v1?api_key=k#qwen")
    >>> address, address.endpoint, address.headers()
    ('http://127.0.0.1:8000/v1#qwen', 'http://127.0.0.1:8000/v1', {'Authorization': 'Basic YWRhOmxvdmVsYWNl'})
    """

    __slots__ = ("_query", "_user")
    _user: SecretStr
    _query: SecretStr

    def __new__(cls, text: str = "") -> Self:
        """Cut the secrets off a text; an ``Address`` comes back as it is."""
        if isinstance(text, cls):
            return text
        clean, user, query = _cut(text)
        self = super().__new__(cls, clean)
        self._user, self._query = SecretStr(user), SecretStr(query)
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.plain_serializer_function_ser_schema(str.__str__)
        )

    @classmethod
    def _validated(cls, value: object) -> Self:
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "Input should be a valid string")
        return cls(value)

    @property
    def endpoint(self) -> Address:
        """The address without ``#MODEL``, secrets included."""
        return self._with_text(self.partition("#")[0])

    @property
    def model(self) -> str:
        """What stands behind ``#``; empty if nothing does."""
        return self.partition("#")[2]

    def joined(self, path: str) -> Address:
        """Return the address with ``path`` added to its own, secrets included."""
        return self._with_text(f"{self.rstrip('/')}/{path}")

    def with_secrets_of(self, other: Address) -> Address:
        """Return the same address with the secrets of another one, if it has none itself."""
        return self if self._user or self._query else other._with_text(str.__str__(self))

    def revealed(self) -> str:
        """Return the whole address, for clients that take user and password from nowhere else."""
        scheme, mark, rest = self.partition("://")
        rest, hash_mark, model = rest.partition("#")
        user, query = self._user.get_secret_value(), self._query.get_secret_value()
        return f"{scheme}{mark}{user}{'@' * bool(user)}{rest}{'?' * bool(query)}{query}{hash_mark}{model}"

    def credentials(self) -> str:
        """``user:password``, or the one word that stands there; empty if the address has none."""
        return unquote(self._user.get_secret_value())

    def headers(self) -> dict[str, str]:
        """Return the HTTP header that says user and password; none without them."""
        if not self._user:
            return {}
        user, _, password = self._user.get_secret_value().partition(":")
        pair = f"{unquote(user)}:{unquote(password)}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def query_params(self) -> dict[str, str]:
        """Return the query string, by name."""
        return dict(parse_qsl(self._query.get_secret_value(), keep_blank_values=True))

    def secrets(self) -> tuple[str, ...]:
        """What must not be shown of it; see ``redaction.starred``."""
        user, colon, password = self._user.get_secret_value().partition(":")
        words = {self.credentials(), unquote(password) if colon else unquote(user)}
        words |= {header.partition(" ")[2] for header in self.headers().values()}
        words |= {
            value
            for name, value in self.query_params().items()
            if _SECRET_NAME.search(name) or len(value) >= _LONG_VALUE
        }
        return tuple(sorted(words - {""}))

    def _with_text(self, text: str) -> Address:
        address = str.__new__(Address, text)
        address._user, address._query = self._user, self._query
        return address


def with_addresses(params: Mapping[str, T]) -> dict[str, T | Address]:
    """Return the same parameters, each URL among them as an ``Address``."""
    return {name: Address(value) if isinstance(value, str) else value for name, value in params.items()}


def _cut(text: str) -> tuple[str, str, str]:
    """Text without secrets, user part, query string."""
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() in _PATHS:
        return text, "", ""
    netloc, tail = _split_netloc(rest)
    user, at, host = netloc.rpartition("@")
    if not at and "@" in tail and not _HOST_AND_PORT.fullmatch(netloc):
        # A password with /, ? or # that are not escaped: its first piece stands where a port should.
        user, _, rest = rest.rpartition("@")
        host, tail = _split_netloc(rest)
    before_model, hash_mark, model = tail.partition("#")
    path, _, query = before_model.partition("?")
    return f"{scheme}://{host}{path}{hash_mark}{model}", user, query


def _split_netloc(rest: str) -> tuple[str, str]:
    end = _NETLOC_END.search(rest)
    return (rest[: end.start()], rest[end.start() :]) if end else (rest, "")


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
