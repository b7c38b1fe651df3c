"""The boxes of an SVG picture that judgetree has drawn."""

from __future__ import annotations

from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def groups(svg: str, kind: str) -> list[ET.Element]:
    """The groups of a kind: node, edge or cluster."""
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if str(group.get("class")).split()[0] == kind]


def boxes(svg: str) -> dict[str, ET.Element]:
    """Every box by its id."""
    return {str(group.get("id")): group for group in groups(svg, "node")}


def words(group: ET.Element) -> str:
    return " ".join("".join(text.itertext()) for text in group.iter(f"{SVG}text")).replace("\u00a0", " ")


def title(group: ET.Element) -> str:
    return group.findtext(f"{SVG}title") or ""
