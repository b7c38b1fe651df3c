"""A neighbourhood as one self-contained HTML page without a script: picture, passages, relations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...modules.errors import DependencyError
from ...modules.storage.texts import html_text
from ...modules.structure.neighbourhood import Neighbourhood
from ..drawing import html as page
from ..drawing.layout import one_line, shorten
from .words import PassageText, format_neighbourhood, shown_phrases


def draw_neighbourhood_html(
    found: Neighbourhood, texts: Mapping[str, PassageText], draw: Callable[[], str], *, picture: bool | None = None
) -> str:
    """Draw an HTML document that needs no other file, server or network.

    ``draw`` makes its SVG; ``picture`` says whether it is in the page, None if it can be drawn.

    Raises:
        DependencyError: ``picture`` is True and cannot be drawn.
    """
    title = _text(shorten(found.query, 80))
    body = "\n".join(
        [
            f'<header><h1>{title}</h1><p class="faint">{_text(format_neighbourhood(found))}</p></header>',
            _picture(draw, wanted=picture),
            "<main>",
            *_passages(found, texts),
            *_relations(found, texts),
            "</main>",
        ]
    )
    return page.html_page(page.__package__, title=title, body=body)


def _picture(draw: Callable[[], str], *, wanted: bool | None) -> str:
    if wanted is False:
        return ""
    try:
        svg = draw()
    except DependencyError:
        if wanted:
            raise
        return ""
    return f'<details class="picture actual-size" open><summary>Picture</summary><div>{svg}</div></details>'


def _passages(found: Neighbourhood, texts: Mapping[str, PassageText]) -> Iterator[str]:
    for place in found.places:
        if place.kind == "passage":
            shown = texts.get(place.name)
            mark = ", found by the search" if place.seed else ""
            head = f"{shown.title if shown else place.name} · PageRank {place.score:.3f}{mark}"
            text = _text(shown.text, lines=True) if shown else ""
            yield f"<details><summary>{_text(head)}</summary><p>{text}</p></details>"


def _relations(found: Neighbourhood, texts: Mapping[str, PassageText]) -> Iterator[str]:
    names = shown_phrases(found, texts)
    rows = [
        (
            names[bond.source],
            bond.relation,
            names[bond.target],
            ", ".join(_title(each, texts) for each in bond.passages),
        )
        for bond in found.bonds
        if bond.relation
    ]
    if rows:
        head = "".join(f"<th>{name}</th>" for name in ("subject", "relation", "object", "passages"))
        cells = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
        yield f"<table><tr>{head}</tr>{cells}</table>"


def _title(chunk_id: str, texts: Mapping[str, PassageText]) -> str:
    return texts[chunk_id].title if chunk_id in texts else chunk_id[:12]


def _text(text: str, *, lines: bool = False) -> str:
    return html_text(text if lines else one_line(text))
