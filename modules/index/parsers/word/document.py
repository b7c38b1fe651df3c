"""Word documents: one text, as a reader sees it, with headers before and footers behind each section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from ....errors import LoadingError
from ..parsed import LeftOut, Piece, titled
from .notes import Notes
from .numbering import Numbering
from .package import R, W, WordPackage, is_on, value
from .story import Story, WordDocument
from .styles import Styles


def parse_docx(data: bytes) -> Iterable[Piece]:
    """Yield the text of a Word document, and what it lacks.

    Raises:
        LoadingError: It is no Word document, has a password, or unpacks to too much.
        Exception: Its XML is broken (``ParseError``), or its zip file is.
    """
    package = WordPackage(data)
    main = package.xml(package.main)
    body = main.find(f"{W}body")
    if body is None:
        raise LoadingError("it is no Word document: its main part has no body")
    settings = next(package.related("settings"), None)
    document = WordDocument(
        styles=Styles(next(package.related("styles"), None)),
        numbering=Numbering(next(package.related("numbering"), None)),
        notes=Notes(package, settings),
    )
    story = Story(document).read(body)
    last = body.find(f"{W}sectPr")
    if last is not None:
        story.sections.append((len(story.blocks), last))
    yield "\n\n".join(_with_edges(package, document, story, settings)), titled(story.heading)
    document.left_out["comment"] += sum(len(part.findall(f"{W}comment")) for part in package.related("comments"))
    for kind, count in document.left_out.items():
        if count:
            yield LeftOut(kind=kind, count=count)


def _with_edges(package: WordPackage, document: WordDocument, story: Story, settings: Element | None) -> Iterator[str]:
    """Yield the blocks of the body, with the headers and footers of each section; one that repeats stands once."""
    both_sides = settings is not None and is_on(settings.find(f"{W}evenAndOddHeaders"))
    relations = package.relations(package.main)
    seen: set[str] = set()

    def edges(section: Element, kind: str) -> Iterator[str]:
        kinds = {"default", *(["first"] if is_on(section.find(f"{W}titlePg")) else [])}
        kinds |= {"even"} if both_sides else set()
        for reference in section.findall(f"{W}{kind}Reference"):
            relation = relations.get(reference.get(f"{R}id", ""))
            if relation is None or not package.has(relation.target):
                continue
            if (value(reference, "type") or "default") not in kinds:
                continue
            if relation.target not in seen:
                seen.add(relation.target)
                text = "\n".join(Story(document).read(package.xml(relation.target)).blocks)
                if text and text not in seen:
                    seen.add(text)
                    yield text

    start = 0
    for end, section in story.sections:
        yield from edges(section, "header")
        yield from story.blocks[start:end]
        yield from edges(section, "footer")
        start = end
    yield from story.blocks[start:]
