"""Pictures of search trees and of any DOT text; only this module runs a Graphviz program."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sysconfig
from importlib import resources
from xml.etree import ElementTree as ET

from ...modules.errors import DependencyError
from .boxes import FONT

SVG = "http://www.w3.org/2000/svg"
XLINK_TITLE = "{http://www.w3.org/1999/xlink}title"
FONT_STACK = f"{FONT}, Arial, 'Liberation Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
RENDER_TIMEOUT_S = 120
_NODESEP = re.compile(r"nodesep=([\d.]+)")


@functools.cache
def picture_style() -> str:
    """Return the style of all pictures, which darkens them where the viewer prefers that."""
    return resources.files(__package__).joinpath("picture.css").read_text(encoding="utf-8")


def find_renderer() -> str | None:
    """Find ``dot`` on the PATH, else ``graphviz-pure`` there or beside this interpreter; None without either."""
    scripts = sysconfig.get_path("scripts")
    return shutil.which("dot") or shutil.which("graphviz-pure") or shutil.which("graphviz-pure", path=scripts)


def render_svg(dot: str, *, title: str) -> str:
    """Render DOT text as a stand-alone SVG document named ``title``, with plain titles as tooltips and a dark style.

    Raises:
        DependencyError: Neither ``dot`` nor ``graphviz-pure`` is installed, or the program fails.
    """
    return _finish(_render(dot, "svg"), title)


def render_png(dot: str) -> bytes:
    """Render DOT text as a PNG.

    Raises:
        DependencyError: Neither ``dot`` nor ``graphviz-pure`` is installed, or the program fails.
    """
    return _render(dot, "png")


def _render(dot: str, form: str, *, layouts: int = 4) -> bytes:
    """Run Graphviz, which cannot route an edge of some layouts: ``layouts`` are tried, each wider than the last."""
    renderer = find_renderer()
    if renderer is None:
        raise DependencyError(
            'Pictures need the Graphviz command "dot" on the PATH or the Python package graphviz-pure: '
            "pip install graphviz-pure. to_dot(), to_text() and to_html() work without."
        )
    try:
        # Graphviz prints many harmless warnings, such as for Chinese text without metrics.
        done = subprocess.run(
            [renderer, f"-T{form}"], input=dot.encode(), capture_output=True, check=True, timeout=RENDER_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()[-300:]
        if layouts > 1 and "Pshortestpath failed" in said:
            wider = _NODESEP.sub(lambda match: f"nodesep={1.15 * float(match[1]):.4f}", dot)
            return _render(wider, form, layouts=layouts - 1)
        raise DependencyError(
            f"{renderer} could not draw the picture ({error}{': ' if said else ''}{said}). "
            "Try another Graphviz, or to_html()."
        ) from error
    return done.stdout


def _finish(svg: bytes, title: str) -> str:
    """Add style and existing fonts, and turn tooltips into plain titles, since viewers ignore ``xlink:title``."""
    ET.register_namespace("", SVG)
    picture = ET.fromstring(svg)
    style = ET.Element(f"{{{SVG}}}style")
    style.text = picture_style()
    picture.insert(0, style)
    picture.set("font-family", FONT_STACK)
    picture.set("role", "img")
    picture.set("class", "judgetree-picture")
    for text in picture.iter(f"{{{SVG}}}text"):
        text.attrib.pop("font-family", None)
    for group in picture.iter(f"{{{SVG}}}g"):
        if group.get("class") == "graph":
            _titles(group)[0].text = title
        elif group.get("class", "").startswith(("node", "edge", "cluster")):
            _move_tooltip(group)
    return ET.tostring(picture, encoding="unicode")


def _move_tooltip(group: ET.Element) -> None:
    """Turn ``<title>name</title><g><a xlink:title="tooltip">shape</a></g>`` into ``<title>tooltip</title>shape``."""
    titles = _titles(group)
    for holder in group.findall(f"{{{SVG}}}g"):
        for link in holder.findall(f"{{{SVG}}}a"):
            titles[0].text = link.get(XLINK_TITLE)
            group.remove(holder)
            group.extend(link)
            return
    for title in titles:
        group.remove(title)


def _titles(group: ET.Element) -> list[ET.Element]:
    return group.findall(f"{{{SVG}}}title")
