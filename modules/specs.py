"""Specs of parts with parameters, such as ``mcts:c=1.4,backup=mean``."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from .errors import SettingsError, did_you_mean

T = TypeVar("T")


def name_in(spec: str) -> str:
    """Return the name in a spec.

    >>> name_in("mcts:c=1.4")
    'mcts'
    """
    return spec.partition(":")[0].strip()


def params_in(spec: str) -> dict[str, str]:
    """Return the parameters in a spec, as texts.

    >>> params_in("mcts:c=1.4,backup=mean")
    {'c': '1.4', 'backup': 'mean'}

    Raises:
        SettingsError: A parameter has no value, or is given twice.
    """
    params: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in spec.partition(":")[2].split(","))):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not (name and equals and value) or name in params:
            raise SettingsError(f"{part!r} in {spec!r} is not allowed. Write name:parameter=value,parameter=value.")
        params[name] = value
    return params


@functools.cache  # making one takes longer than a question may spend on its specs
def _adapter_of(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(type[Any], kind))


def parse_spec(what: str, spec: str, kinds: Mapping[str, type[T]]) -> T:
    """Make an object of the class that a spec names, a dataclass whose fields are its parameters.

    Raises:
        SettingsError: The name or a parameter is unknown, or a value has the wrong type or size.
    """
    if not isinstance(spec, str):
        raise SettingsError(
            f"{what}={spec!r:.80} is no text. Allowed: {', '.join(kinds)}, with parameters as NAME:A=B."
        )
    name, params = name_in(spec), params_in(spec)
    if name not in kinds:
        raise SettingsError(f"Unknown {what} {name!r}.{did_you_mean(name, kinds)} Allowed: {', '.join(kinds)}.")
    kind = kinds[name]
    known = [each.name for each in fields(kind) if each.init]  # type: ignore[arg-type]
    if unknown := [param for param in params if param not in known]:
        allowed = ", ".join(known) or "none"
        near = did_you_mean(unknown[0], known)
        raise SettingsError(f"The {what} {name!r} has no parameter {unknown[0]!r}.{near} Allowed: {allowed}.")
    try:
        return cast(T, _adapter_of(cast(Hashable, kind)).validate_python(params))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise SettingsError(
            f"{spec!r} is not allowed: {'.'.join(map(str, fault['loc']))}={fault['input']} is wrong. {fault['msg']}."
        ) from error
