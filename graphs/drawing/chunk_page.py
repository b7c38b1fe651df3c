"""One chunk with its verdict as a self-contained HTML page without a script, its Markdown rendered."""

from __future__ import annotations

from collections.abc import Iterator

from ...modules.storage.texts import html_text, printable
from ..tree.nodes import ChunkNode, QueryNode
from .html import html_page
from .layout import one_line, shorten
from .words import VERDICT_MARKS, VERDICT_WORDS, format_origin, format_skip


def draw_chunk_html(query: QueryNode, chunk: ChunkNode) -> str:
    """Draw a chunk of a query as an HTML document that needs no other file, its text as Markdown.

    Line breaks stay, HTML in the text is text, and pictures are links.
    """
    name = chunk.name
    rows = "".join(f"<tr><th>{word}</th><td>{html_text(said)}</td></tr>" for word, said in _rows(query, chunk) if said)
    body = "\n".join(
        [
            f"<header><h1>{html_text(one_line(name))}</h1>",
            f'<p class="faint">{html_text(format_origin(chunk))}</p></header>',
            f'<main><article class="document">{_rendered(chunk.text)}</article><table>{rows}</table></main>',
        ]
    )
    return html_page(__package__, title=html_text(shorten(name, 80)), body=body)


def _rendered(text: str) -> str:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - keeps the package's import fast

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(["code", "image"])
    tokens = parser.parse(printable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):  # the page has one first heading, its name
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    return str(parser.renderer.render(tokens, parser.options, {}))


def _rows(query: QueryNode, chunk: ChunkNode) -> Iterator[tuple[str, str]]:
    label = chunk.verdict_label
    yield "query", query.query
    yield "verdict", f"{VERDICT_MARKS[label]} · {VERDICT_WORDS[label]}"
    yield "reason", chunk.reason
    yield "P(needed)", "" if chunk.p_needed is None else f"{chunk.p_needed:.2f}"
    yield "sub-question", chunk.next_query
    yield "not asked", format_skip(chunk.skipped) if chunk.skipped else ""
    yield "sub-answer", chunk.sub_answer
    yield "sub-run", chunk.sub_run_error
