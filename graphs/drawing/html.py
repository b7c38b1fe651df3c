"""A search tree as one self-contained HTML page: collapsible, searchable, without requests.

Text of documents and models is escaped HTML, or JSON that the script turns into text nodes. A Content-Security-Policy
allows only this page's own script and style, by hash.

A page of many search trees puts each into a pack of its own (JSON, gzip, base64), which the browser unpacks on demand.
Chunk texts, which many trees share, are in one more pack.
"""

from __future__ import annotations

import base64
import gzip
import html
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Template

from ...modules.calls.record import CallRecord
from ...modules.calls.transcripts import Transcript
from ...modules.digests import text_digest
from ...modules.errors import DependencyError
from ...modules.reading.deep_json import dumps
from ...modules.storage.texts import html_text, printable
from ..tree.counts import count_verdicts
from ..tree.leading import find_leading
from ..tree.nodes import ChunkNode, QueryNode, walk_queries
from .calls import caveat_nouns, format_call, texts_of
from .layout import one_line, shorten
from .marks import UNMARKED, Mark, Marks
from .svg import picture_style
from .text import draw_text
from .words import (
    VERDICT_MARKS,
    VERDICT_WORDS,
    caveat_lines,
    format_answer,
    format_cost,
    format_grant,
    format_origin,
    format_skip,
    format_tree,
)

logger = logging.getLogger(__name__)

PICTURE_MAX_NODES = 80
NOTEBOOK_HEIGHT_PX = 640
_COMPRESSION_LEVEL = 6


def pack(data: Json) -> str:
    """Compress data to base64 text; the same data always gives the same text."""
    text = dumps(data, compact=True)
    return base64.b64encode(gzip.compress(text.encode("utf-8"), _COMPRESSION_LEVEL, mtime=0)).decode("ascii")


@dataclass(frozen=True)
class SharedTexts:
    """Distinct texts, which packed data refers to by index."""

    _places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """Return the index of a text, adding it if it is new."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """Return the texts in index order."""
        return list(self._places)


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
    "caveats",
)


Transcripts = Mapping[str, Transcript]
"""What was recorded of calls, by call id."""
NOT_RECORDED: Transcripts = {}


def draw_html(
    root: QueryNode,
    fingerprint: Mapping[str, str],
    draw: Callable[[], str],
    *,
    picture: bool | None = None,
    transcripts: Transcripts = NOT_RECORDED,
    marks: Marks = UNMARKED,
) -> str:
    """Draw the tree as an HTML document that needs no other file, server or network.

    Calls with a transcript show what was sent and what came. ``draw`` makes its SVG; ``picture`` adds it, and None adds
    it to trees of up to 80 nodes if it can be drawn.

    Raises:
        DependencyError: ``picture`` is True and no renderer is installed, or it fails.
    """
    answered = root.status == "finished" and root.answer_status == "answered"
    is_small = sum(1 + len(node.chunks) for node in walk_queries(root)) <= PICTURE_MAX_NODES
    return html_page(
        __package__,
        title=html.escape(shorten(root.query, 80)),
        query=html.escape(one_line(root.query)),
        answer=html.escape(printable(format_answer(root))),
        answer_class="" if answered else "alarm",
        totals="<br>".join(map(html_text, [format_tree(root), *marks.remarks])),
        notes=_notes(fingerprint),
        picture=picture_block(draw, wanted=picture, is_small=is_small),
        text=html.escape(draw_text(root, marks=marks)),
        data=json_in_html(_page_data(root, transcripts, marks)),
    )


def html_page(package: str, *, packs: bool = False, served: bool = False, body: str = "", **parts: str) -> str:
    """Fill in the page of a package and wrap it in a document that allows only its own styles and script, by hash.

    Args:
        package: Package with the body ``page.html``, a ``string.Template``, and its ``page.css`` and ``page.js``.
        packs: Whether the page keeps search trees in packs.
        served: Whether the page may make requests to the server that it came from.
        body: Escaped HTML in place of that of the package, for a page without a script.
        parts: Escaped HTML for the placeholders of the body; ``title`` also names the document.
    """
    scripts = ["tree.js", "packs.js"] if packs else ["tree.js"]
    style = _asset(__package__, "tree.css") + _asset(package, "page.css")
    script = "" if body else "".join(_asset(__package__, name) for name in scripts) + _asset(package, "page.js")
    return Template(_asset(__package__, "document.html")).substitute(
        title=parts["title"],
        style=style,
        style_hash=csp_hash(style),
        picture_hash=csp_hash(picture_style()),
        script=script,
        script_hash=csp_hash(script),
        connect="; connect-src 'self'" if served else "",
        body=body or Template(_asset(package, "page.html").rstrip("\n")).substitute(parts),
    )


def notebook_frame(page: str, *, title: str, text: str) -> str:
    """Wrap a page in a frame, for the output of a notebook cell; ``text`` is for viewers that drop frames.

    The frame contains the page (``srcdoc``), so it works in Jupyter, VS Code and exported HTML, and its style and
    script do not reach the notebook.
    """
    return (
        f'<iframe sandbox="allow-scripts" title="{title}" width="100%" height="{NOTEBOOK_HEIGHT_PX}" '
        f'style="border:1px solid #ccc" srcdoc="{html.escape(page)}"><pre>{html.escape(text)}</pre></iframe>'
    )


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def csp_hash(text: str) -> str:
    """Return the hash of an inline style or script for a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(text_digest(text)).decode()


