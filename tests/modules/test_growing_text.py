"""Texts that grow: who is told, and what was added."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.growing_text import Deltas, Listeners


@given(st.lists(st.text("ab六🤔", max_size=4), max_size=8))
def test_deltas_build_up_each_snapshot_again(snapshots: list[str]) -> None:
    deltas, built = Deltas(), ""
    for snapshot in snapshots:
        delta, restarted = deltas.feed(snapshot)
        assert restarted == (not snapshot.startswith(built)), "it starts over only where it must"
        built = delta if restarted else built + delta
        assert built == snapshot


def test_listeners_are_told_of_changes_alone() -> None:
    texts, thinking = list[str](), list[str]()
    listeners = Listeners(on_text=texts.append, on_thinking=thinking.append)
    for text, thought in [("", ""), ("", "six"), ("4", "six"), ("", "six 4"), ("42", "six 4"), ("42", "six 4")]:
        listeners.tell(text=text, thinking=thought)
    assert texts == ["4", "", "42"]
    assert thinking == ["six", "six 4"]


def test_listeners_may_want_one_of_the_texts_or_none() -> None:
    texts = list[str]()
    assert not Listeners().present
    assert Listeners(on_thinking=texts.append).present
    one = Listeners(on_text=texts.append)
    one.tell(text="42", thinking="six")
    Listeners().tell(text="54", thinking="five")
    assert (one.present, texts) == (True, ["42"])
