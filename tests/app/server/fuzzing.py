"""Requests that the server's own description allows, and ones that it does not, made up by schemathesis."""

from __future__ import annotations

import math
from contextlib import suppress

import httpx
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

_LONGEST_URL = 4_000


def fuzz(address: str, *, cases: int) -> int:
    """Send at least ``cases`` requests, spread over all operations; returns how many were sent.

    Raises:
        Exception: An answer is a server error, or not as described.
    """
    schema = schemathesis.openapi.from_dict(httpx.get(f"{address}/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    each = math.ceil(cases / len(operations) / len(GenerationMode))
    sent = 0
    for operation in operations:
        for kind in GenerationMode:

            @settings(max_examples=each, database=None, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=kind))
            def send(case: schemathesis.Case) -> None:
                nonlocal sent
                # A longer head is refused before it is read to its end, which a client may see as a reset connection.
                assume(len(str(case.as_transport_kwargs(base_url=address)["url"])) < _LONGEST_URL)
                assume(len(str(case.query)) < _LONGEST_URL)
                sent += 1
                case.call_and_validate(base_url=address, checks=_CHECKS, timeout=60)

            with suppress(Unsatisfiable):  # an operation without parameters cannot be asked wrongly
                send()
    return sent