def picture_block(draw: Callable[[], str], *, wanted: bool | None, is_small: bool, css_class: str = "picture") -> str:
    """Make the picture at the top of a page, with its zoom; ``""`` without one.

    With ``wanted=None`` only a small tree has a picture, if it can be drawn.

    Raises:
        DependencyError: The picture is wanted and cannot be drawn.
    """
    if wanted is False or (wanted is None and not is_small):
        return ""
    try:
        svg = draw()
    except DependencyError as error:
        if wanted:
            raise
        logger.info("The page has no picture: %s", error)
        return ""
    zoom = '<button type="button" id="zoom">Whole picture / actual size</button>'
    return f'<details class="{css_class}" open><summary>Picture</summary>{zoom}<div>{svg}</div></details>'


def _notes(fingerprint: Mapping[str, str]) -> str:
    if not fingerprint:
        return ""
    rows = "".join(
        f"<tr><th>{html_text(name)}</th><td>{html_text(text)}</td></tr>" for name, text in fingerprint.items()
    )
    return f'<details class="extra"><summary>How it was made</summary><table>{rows}</table></details>'


def json_in_html(data: Json) -> str:
    """Serialise JSON for a script element, without ``</script>``, comments, or unusual line separators."""
    text = dumps(data, compact=True)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _page_data(root: QueryNode, transcripts: Transcripts, marks: Marks) -> Json:
    verdicts: list[Json] = [
        {"label": label, "mark": VERDICT_MARKS[label], "words": VERDICT_WORDS[label], "count": count}
        for label, count in count_verdicts(root).items()
        if count
    ]
    return {"verdicts": verdicts, "root": query_data(root, transcripts=transcripts, marks=marks)}


def describe_chunk(chunk: ChunkNode) -> Mapping[str, Json]:
    """Describe a chunk for tree.js, without its sub-run."""
    label = chunk.verdict_label
    notes = [
        ("reason", printable(chunk.reason)),
        ("sub-question", printable(chunk.next_query)),
        ("sub-answer", printable(chunk.sub_answer)),
        ("sub-run", printable(chunk.sub_run_error)),
        ("not asked", format_skip(chunk.skipped) if chunk.skipped else ""),
    ]
    metadata = [(printable(key), _cell(value)) for key, value in chunk.metadata.items()]
    return {
        "label": label,
        "mark": VERDICT_MARKS[label],
        "words": VERDICT_WORDS[label],
        "origin": printable(format_origin(chunk)),
        "headline": shorten(chunk.reason or chunk.text, 120),
        "text": printable(chunk.text),
        "sub_run_error": printable(chunk.sub_run_error),
        "shared": printable(chunk.shared_thread_id),
        "notes": notes,
        "metadata": metadata,
    }


