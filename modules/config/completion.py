"""Names of keys for completion, where a function takes them by ``**keys``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar

from .config import Config

F = TypeVar("F", bound=Callable[..., Any])


def completes(model: type[Config]) -> Callable[[F], F]:
    """Name the keys of a configuration in the signature of a function; what it takes is the same.

    >>> @completes(Config)
    ... def ask(question: str, **keys: object) -> str:
    ...     return question
    >>> print(inspect.signature(ask))
    (question: 'str', **keys: 'object') -> 'str'
    """

    def named(function: F) -> F:
        signature = inspect.signature(function)
        *own, rest = signature.parameters.values()
        keys = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None if field.is_required() else field.default)
            for name, field in model.model_fields.items()
            if name not in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*own, *keys, rest])  # type: ignore[attr-defined]
        return function

    return named
