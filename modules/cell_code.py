"""Code of a part that is defined in a notebook cell, and of what it uses of the notebook."""

from __future__ import annotations

import dis
import functools
import inspect
import re
from collections.abc import Iterator
from types import CodeType, FunctionType

from .digests import canonical_json

_CONSTANTS = (str, int, float, complex, bytes, type(None), re.Pattern)
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_STORES = frozenset({"STORE_GLOBAL", "STORE_NAME", "STORE_ATTR"})


def cell_code(named: object) -> str:
    """Return the code of a class or function and of the functions, classes and constants of its notebook that it uses.

    Bases count as used. Constants are texts, numbers, patterns and tuples or frozensets of them, at the top of cells
    and of classes. Those that the code itself sets, such as counters, are left out; so are lists and dicts, which
    change as they are used. A function whose text Python does not know, as in its own shell, shows its bytecode.
    """
    used = _used_by(named)
    functions = [each for each in used if isinstance(each, FunctionType)]
    stored = {name for each in functions for name in _names(each.__code__, _STORES)}
    constants = {
        f"{each.__qualname__} {name}": value  # type: ignore[attr-defined]
        for each in used
        for name, value in _values_of(each)
        if name not in stored and _is_constant(value)
    }
    return "".join([*map(_text_of, functions), canonical_json(constants) if constants else ""])


def _text_of(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # methods of dataclasses have none either
        return canonical_json(shape_of(function.__code__))


def shape_of(code: CodeType) -> list[object]:
    """Return what the code of a function does, as plain data without its place in memory."""
    inner = [shape_of(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, code.co_varnames, inner]


def _used_by(named: object) -> list[object]:
    """Return a class or function and all classes and functions of its module that it uses, each once."""
    home = getattr(named, "__module__", None)
    used = [_plain(named)]
    for each in used:  # grows meanwhile
        for other in map(_plain, _further(each)):
            is_code = inspect.isclass(other) or isinstance(other, FunctionType)
            if is_code and other.__module__ == home and not any(other is known for known in used):
                used.append(other)
    return used


def _further(each: object) -> Iterator[object]:
    if inspect.isclass(each):
        yield from each.__mro__
    yield from (value for _, value in _values_of(each))


def _values_of(each: object) -> Iterator[tuple[str, object]]:
    """Yield the attributes of a class, and the defaults and globals of a function, by name."""
    if inspect.isclass(each):
        # of the names with two underscores, only methods are the user's
        yield from ((n, v) for n, v in vars(each).items() if isinstance(v, FunctionType) or not n.startswith("__"))
    elif isinstance(each, FunctionType):
        yield from ((f"default {place}", value) for place, value in enumerate(each.__defaults__ or ()))
        yield from (each.__kwdefaults__ or {}).items()
        names = dict.fromkeys(_names(each.__code__, _LOADS))
        yield from ((name, each.__globals__[name]) for name in names if name in each.__globals__)


def _names(code: CodeType, operations: frozenset[str]) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield str(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner, operations)


def _plain(value: object) -> object:
    """Return the function within a method, a property or a decorator."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, functools.partial):
        value = value.func
    return inspect.unwrap(value) if hasattr(value, "__wrapped__") else value  # type: ignore[arg-type]


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_constant, value))
    return isinstance(value, _CONSTANTS)
