"""A conversation as a terminal shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.graphs.drawing.layout import columns
from tests.graphs.conversation.drawing.talks import conversation


def test_text_shows_branches_answers_refusals_reuse_and_the_open_turn() -> None:
    assert str(conversation("x")).splitlines() == [
        "talk x: First? x",
        "main",
        "  1 Q: First? x",
        "    A: x  (from a search · 2 sources · no model calls)",
        "  2 Q: And it?",
        "    =: Where is it? x",
        "    A: 堰边  (from earlier turns · 1 source of turn 1 · no model calls)",
        "  3 Q: 磨坊在哪里?",
        "    A: [refused] I cannot answer.  (from a search · no model calls)",
        "    ! its search tree is gone",
        "fork x (active), from turn 1 of main",
        "  2 Q: The weather?",
        "    A: rain  (from the web · no model calls)",
        "  3 Q: Open? x",
        "    [open: not answered yet]",
        "4 turns · 2 branches · no model calls · one turn open",
        "answered: from a search × 2, from earlier turns × 1, from the web × 1, refused × 1",
    ]


@pytest.mark.parametrize("width", [30, 50, 120])
def test_text_lines_fit_the_terminal(width: int) -> None:
    assert max(map(columns, conversation("长文 words " * 30).to_text(width=width).splitlines())) <= width


@given(st.text())
def test_text_keeps_its_lines_whatever_the_text(text: str) -> None:
    drawn = conversation(text).to_text()
    assert len(drawn.split("\n")) == 17
    assert "\x1b" not in drawn
