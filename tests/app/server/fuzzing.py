"""Requests that the server's own description allows, and ones that it does not, made up by schemathesis."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import requests
import schemathesis
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup, ServerError
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

_LONGEST_URL = 4_000
_TIMEOUT_S = 60
_LONGEST_WAIT_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A request whose answer is not as it should be."""

    operation: str
    """Method and path."""
    is_server_error: bool
    """Whether the answer is a server error or none at all; else it is not as described."""
    words: str
    """What is wrong, and the request as a command."""


@dataclass(frozen=True, kw_only=True)
class Fuzzing:
    """Requests to a running server."""

    address: str
    failed: list[Failed] = field(default_factory=list)
    """All of them, in order."""

    def fuzz(self, *, cases: int, seeded: int) -> int:
        """Send about ``cases`` requests, spread over all operations; returns how many were sent.

        Hypothesis sends none twice, so that an operation with few possible requests gets fewer.
        """
        schema = schemathesis.openapi.from_dict(httpx.get(f"{self.address}/openapi.json", timeout=60).json())
        operations = [found.ok() for found in schema.get_all_operations()]
        each = math.ceil(cases / len(operations) / len(GenerationMode))
        sent = 0

        def send(case: schemathesis.Case) -> None:
            nonlocal sent
            # A longer head is refused before it is read to its end, which a client may see as a reset connection.
            assume(len(str(case.as_transport_kwargs(base_url=self.address)["url"])) < _LONGEST_URL)
            assume(len(str(case.query)) < _LONGEST_URL)
            sent += 1
            if isinstance(wait := (case.query or {}).get("wait"), float | int) and wait > _LONGEST_WAIT_S:
                case.query["wait"] = wait % _LONGEST_WAIT_S  # a tree may be waited for half a minute
            self._check(case)

        for operation in operations:
            for mode in GenerationMode:
                _run(send, operation.as_strategy(generation_mode=mode), most=each, seeded=seeded)
        return sent

    def _check(self, case: schemathesis.Case) -> None:
        name = f"{case.method} {case.path}"
        try:
            case.call_and_validate(base_url=self.address, checks=_CHECKS, timeout=_TIMEOUT_S)
        except FailureGroup as group:
            for failure in group.exceptions:
                is_server_error = isinstance(failure, ServerError)
                self.failed.append(Failed(operation=name, is_server_error=is_server_error, words=str(group)))
        except requests.RequestException as error:
            words = f"{error!r}: {case.as_curl_command()}"
            self.failed.append(Failed(operation=name, is_server_error=True, words=words))


def _run(send: Callable[[schemathesis.Case], None], cases: object, *, most: int, seeded: int) -> None:
    settled = settings(max_examples=most, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    with suppress(Unsatisfiable):  # an operation without parameters cannot be asked wrongly
        seed(seeded)(settled(given(case=cases)(send)))()
