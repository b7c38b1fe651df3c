"""A search tree as one self-contained HTML page: collapsible, searchable, without a single request.

Text of documents and models goes into the page as escaped HTML or as JSON that the script turns into text nodes. A
Content-Security-Policy allows this page's own script and style, by hash, and nothing else.

Search trees are the bulk of a page that shows many, and are looked at one by one: each goes into a pack of its own
(JSON, gzip, base64). Texts of chunks, which many trees share, stand once in a pack of theirs.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Template
from typing import Literal

from ...modules.errors import DependencyError
from ...modules.formats import printable
from ..tree.nodes import ChunkNode, QueryNode, count_verdicts, walk_queries
from .layout import one_line, shorten
from .svg import draw_svg
from .text import draw_text
from .words import VERDICT_MARKS, VERDICT_WORDS, answer_words, origin_words, tree_words, usage_words

_EFFORT = 6


def pack(data: Json) -> str:
    """The data as base64 text; the same data always gives the same."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8"), _EFFORT, mtime=0)).decode("ascii")


@dataclass(frozen=True)
class SharedTexts:
    """Texts, each once, which packed data refers to by place."""

    _places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """The place of a text, which is taken in if it is new."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """The texts by place."""
        return list(self._places)


logger = logging.getLogger(__name__)

PICTURE_MAX_NODES = 80
NOTEBOOK_HEIGHT_PX = 640

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

_CALL_COLUMNS = (
    "node",
    "kind",
    "model",
    "prompt_tokens",
    "completion_tokens",
    "seconds",
    "attempts",
    "cached",
    "error",
    "chunk_id",
)


def draw_html(root: QueryNode, fingerprint: Mapping[str, str], *, picture: bool | None = None) -> str:
    """The tree as an HTML document that needs no other file, server or network.

    ``picture`` puts the SVG on top; None does so for trees of up to 80 nodes where it can be drawn.

    Raises:
        DependencyError: ``picture`` is True and no renderer is installed, or it fails.
    """
    answered = root.status == "finished" and root.answer_status == "answered"
    return html_page(
        _asset("page.html"),
        style=tree_asset("tree.css") + _asset("page.css"),
        script=tree_asset("tree.js") + _asset("page.js"),
        title=html.escape(shorten(root.query, 80)),
        query=html.escape(one_line(root.query)),
        answer=html.escape(one_line(answer_words(root))),
        answer_class="" if answered else "alarm",
        totals=html.escape(tree_words(root)),
        notes=_notes(fingerprint),
        picture=_picture(root, picture),
        text=html.escape(draw_text(root)),
        data=json_in_html(_page_data(root)),
    )


def html_page(body: str, *, style: str, script: str, **parts: str) -> str:
    """Fill in a page's body and wrap it in a document whose Content-Security-Policy allows only its style and script.

    Args:
        body: Template of the body, as for ``string.Template``.
        style: CSS of the page.
        script: JavaScript of the page, run after the body.
        parts: Escaped HTML for the placeholders of the body; ``title`` also names the document.
    """
    return Template(_asset("document.html")).substitute(
        title=parts["title"],
        style=style,
        style_hash=csp_hash(style),
        script=script,
        script_hash=csp_hash(script),
        body=Template(body.rstrip("\n")).substitute(parts),
    )


def draw_notebook_html(root: QueryNode, fingerprint: Mapping[str, str]) -> str:
    """The page of ``draw_html`` in a frame, for the output of a notebook cell.

    The frame carries the page in itself (``srcdoc``), so it works in Jupyter, in VS Code and in exported HTML, and
    neither its style nor its script reaches the notebook. A viewer that drops frames shows the text inside it.
    """
    return notebook_frame(draw_html(root, fingerprint), title="search tree", text=draw_text(root))


def notebook_frame(page: str, *, title: str, text: str) -> str:
    """A page in a frame as ``draw_notebook_html`` makes it; ``text`` is for viewers that drop frames."""
    return (
        f'<iframe sandbox="allow-scripts" title="{title}" width="100%" height="{NOTEBOOK_HEIGHT_PX}" '
        f'style="border:1px solid #ccc" srcdoc="{html.escape(page)}"><pre>{html.escape(text)}</pre></iframe>'
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def tree_asset(name: Literal["tree.css", "tree.js", "packs.js"]) -> str:
    """What any page needs to show the trees of ``query_data``: the style, and the scripts that come first.

    packs.js is for pages that keep them in packs (see packing.py).
    """
    return _asset(name)


def csp_hash(text: str) -> str:
    """What a Content-Security-Policy calls an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _picture(root: QueryNode, wanted: bool | None) -> str:
    nodes = sum(1 + len(node.chunks) for node in walk_queries(root))
    if wanted is False or (wanted is None and nodes > PICTURE_MAX_NODES):
        return ""
    return picture_block(lambda: draw_svg(root), required=bool(wanted))


