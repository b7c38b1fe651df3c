"""Two search trees side by side: as text for the terminal, and as one HTML page without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ...modules.calls.usage import UsageTotals
from ...modules.passage_names import full_passage_name, passage_name
from ...modules.storage.texts import html_text
from ..tree.alignment import ChunkPair, QueryPair, walk_pairs
from ..tree.differences import Difference
from ..tree.nodes import ChunkNode, QueryNode
from .html import html_page
from .layout import one_line, shorten
from .words import VERDICT_MARKS, VERDICT_WORDS, count_of, format_answer, format_origin, format_usage

_KINDS: Mapping[str, str] = {
    "question": "asked",
    "chunk": "found",
    "verdict": "judged",
    "sub_question": "asks",
    "answer": "answered",
}
_SHOWN_CHARACTERS = 160


class DrawnDiff(Protocol):
    """Protocol of the comparisons that are drawn, such as ``rag.tree_diff.TreeDiff``."""

    @property
    def root(self) -> QueryPair:
        """The two roots."""
        ...

    @property
    def usage_a(self) -> UsageTotals:
        """Usage of the first tree."""
        ...

    @property
    def usage_b(self) -> UsageTotals:
        """Usage of the second tree."""
        ...

    @property
    def settings(self) -> Mapping[str, tuple[str, str]]:
        """Entries of the fingerprints that differ."""
        ...

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All differences, in causal order."""
        ...

    @property
    def gained(self) -> tuple[ChunkNode, ...]:
        """Chunks of the second tree alone."""
        ...

    @property
    def lost(self) -> tuple[ChunkNode, ...]:
        """Chunks of the first tree alone."""
        ...


def draw_diff_text(diff: DrawnDiff, *, width: int) -> str:
    """Draw a comparison as lines of at most ``width`` columns: both answers, then all differences, the first first."""
    lines = [*_head_lines(diff), *(f"{name}: {a or '-'} | {b or '-'}" for name, (a, b) in diff.settings.items())]
    query = None
    for each in diff.differences:
        if (each.depth, each.query) != query:
            query = (each.depth, each.query)
            lines.append(f"depth {each.depth} Q: {one_line(each.query)}")
        lines.append(f"  {_format_difference(each, width)}")
    lines.append(_totals(diff))
    return "\n".join(shorten(line, width) if not line.startswith("  ") else line for line in lines)


def _head_lines(diff: DrawnDiff) -> Iterator[str]:
    for side, node, usage in (("A", diff.root.a, diff.usage_a), ("B", diff.root.b, diff.usage_b)):
        if node is not None:
            yield f"{side} {node.thread_id}: {one_line(format_answer(node))}  ({format_usage(usage)})"


