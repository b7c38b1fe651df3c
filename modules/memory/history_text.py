"""Earlier turns as a prompt shows them, cut so that they never take more tokens than there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..calls.tokens import shortened, text_tokens
from .prompts import render_turns
from .turns import QaPair

HistoryRenderer = Callable[[Sequence[tuple[str, str]]], str]
"""Writes (question, answer) pairs down for a prompt."""

_LEAST_OF_A_TURN = 40
"""Tokens below which a turn says nothing: older turns are left out instead."""


def history_text(
    turns: Sequence[QaPair], *, summary: str = "", max_tokens: int, render: HistoryRenderer | None = None
) -> str:
    """Turns and the summary before them, in no more tokens than that.

    What is too long is shortened, the longest texts first: every turn keeps its beginning and its end. Only where there
    is no room for all, the oldest are left out.

    Args:
        turns: Oldest first.
        summary: Of the turns before; has at most a third of the room. Not for ``render``.
        max_tokens: The room, as ``token_estimates`` counts.
        render: Writes the turns down in place of ``render_turns``.
    """
    if render is None:
        summary = shortened(summary, max_tokens // 3)
        fitting = fitting_turns(turns, max_tokens - text_tokens(render_turns((), summary=summary)))
        text = render_turns(fitting, summary=summary)
    else:
        text = render([(turn["query"], turn["answer"]) for turn in fitting_turns(turns, max_tokens)])
    return shortened(text, max_tokens)


def fitting_turns(turns: Sequence[QaPair], max_tokens: int) -> list[QaPair]:
    """The turns, their texts shortened as far as need be; without the oldest where there is no room for all."""
    bounded = [_bounded(turn, max_tokens) for turn in turns]
    if sum(map(_cost, bounded)) <= max_tokens:
        return bounded
    most = max(max_tokens, 0) // _LEAST_OF_A_TURN
    kept = bounded[-most:] if most else []
    rooms = fair_shares([_cost(turn) for turn in kept], max_tokens)
    return [_shortened_turn(turn, room) for turn, room in zip(kept, rooms, strict=True)]


def fair_shares(wanted: Sequence[int], room: int) -> list[int]:
    """How much each gets of the room: all that it wants, or as much as any other that wants too much.

    >>> fair_shares([5, 100, 300], 105)
    [5, 50, 50]
    """
    shares = [0] * len(wanted)
    smallest_first = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(smallest_first):
        shares[place] = min(wanted[place], room // (len(wanted) - done))
        room -= shares[place]
    return shares


def _bounded(turn: QaPair, max_tokens: int) -> QaPair:
    """The turn without what no share of the room could show, so that everything after this is quick."""
    return turn | {
        "query": shortened(turn["query"], max_tokens),
        "standalone_query": shortened(turn["standalone_query"], max_tokens),
        "answer": shortened(turn["answer"], max_tokens),
    }


def _cost(turn: QaPair) -> int:
    return text_tokens(render_turns([turn])) + 2  # the blank line behind it


def _shortened_turn(turn: QaPair, max_tokens: int) -> QaPair:
    if _cost(turn) <= max_tokens:
        return turn
    is_rewritten = turn["standalone_query"] != turn["query"]
    texts = [turn["query"], turn["standalone_query"] if is_rewritten else "", turn["answer"]]
    frame = _cost(turn | {"query": "", "standalone_query": "?" if is_rewritten else "", "answer": ""})
    rooms = fair_shares([text_tokens(text) for text in texts], max(0, max_tokens - frame))
    query, standalone, answer = (shortened(text, room) for text, room in zip(texts, rooms, strict=True))
    return turn | {"query": query, "standalone_query": standalone if is_rewritten else query, "answer": answer}
