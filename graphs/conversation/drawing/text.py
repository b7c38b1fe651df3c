"""A conversation as text for the terminal, branch by branch; Chinese characters count as two columns."""

from __future__ import annotations

from collections.abc import Iterator

from ...drawing.layout import columns, one_line, shorten
from ...drawing.words import format_usage
from .turn_tree import Lane, TurnTree
from .words import (
    ANSWERED_WORDS,
    OPEN_WORDS,
    answered_counts,
    format_basis,
    format_conversation,
    format_needed,
    format_said,
    format_search,
    format_standalone,
    format_switch,
    origin_of,
    refusals,
)

_LEAST_TEXT = 20


def draw_conversation_text(tree: TurnTree, *, width: int = 100) -> str:
    """Draw the turns as lines of at most ``width`` columns, totals last; longer lines end in "…".

    A branch is its name, then its own turns without those before its fork.
    """
    head = f"{tree.name}: {tree.title}" if tree.title else tree.name
    lines = [shorten(head, width)]
    for lane in tree.lanes():
        lines += [_fit(text, aside, width) for text, aside in _lane_lines(tree, lane)]
    lines.append(shorten(format_conversation(tree), width))
    if tree.turns:
        lines.append(shorten(f"answered: {_format_counts(tree)}", width))
    return "\n".join(lines)


def _fit(text: str, aside: str, width: int) -> str:
    """Fit an indented line into ``width`` by shortening the text first, then the remark behind it."""
    content = text.lstrip(" ")
    indent = text[: len(text) - len(content)]
    if columns(aside) > width - len(indent) - _LEAST_TEXT:
        aside = f"  {shorten(aside, max(width - len(indent) - _LEAST_TEXT - 2, 2))}"
    return indent + shorten(content, width - len(indent) - columns(aside)) + aside


def _lane_lines(tree: TurnTree, lane: Lane) -> Iterator[tuple[str, str]]:
    """Yield (indented text, remark behind it) of each line."""
    origin = origin_of(tree, lane)
    name = one_line(lane.branch["name"]) + (" (active)" if lane.is_active else "")
    yield f"{name}, {origin}" if origin else name, ""
    turns = [(turn["turn_number"], turn) for turn in lane.turns]
    numbers = [number for number, _ in turns] + ([lane.open_turn["turn_number"]] if lane.open_turn else [])
    digits = max((len(str(number)) for number in numbers), default=1)
    indent = " " * (digits + 3)
    finders = _finders(tree)
    for number, turn in turns:
        yield f"  {number:>{digits}} Q: {one_line(turn['query'])}", ""
        if standalone := format_standalone(turn):
            yield f"{indent}=: {one_line(standalone)}", ""
        for words in filter(None, (format_needed(tree, turn), format_switch(tree, turn))):
            yield f"{indent}<: {one_line(words)}", ""
        aside = f"  ({format_basis(turn)}{finders.get(turn['turn_id'], '')} · {format_usage(turn['usage'])})"
        yield f"{indent}A: {one_line(format_said(turn))}", aside
        if format_search(tree, turn).endswith("gone"):
            yield f"{indent}! its search tree is gone", ""
    if waiting := lane.open_turn:
        yield f"  {waiting['turn_number']:>{digits}} Q: {one_line(waiting['query'])}", ""
        yield f"{indent}[open: {OPEN_WORDS}]", ""


def _finders(tree: TurnTree) -> dict[str, str]:
    """Return " of turn 1, 2" by turn id, for turns that answer from evidence of other turns."""
    numbers: dict[str, list[int]] = {}
    for reuse in tree.reuses():
        numbers.setdefault(reuse.used_in["turn_id"], []).append(reuse.found_in["turn_number"])
    return {turn_id: f" of turn {', '.join(map(str, sorted(found)))}" for turn_id, found in numbers.items()}


def _format_counts(tree: TurnTree) -> str:
    counts = [f"{ANSWERED_WORDS[kind]} × {count}" for kind, count in answered_counts(tree).items()]
    refused = refusals(tree)
    return ", ".join([*counts, f"refused × {refused}"] if refused else counts)
