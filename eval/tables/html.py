"""Tables and sections in HTML, with all texts escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markdown_it import MarkdownIt

from ...modules.storage.texts import html_text, printable
from .table import Block, Cell, Section, Table


def table_html(table: Table) -> str:
    """Build a table that scrolls by itself in a narrow window; intervals and notes stand below their figures."""
    head = "".join(f"<th>{html_text(cell)}</th>" for cell in table.head)
    body = "".join(f"<tr>{''.join(f'<td>{_content(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    table_html = f'<table class="figures"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table_html}</div>'


def render_markdown(text: str) -> str:
    """Render Markdown without HTML in it."""
    return str(MarkdownIt("commonmark", {"html": False}).render(printable(text)))


def facts_html(facts: Mapping[str, object]) -> str:
    """Build the items of a list of facts, which stands at the top of a page."""
    return "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>" for name, value in facts.items())


def blocks_html(blocks: Iterable[Block]) -> str:
    """Build texts and tables one after the other."""
    return "".join(table_html(block) if isinstance(block, Table) else render_markdown(block) for block in blocks)


def section_html(section: Section) -> str:
    """Build a section with its heading, or folded away below it."""
    title, body = html_text(section.title), blocks_html(section.blocks)
    if section.is_folded:
        return f'<details class="extra"><summary>{title}</summary>{body}</details>'
    return f"<section><h2>{title}</h2>{body}</section>"


def _content(cell: Cell) -> str:
    text = html_text(cell.text)
    text = f'<a href="{html_text(cell.href)}">{text}</a>' if cell.href else text
    text = f"<strong>{text}</strong>" if cell.is_bold else text
    return f"{text}<small>{html_text(cell.around)}</small>" if cell.around else text
