"""The dark style of pictures: every colour that is drawn has a counterpart, and its text can be read."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from judgetree.graphs.conversation.drawing.dot import ANSWER_LOOKS, OPEN_LOOK
from judgetree.graphs.drawing import boxes
from judgetree.graphs.drawing.dot import THREAD_LOOKS, VERDICT_LOOKS
from judgetree.graphs.drawing.svg import picture_style
from tests.random_trees import random_tree

LOOKS = [*VERDICT_LOOKS.values(), *THREAD_LOOKS.values(), *ANSWER_LOOKS.values(), OPEN_LOOK]
READABLE = 4.5
"""Contrast of small text by the Web Content Accessibility Guidelines 2.2, 1.4.3."""


def dark(kind: str, light: str) -> str:
    """The dark counterpart of a ``fill`` of boxes, a ``fill`` of ``text``, or a ``stroke``."""
    name, prefix = ("stroke", "") if kind == "stroke" else ("fill", "text" if kind == "text" else "")
    rules = re.findall(r"([^{}]+)\{ (fill|stroke): (#\w{6}); \}", picture_style().partition("{")[2])
    for selectors, property_name, colour in rules:
        wanted = {f'{prefix}[{name}="{light.lower()}"]', *([] if prefix else [f'path[fill="{light.lower()}"]'])}
        if property_name == name and wanted & {selector.strip() for selector in selectors.split(",")}:
            return colour
    raise AssertionError(f"the {kind} {light} has no dark counterpart")


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_is_readable_in_every_box_in_the_light_and_in_the_dark() -> None:
    for look in LOOKS:
        for ink in (boxes.INK, boxes.FAINT_INK, boxes.ALARM_INK, THREAD_LOOKS["finished"].line):
            assert contrast(ink, look.fill) >= READABLE, (ink, look)
            assert contrast(dark("text", ink), dark("fill", look.fill)) >= READABLE, (ink, look)
        assert contrast("#ffffff", look.line) >= READABLE, f"white on the badge of {look}"
        assert contrast(dark("stroke", look.line), dark("fill", look.fill)) >= 3, f"outline of {look}"


def test_the_style_is_part_of_every_picture_and_names_its_colours() -> None:
    picture = ET.fromstring(random_tree(3).to_svg())
    styles = [element.text for element in picture if element.tag.endswith("style")]
    assert styles == [picture_style()]
    drawn = {element.get("stroke") for element in picture.iter()} - {None, "none"}
    assert all(dark("stroke", str(colour)) for colour in drawn if str(colour).startswith("#"))