def picture_block(draw: Callable[[], str], *, required: bool, css_class: str = "picture") -> str:
    """A picture at the top of a page, with its zoom; ``""`` where it cannot be drawn.

    Raises:
        DependencyError: It cannot be drawn, and is required.
    """
    try:
        svg = draw()
    except DependencyError as error:
        if required:
            raise
        logger.info("The page goes without a picture: %s", error)
        return ""
    zoom = '<button type="button" id="zoom">Whole picture / actual size</button>'
    return f'<details class="{css_class}" open><summary>Picture</summary>{zoom}<div>{svg}</div></details>'


def _notes(fingerprint: Mapping[str, str]) -> str:
    if not fingerprint:
        return ""
    rows = "".join(
        f"<tr><th>{html.escape(printable(name))}</th><td>{html.escape(printable(text))}</td></tr>"
        for name, text in fingerprint.items()
    )
    return f'<details class="extra"><summary>How it was made</summary><table>{rows}</table></details>'


def json_in_html(data: Json) -> str:
    """JSON that may stand in a script element: no ``</script>``, no comment opening, no odd line separators."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _page_data(root: QueryNode) -> Json:
    verdicts: list[Json] = [
        {"label": label, "mark": VERDICT_MARKS[label], "words": VERDICT_WORDS[label], "count": count}
        for label, count in count_verdicts(root).items()
        if count
    ]
    return {"verdicts": verdicts, "root": query_data(root)}


def describe_chunk(chunk: ChunkNode) -> Mapping[str, Json]:
    """A chunk as tree.js shows it, without what is below it."""
    label = chunk.verdict_label
    notes = [
        ("reason", printable(chunk.reason)),
        ("sub-question", printable(chunk.next_query)),
        ("sub-answer", printable(chunk.sub_answer)),
        ("sub-run", printable(chunk.sub_run_error)),
    ]
    metadata = [(printable(key), _cell(value)) for key, value in chunk.metadata.items()]
    return {
        "label": label,
        "mark": VERDICT_MARKS[label],
        "words": VERDICT_WORDS[label],
        "origin": printable(origin_words(chunk)),
        "headline": shorten(chunk.reason or chunk.text, 120),
        "text": printable(chunk.text),
        "sub_run_error": printable(chunk.sub_run_error),
        "notes": notes,
        "metadata": metadata,
    }


def query_data(
    node: QueryNode, describe: Callable[[ChunkNode], Mapping[str, Json]] = describe_chunk
) -> Mapping[str, Json]:
    """A query and all below it, as tree.js shows it.

    A page that knows more of a chunk, or keeps its text elsewhere, gives a ``describe`` of its own.
    """
    times = [("started", node.started_at or ""), ("newest checkpoint", node.ended_at or "")]
    answer = printable(answer_words(node))
    return {
        "kind": "query" if node.parent_thread_id is None else f"sub-question, depth {node.depth}",
        "depth": node.depth,
        "status": node.status,
        "answer_status": node.answer_status,
        "query": printable(node.query),
        "answer": answer,
        "cost": usage_words(node.cost),
        "evidence": printable(node.evidence),
        "call_head": _CALL_COLUMNS,
        "calls": [[_cell(call[column]) for column in _CALL_COLUMNS] for call in node.usage],  # type: ignore[literal-required]
        "facts": [[name, fact] for name, fact in [("thread", printable(node.thread_id)), *times] if fact],
        "chunks": [
            {**describe(chunk), "child": query_data(chunk.child, describe) if chunk.child else None}
            for chunk in node.chunks
        ],
    }


def _cell(value: object) -> Json:
    """A table cell: numbers stay numbers, so that they align."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else printable(str(value))