def query_data(
    node: QueryNode,
    describe: Callable[[ChunkNode], Mapping[str, Json]] = describe_chunk,
    *,
    transcripts: Transcripts = NOT_RECORDED,
    texts: SharedTexts | None = None,
    marks: Marks = UNMARKED,
    granted: str = "",
) -> Mapping[str, Json]:
    """Describe a query and its subtree for tree.js; ``granted`` says where the search granted it.

    A page that adds to a chunk, or stores its text elsewhere, passes its own ``describe``. The texts of calls are
    described at the chunk that they are about, else at the query; ``texts`` takes the instructions, which many share.
    """
    places = {id(node): granted}
    made: dict[int, tuple[dict[str, Json], list[dict[str, Json]]]] = {}
    for each in walk_queries(node):  # parents first, without recursion
        made[id(each)] = _query_alone(each, describe, transcripts, texts, marks, places[id(each)])
        places |= {id(sub_run): format_grant(chunk, sub_run) for chunk in each.chunks for sub_run in chunk.sub_runs}
    leading = find_leading(node)
    for each in walk_queries(node):
        query, chunks = made[id(each)]
        query |= {"leads": each.thread_id in leading.queries, "dead": each.thread_id in leading.dead}
        for chunk, data in zip(each.chunks, chunks, strict=True):
            data["leads"] = (each.thread_id, chunk.chunk_id) in leading.chunks
            data["sub_runs"] = [made[id(sub_run)][0] for sub_run in chunk.sub_runs]
    return made[id(node)][0]


def _query_alone(
    node: QueryNode,
    describe: Callable[[ChunkNode], Mapping[str, Json]],
    transcripts: Transcripts,
    texts: SharedTexts | None,
    marks: Marks,
    granted: str,
) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Describe a query and its chunks, which come back a second time, without their sub-runs."""
    chunk_ids = {chunk.chunk_id for chunk in node.chunks}
    said: dict[str, list[Json]] = {}
    for number, call in enumerate(node.usage, start=1):
        if call["call_id"] in transcripts:
            place = call["chunk_id"] if call["chunk_id"] in chunk_ids else ""
            said.setdefault(place, []).append(_call_data(number, call, transcripts[call["call_id"]], texts))
    times = [("started", node.started_at or ""), ("newest checkpoint", node.ended_at or "")]
    answer = printable(format_answer(node))
    chunks: list[dict[str, Json]] = [
        {
            **_marked(describe(chunk), marks.chunks.get((node.thread_id, chunk.chunk_id))),
            "said": said.get(chunk.chunk_id, []),
        }
        for chunk in node.chunks
    ]
    data: dict[str, Json] = {
        "kind": ("query" if node.parent_thread_id is None else f"sub-question, depth {node.depth}")
        + (f" · {granted}" if granted else "")
        + (" · linked" if node.linked_from else ""),
        "thread": printable(node.thread_id),
        "depth": node.depth,
        "status": node.status,
        "answer_status": node.answer_status,
        "query": printable(node.query),
        "answer": answer,
        "caveats": [f"! {printable(line)}" for line in caveat_lines(node.caveats)],
        "cost": format_cost(node),
        "evidence": printable(node.evidence),
        "call_head": _CALL_COLUMNS,
        "calls": [_call_row(call) for call in node.usage],
        "said": said.get("", []),
        "facts": [[name, fact] for name, fact in [("thread", printable(node.thread_id)), *times] if fact],
        "chunks": chunks,
    }
    return data, chunks


def _marked(described: Mapping[str, Json], mark: Mark | None) -> Mapping[str, Json]:
    if mark is None:
        return described
    words = f"{described['words']} · {printable(mark.word)}"
    return {**described, "words": words, "headline": shorten(printable(mark.words), 160)}


def _call_data(number: int, call: CallRecord, transcript: Transcript, texts: SharedTexts | None) -> Json:
    """Describe what a call was sent and what came: a title, and (name, text) of each text."""
    said: list[Json] = []
    for name, text in texts_of(transcript, call):
        is_shared = texts is not None and name == "system"
        said.append([name, texts.place(printable(text)) if is_shared and texts else printable(text)])
    return {"title": f"Call {number}: {printable(call['node'])} · {format_call(call)}", "texts": said}


def _call_row(call: CallRecord) -> list[Json]:
    cells = {**call, "caveats": ", ".join(caveat_nouns(call))}
    return [_cell(cells[column]) for column in _CALL_COLUMNS]


def _cell(value: object) -> Json:
    """Convert a table cell; numbers stay numbers, for their alignment."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else printable(str(value))
