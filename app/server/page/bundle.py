"""The page as it travels: one script and one style sheet, joined out of the files that ``index.html`` names.

The modules stand as they are written, each in a function of its own, so that nothing but Python is needed to join them.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

_PLACE = "/assets/"
_STYLE = re.compile(r'<link rel="stylesheet" href="/assets/(?P<path>[^"]+)">\n')
_SCRIPT = re.compile(r'<script type="module" src="/assets/(?P<path>[^"]+)"></script>')
_IMPORT = re.compile(r'^import (?P<names>\w+|\{[^}]*\}) from "(?P<path>[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async function\*?|function\*?|class|const) ?(?P<name>[\w$]+))"
    r"|^export default |(?:^|(?<=;))export ?\{(?P<names>[^}]*)\};?$",
    re.MULTILINE,
)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_VENDOR = "vendor/"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The page's document, and its two files by path."""

    page: bytes
    files: Mapping[str, bytes]
    """A path holds the digest of its file, which may be kept for ever."""


def bundle(files: Mapping[str, bytes], page: str) -> Bundle:
    """Join the style sheets and the modules that a document names, and have it name the results.

    Args:
        files: The files of the page by path, such as ``js/main.js``.
        page: Path of the document.

    Raises:
        ValueError: Modules import each other, or in a form that is not known here.
    """
    texts = {path: body.decode("utf-8") for path, body in files.items()}
    document = texts[page]
    styles = [found["path"] for found in _STYLE.finditer(document)]
    (start,) = (found["path"] for found in _SCRIPT.finditer(document))
    style = _named("page", ".css", "".join(texts[path] for path in styles))
    script = _named("page", ".js", _joined(texts, start))
    head = f'<link rel="stylesheet" href="{_PLACE}{style[0]}">\n'
    document = _STYLE.sub("", document)
    # before the script: the browser asks for what it paints with first
    document = _SCRIPT.sub(lambda _: f'{head}<script type="module" src="{_PLACE}{script[0]}"></script>', document)
    return Bundle(page=document.encode(), files=dict([style, script]))


def _named(name: str, suffix: str, text: str) -> tuple[str, bytes]:
    body = text.encode()
    return f"{name}.{hashlib.sha256(body).hexdigest()[:16]}{suffix}", body


def _joined(texts: Mapping[str, str], start: str) -> str:
    """Join modules, each after those that it imports: a function gives what it exports, with the names in between."""
    imported: dict[str, list[str]] = {}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path not in imported:
            imported[path] = [_path_from(path, found["path"]) for found in _IMPORT.finditer(texts[path])]
            waiting += imported[path]
    order = list(TopologicalSorter(imported).static_order())
    names = {path: f"module{number}" for number, path in enumerate(order)}
    return "".join(_as_function(path, texts[path], names) for path in order)


def _path_from(module: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), path))


def _as_function(path: str, text: str, names: Mapping[str, str]) -> str:
    given: dict[str, str] = {}
    """Exported names, and what they are called inside."""

    def take(found: re.Match[str]) -> str:
        if found["name"]:
            given[found["name"]] = found["name"]
        elif found["names"] is None:
            given["default"] = "theDefault"
            return "const theDefault = "
        else:
            pairs = [part.split(" as ") for part in found["names"].split(",")]
            given.update({pair[-1].strip(): pair[0].strip() for pair in pairs})
        return ""

    def receive(found: re.Match[str]) -> str:
        wanted = found["names"]
        held = wanted.replace(" as ", ": ") if wanted.startswith("{") else f"{{ default: {wanted} }}"
        return f"const {held} = {names[_path_from(path, found['path'])]};"

    body = _IMPORT.sub(receive, text if path.startswith(_VENDOR) else _COMMENT.sub("", text))
    body = _EXPORT.sub(take, body)
    if left := _LEFT.search(body):
        raise ValueError(f"{path} has a line that cannot be joined: {left[0]}")
    shown = ", ".join(f"{name}: {inner}" for name, inner in given.items())
    return f"const {names[path]} = (() => {{\n{body}\nreturn {{ {shown} }};\n}})();\n"