def _format_difference(each: Difference, width: int) -> str:
    """Format a difference on one line, whose two sides share the room."""
    place = f"{one_line(passage_name(each.source, each.title, each.chunk_id))} " if each.chunk_id else ""
    head = f"{shorten(place, width // 3)} {_KINDS[each.kind]}: ".lstrip()
    room = max((width - len(head) - 5) // 2, 12)
    return f"{head}{shorten(_side(each, each.a), room)} → {shorten(_side(each, each.b), room)}"


def _side(each: Difference, text: str) -> str:
    return (f"[{text}]" if each.kind == "verdict" else one_line(text)) or "-"


def _totals(diff: DrawnDiff) -> str:
    if not diff.differences:
        return "The two trees are alike."
    flips = sum(each.kind == "verdict" for each in diff.differences)
    changes = [count_of(len(diff.differences), "difference"), count_of(flips, "verdict") + " changed"]
    return " · ".join([*changes, f"{count_of(len(diff.gained), 'chunk')} gained", f"{len(diff.lost):,} lost"])


def draw_diff_html(diff: DrawnDiff) -> str:
    """Draw a comparison as an HTML document that needs no other file; parts that are alike are folded."""
    title = html_text(shorten(diff.root.either.query, 80))
    parting = [] if not diff.differences else [_parting(diff.differences[0])]
    body = "\n".join(
        [
            f"<header><h1>{title}</h1>",
            *(f'<p class="faint">{html_text(line)}</p>' for line in _head_lines(diff)),
            *parting,
            f'<p class="faint">{html_text(_totals(diff))}</p>{_settings_table(diff.settings)}</header>',
            f'<main class="sides">{_pair_html(diff.root)[0]}</main>',
        ]
    )
    return html_page(__package__, title=title, body=body)


def _parting(first: Difference) -> str:
    where = " · ".join(
        filter(None, (f"depth {first.depth}", first.query, full_passage_name(first.source, first.title)))
    )
    a, b = (_side(first, text) for text in (first.a, first.b))
    return f"<p><b>First divergence</b> ({html_text(where)}): {_KINDS[first.kind]} {html_text(a)} → {html_text(b)}</p>"


def _settings_table(settings: Mapping[str, tuple[str, str]]) -> str:
    if not settings:
        return ""
    rows = "".join(
        f"<tr><th>{html_text(name)}</th><td>{html_text(a) or '-'}</td><td>{html_text(b) or '-'}</td></tr>"
        for name, (a, b) in settings.items()
    )
    return f'<details class="extra" open><summary>Settings that differ</summary><table>{rows}</table></details>'


def _pair_html(pair: QueryPair) -> tuple[str, bool]:
    """Draw a query and all below it, unfolded where the two trees differ; return it, and whether they are alike."""
    drawn: dict[int, tuple[list[str], bool]] = {}
    for each in reversed([*walk_pairs(pair)]):  # the deepest first, without recursion
        drawn[id(each)] = _pair_parts(each, [drawn.pop(id(child)) for child in each.children])
    parts, is_alike = drawn[id(pair)]
    return "".join(parts), is_alike


def _pair_parts(pair: QueryPair, children: Sequence[tuple[list[str], bool]]) -> tuple[list[str], bool]:
    """Return the parts of the drawing of a query, given those of its sub-questions and whether each is alike."""
    is_alike = _is_alike(pair) and all(map(_is_alike_chunk, pair.chunks)) and all(alike for _, alike in children)
    head = _row(_query_html(pair.a), _query_html(pair.b), is_alike=_is_alike(pair))
    rows = "".join(
        _row(_chunk_html(each.a), _chunk_html(each.b), is_alike=_is_alike_chunk(each)) for each in pair.chunks
    )
    below = ['<div class="deeper">', *(part for parts, _ in children for part in parts), "</div>"] if children else []
    return [f"<details{'' if is_alike else ' open'}><summary>{head}</summary>{rows}", *below, "</details>"], is_alike


def _is_alike(pair: QueryPair) -> bool:
    a, b = pair.a, pair.b
    return a is not None and b is not None and (a.query, format_answer(a)) == (b.query, format_answer(b))


def _is_alike_chunk(pair: ChunkPair) -> bool:
    a, b = pair.a, pair.b
    return a is not None and b is not None and (a.rank, a.verdict_label) == (b.rank, b.verdict_label)


def _row(a: str, b: str, *, is_alike: bool) -> str:
    return f'<span class="row{"" if is_alike else " differs"}"><span>{a}</span><span>{b}</span></span>'


def _query_html(node: QueryNode | None) -> str:
    if node is None:
        return ""
    cost = f'<span class="faint">{html_text(format_usage(node.cost))}</span>'
    return f"<b>{html_text(_cut(node.query))}</b><br>→ {html_text(_cut(format_answer(node)))}<br>{cost}"


def _chunk_html(chunk: ChunkNode | None) -> str:
    if chunk is None:
        return ""
    label = chunk.verdict_label
    badge = f'<span class="badge verdict-{label}" title="{VERDICT_WORDS[label]}">{VERDICT_MARKS[label]}</span>'
    notes = [format_origin(chunk), _cut(chunk.reason or chunk.text), *_asked(chunk)]
    return f"{badge} " + "<br>".join(map(html_text, notes))


def _asked(chunk: ChunkNode) -> Sequence[str]:
    asked = [f"asks: {chunk.next_query}"] if chunk.next_query else []
    return [*asked, *([f"sub-run: {chunk.sub_run_error}"] if chunk.sub_run_error else [])]


def _cut(text: str) -> str:
    line = one_line(text[: 4 * _SHOWN_CHARACTERS])
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"
