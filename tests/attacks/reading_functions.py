"""The functions of the package that read a text by patterns or as JSON, found in its code."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator

from tests.test_architecture import PACKAGES, REPO

_BY_PATTERN = {"sub", "subn", "match", "search", "fullmatch", "split", "findall", "finditer"}
_PARSERS = {("json", "loads"), ("yaml", "safe_load"), ("yaml", "load"), ("ast", "parse"), ("ast", "literal_eval")}
_PARSING_METHODS = {"raw_decode", "model_validate_json", "validate_json"}
_METHODS = _BY_PATTERN | {"compile"} | {method for _, method in _PARSERS} | _PARSING_METHODS


def reading_functions() -> dict[str, str]:
    """Return the qualified name of each function with what it reads its text by."""
    return _found()[0]


def looping_functions() -> list[str]:
    """Return the names of further functions with a loop over what they make of a ``str`` argument."""
    return _found()[1]


@functools.cache
def _found() -> tuple[dict[str, str], list[str]]:
    reading: dict[str, str] = {}
    looping: list[str] = []
    for package, folder in PACKAGES.items():
        for path in sorted((REPO / folder).glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            module = package + (f".{path.stem}" if path.stem != "__init__" else "")
            patterns = _pattern_names(tree)
            for name, function in _functions(tree, module):
                nodes = list(ast.walk(function))
                if reason := _reads_by(nodes, patterns):
                    reading[name] = reason
                if _loops_over_a_text(function, nodes):
                    looping.append(name)
    return reading, looping


def _pattern_names(tree: ast.Module) -> set[str]:
    """Return the names in capitals to which a module gives what ``re.compile`` makes."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and "re.compile" in ast.unparse(node)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _loops_over_a_text(function: ast.FunctionDef | ast.AsyncFunctionDef, nodes: Iterable[ast.AST]) -> bool:
    texts = {
        arg.arg for arg in function.args.args if isinstance(arg.annotation, ast.Name) and arg.annotation.id == "str"
    }
    loops = [node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension)] if texts else []
    return any(isinstance(node, ast.Name) and node.id in texts for loop in loops for node in ast.walk(loop))


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}.{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}.{node.name}")


def _reads_by(nodes: Iterable[ast.AST], patterns: set[str]) -> str:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in patterns:
            return node.id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            owner = ast.unparse(node.func.value)
            if owner in ("re", "regex") and node.func.attr in {*_BY_PATTERN, "compile"}:
                return f"re.{node.func.attr}"
            if (owner, node.func.attr) in _PARSERS or node.func.attr in _PARSING_METHODS:
                return f"{owner}.{node.func.attr}"
    return ""


def called_with_a_text(name: str) -> Callable[[str], object] | None:
    """Return a function that needs nothing but one ``str``; None for all others."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module("judgetree." + ".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            found = getattr(found, part)
        if not callable(found):
            return None
        required = [each for each in inspect.signature(found).parameters.values() if each.default is each.empty]
        is_of_a_text = len(required) == 1 and required[0].annotation in ("str", str) and required[0].name != "self"
        return found if is_of_a_text and not inspect.iscoroutinefunction(found) else None
    raise LookupError(name)
