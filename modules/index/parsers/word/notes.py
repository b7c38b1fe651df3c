"""Footnotes and endnotes of a Word document, with the marks that a reader sees."""

from __future__ import annotations

from typing import Literal
from xml.etree.ElementTree import Element

from .numbering import FORMATS
from .package import W, WordPackage, value

NoteKind = Literal["footnote", "endnote"]


class Notes:
    """The notes of a document, numbered in the order in which the text refers to them."""

    def __init__(self, package: WordPackage, settings: Element | None) -> None:
        self._roots: dict[str, dict[str, Element]] = {}
        self._formats: dict[str, str] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self._counts = {"footnote": 0, "endnote": 0}
        for kind, usual in (("footnote", "decimal"), ("endnote", "lowerRoman")):
            found = (each for part in package.related(f"{kind}s") for each in part.findall(f"{W}{kind}"))
            self._roots[kind] = {value(each, "id"): each for each in found}
            own = None if settings is None else settings.find(f"{W}{kind}Pr/{W}numFmt")
            self._formats[kind] = value(own) or usual

    def refer(self, kind: NoteKind, name: str) -> tuple[str, Element | None]:
        """Return a note's mark, and its text where it was not referred to before."""
        if (kind, name) in self._labels:
            return self._labels[kind, name], None
        self._counts[kind] += 1
        label = FORMATS.get(self._formats[kind], str)(self._counts[kind])
        self._labels[kind, name] = label
        return label, self._roots[kind].get(name)
