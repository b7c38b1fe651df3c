"""Every regular expression of the package, found in its code and in its imported modules."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.test_architecture import PACKAGES, REPO

_CALLS = {"compile", "sub", "subn", "match", "search", "fullmatch", "split", "findall", "finditer"}
_FROM_THE_START = {"match", "fullmatch", "compile"}


class FoundPattern(NamedTuple):
    """A pattern of a module."""

    place: str
    """File and name, or line."""
    pattern: str
    flags: int
    only_from_the_start: bool
    """Whether it is only matched where a text begins; others may begin anew at each character."""


class MadePattern(NamedTuple):
    """A pattern that a function makes from its arguments, which cannot be known from the code."""

    place: str
    source: str


@functools.cache
def package_patterns() -> tuple[list[FoundPattern], list[MadePattern]]:
    """Return the patterns of the package that are fixed, and those that functions make."""
    found: list[FoundPattern] = []
    made: list[MadePattern] = []
    for package, folder in PACKAGES.items():
        for path in sorted((REPO / folder).glob("*.py")):
            code = path.read_text(encoding="utf-8")
            if re.search(r"\bimport (re|regex)\b", code):
                name = f"judgetree.{package}" + (f".{path.stem}" if path.stem != "__init__" else "")
                _take(importlib.import_module(name), path, ast.parse(code), found, made)
    return found, made


def _take(module: ModuleType, path: Path, tree: ast.Module, found: list[FoundPattern], made: list[MadePattern]) -> None:
    place = path.relative_to(REPO).as_posix()
    methods = _methods(tree)
    # Beside a module's own names stands __builtins__, into which a console or doctest puts anything, even itself.
    for name, value in vars(module).items():
        for pattern in () if name.startswith("__") else _patterns_in(value):
            if isinstance(pattern.pattern, str):
                start = bool(methods.get(name)) and methods[name] <= _FROM_THE_START
                found.append(FoundPattern(f"{place}: {name}", pattern.pattern, pattern.flags, start))
    for call, function in _calls_in_functions(tree):
        where = f"{place}: {function}"
        try:
            code = compile(ast.Expression(call.args[0]), place, "eval")
            pattern = re.compile(eval(code, dict(vars(module))))
        except NameError:
            made.append(MadePattern(where, ast.unparse(call.args[0])))
        else:
            is_at_start = isinstance(call.func, ast.Attribute) and call.func.attr in {"match", "fullmatch"}
            if isinstance(pattern.pattern, str):
                found.append(FoundPattern(where, pattern.pattern, pattern.flags, is_at_start))


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        yield from _patterns_in([*value.keys(), *value.values()])
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from _patterns_in(each)
    elif type(value).__module__.startswith("judgetree") and hasattr(value, "__dict__") and not isinstance(value, type):
        yield from (each for each in vars(value).values() if isinstance(each, re.Pattern))


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    """Return the methods by which a module uses its names: ``NAME.search(…)``, also of each in ``for each in NAME``."""
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension | ast.For) and isinstance(node.target, ast.Name):
            for several in node.iter.elts if isinstance(node.iter, ast.Tuple) else [node.iter]:
                if isinstance(several, ast.Name):
                    used.setdefault(several.id, set()).update(used.get(node.target.id, ()))
    return used


def _calls_in_functions(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id in ("re", "regex")
                    and node.func.attr in _CALLS
                ):
                    yield node, function.name
