"""What pydantic finds wrong with a value, in words for whoever wrote it."""

from __future__ import annotations

from pydantic import ValidationError


def faults_of(error: ValidationError, *, whole: str = "") -> list[str]:
    """Each fault behind its place, such as ``"facts.0.quote: Field required"``, in the order of the fields.

    ``whole`` is the place of a fault that belongs to no single field.
    """
    return [
        f"{'.'.join(map(str, fault['loc'])) or whole}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]
