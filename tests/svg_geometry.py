"""The geometry of an SVG picture: where its boxes, edges and texts are, and which of them collide."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from matplotlib import get_data_path
from PIL import ImageFont

from judgetree.graphs.drawing.layout import char_columns
from tests.svg_boxes import SVG, groups, title, words

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_STEPS = 24
"""Straight pieces by which a Bézier curve is followed."""
_TOUCH_PT = 1.0
"""Depth to which a line may reach into a box: half a pen, and rounding."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Rectangle:
    left: float
    top: float
    right: float
    bottom: float

    def shrunk(self, by: float) -> Rectangle:
        return Rectangle(self.left + by, self.top + by, self.right - by, self.bottom - by)

    def holds(self, other: Rectangle) -> bool:
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )

    def is_crossed_by(self, start: Point, end: Point) -> bool:
        """Whether a straight line shares a point with the rectangle (Liang and Barsky's clipping)."""
        enter, leave = 0.0, 1.0
        for at, by, low, high in (
            (start[0], end[0] - start[0], self.left, self.right),
            (start[1], end[1] - start[1], self.top, self.bottom),
        ):
            if by == 0:
                if not low <= at <= high:
                    return False
                continue
            first, second = sorted(((low - at) / by, (high - at) / by))
            enter, leave = max(enter, first), min(leave, second)
        return enter <= leave


def collisions(svg: str) -> list[str]:
    """Name each edge that runs through a box, each two boxes that overlap, and each text that leaves its box."""
    nodes = {str(group.get("id")): (group, _outline(group)) for group in groups(svg, "node")}
    found = []
    for edge in groups(svg, "edge"):
        path = edge.find(f"{SVG}path")
        assert path is not None
        points = list(_followed(str(path.get("d"))))
        for name, (_, outline) in nodes.items():
            inner = outline.shrunk(_TOUCH_PT)
            if any(inner.is_crossed_by(*piece) for piece in itertools.pairwise(points)):
                found.append(f"the edge {title(edge)!r} from {points[0]} to {points[-1]} crosses {name}")
    for name, (group, outline) in nodes.items():
        found += [f"{said!r} leaves {name}" for said, place in _texts(group) if not outline.holds(place)]
    found += _legend_collisions(ET.fromstring(svg))
    by_left = sorted(((outline, name) for name, (_, outline) in nodes.items()), key=lambda one: one[0].left)
    for number, (outline, name) in enumerate(by_left):
        for other, other_name in by_left[number + 1 :]:
            if other.left >= outline.right:
                break
            if outline.top < other.bottom and other.top < outline.bottom:
                found.append(f"{name} overlaps {other_name}")
    return found


def _legend_collisions(picture: ET.Element) -> list[str]:
    """Name each text of the legend that runs into a badge."""
    graph = picture.find(f"{SVG}g")
    assert graph is not None
    _background, *badges = [_corners(_points(str(shape.get("points")))) for shape in graph.findall(f"{SVG}polygon")]
    beside = [(said, place) for said, place in _texts(graph, "./") if len(said) > 1]
    return [
        f"{said!r} runs into a badge"
        for said, place in beside
        for badge in badges
        if place.left < badge.left < place.right and place.top < badge.bottom and badge.top < place.bottom
    ]


def _outline(group: ET.Element) -> Rectangle:
    points: list[Point] = []
    for shape in group.iter():
        if shape.tag in {f"{SVG}polygon", f"{SVG}polyline"}:
            points += _points(str(shape.get("points")))
        elif shape.tag == f"{SVG}path":
            points += _points(str(shape.get("d")))
    assert points, f"a box without outline: {words(group)}"
    return _corners(points)


def _corners(points: list[Point]) -> Rectangle:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return Rectangle(min(xs), min(ys), max(xs), max(ys))


def _points(text: str) -> list[Point]:
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _followed(path: str) -> Iterator[Point]:
    """Points along a path of one move and cubic Bézier curves."""
    assert set(re.findall(r"[A-Za-z]", path)) <= {"M", "C"}, path
    start, *rest = _points(path)
    yield start
    for first, second, end in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        for step in range(1, _STEPS + 1):
            t = step / _STEPS
            a, b, c, d = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            yield (
                a * start[0] + b * first[0] + c * second[0] + d * end[0],
                a * start[1] + b * first[1] + c * second[1] + d * end[1],
            )
        start = end


def _texts(group: ET.Element, where: str = ".//") -> Iterator[tuple[str, Rectangle]]:
    """Each line of text with the place that it takes in DejaVu Sans, the widest common face."""
    for line in group.findall(f"{where}{SVG}text"):
        said = "".join(line.itertext())
        size, bold = float(str(line.get("font-size"))), line.get("font-weight") == "bold"
        width = sum(_glyph_width(char, bold) for char in said) * size
        left = float(str(line.get("x")))
        left -= {"middle": width / 2, "end": width}.get(str(line.get("text-anchor")), 0.0)
        baseline = float(str(line.get("y")))
        yield said, Rectangle(left, baseline - 0.76 * size, left + width, baseline + 0.24 * size)


@functools.cache
def _glyph_width(char: str, bold: bool) -> float:
    """Width in ems; characters that the face lacks are as wide as their columns."""
    if not char.isascii():
        return (0.0, 0.68, 1.0)[char_columns(char)]
    return _face(bold).getlength(char) / 100


@functools.cache
def _face(bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}", 100)
