"""Addresses of services, with their secrets kept apart, and the names of endpoints in caches and records."""

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
"""Schemes of files, whose names may contain ``@`` and ``?``."""
_DATABASES = frozenset({"postgresql", "postgres", "redis", "rediss"})
"""Schemes whose paths hold no ``@``, so that all before the last one is user and password."""
_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|auth|sig|cred", re.IGNORECASE)
_LONG_VALUE = 16
"""Least length of a query value that counts as a secret whatever its name."""


class Address(str):
    """A URL, or a model spec such as ``URL#MODEL``, whose text is only scheme, host, port, path and model.

    User, password and query string are hidden attributes, so that no secret is printed, compared, hashed or saved. Text
    that is not a URL is unchanged. String methods return plain text without the secrets.

    >>> address = Address("http://ada:lovelace@127.0.0.1:8000/v1?api_key=k#qwen")
    >>> address, address.endpoint, address.headers()
    ('http://127.0.0.1:8000/v1#qwen', 'http://127.0.0.1:8000/v1', {'Authorization': 'Basic YWRhOmxvdmVsYWNl'})
    """

    __slots__ = ("_query", "_user")
    _user: SecretStr
    _query: SecretStr

    def __new__(cls, text: str = "") -> Self:
        """Separate the secrets from a text; an ``Address`` is returned unchanged."""
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
        address = cls(value)
        try:
            if "://" in address:
                _place(address)
        except ValueError as error:  # an open bracket, or a port that is not a number; the text may hold a key
            raise PydanticCustomError("address", "Input is no address of a server") from error
        return address

    @property
    def endpoint(self) -> Address:
        """The address without ``#MODEL``, secrets included."""
        return self._with_text(self.partition("#")[0])

    @property
    def model(self) -> str:
        """The part after ``#``; ``""`` without one."""
        return self.partition("#")[2]

    @property
    def has_cut_secret(self) -> bool:
        """Whether user or password hold ``/``, ``?`` or ``#``, which clients take for their end."""
        return _NETLOC_END.search(self._user.get_secret_value()) is not None

    def joined(self, path: str) -> Address:
        """Return the address with ``path`` appended, secrets included."""
        return self._with_text(f"{self.rstrip('/')}/{path}")

    def with_secrets_of(self, other: Address) -> Address:
        """Return the address with the secrets of ``other`` if it has none itself."""
        return self if self._user or self._query else other._with_text(str.__str__(self))

    def revealed(self) -> str:
        """Return the whole address with its secrets, for clients that need it in one text."""
        scheme, mark, rest = self.partition("://")
        rest, hash_mark, model = rest.partition("#")
        user, query = self._user.get_secret_value(), self._query.get_secret_value()
        return f"{scheme}{mark}{user}{'@' * bool(user)}{rest}{'?' * bool(query)}{query}{hash_mark}{model}"

    def credentials(self) -> str:
        """Return ``user:password``, or the single word in their place; ``""`` without either."""
        return unquote(self._user.get_secret_value())

    def headers(self) -> dict[str, str]:
        """Return the HTTP header of user and password; empty without them."""
        if not self._user:
            return {}
        user, _, password = self._user.get_secret_value().partition(":")
        pair = f"{unquote(user)}:{unquote(password)}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def query_params(self) -> dict[str, str]:
        """Return the parameters of the query string by name."""
        return dict(parse_qsl(self._query.get_secret_value(), keep_blank_values=True))

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not be shown, for ``redaction.starred``."""
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
    """Return the parameters with each text as an ``Address``."""
    return {name: Address(value) if isinstance(value, str) else value for name, value in params.items()}


def _cut(text: str) -> tuple[str, str, str]:
    """Return the text without secrets, the user part, and the query string."""
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() in _PATHS:
        return text, "", ""
    netloc, tail = _split_netloc(rest)
    user, at, host = netloc.rpartition("@")
    if scheme.lower() in _DATABASES and "@" in tail:
        path, mark, query = rest.partition("?")
        if "=" not in query.partition("@")[0]:  # no option, so that the question mark is of the password
            path, mark, query = rest, "", ""
        user, _, path = path.rpartition("@")
        host, tail = _split_netloc(f"{path}{mark}{query}")
    elif not at and "@" in tail and not _HOST_AND_PORT.fullmatch(netloc):
        # A password with an unescaped /, ? or #: its first piece is in the place of a port.
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
"""Name of the model that runs in this process, whose address differs between processes."""

_PORTS = {"http": 80, "https": 443}


def endpoint_name(address: str, names: Iterable[tuple[str, str]] = ()) -> str:
    """Return host, port and path of an address, or its name in ``names``.

    User, password, query and model are left out. ``names`` are pairs of such an address, with or without
    ``http://``, and a name that stays when the endpoint moves.

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
