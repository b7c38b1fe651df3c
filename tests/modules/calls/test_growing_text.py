"""Texts that grow: what listeners get of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.growing_text import Delta, Listeners, Paragraphs

texts = st.text("ab \n六🤔", max_size=6)


class Heard:
    """Puts together what a listener is given, as the contract says."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.text = ""

    def __call__(self, delta: Delta) -> None:
        assert delta.text or delta.restarted, "nothing is no piece"
        self.deltas.append(delta)
        self.text = delta.text if delta.restarted else self.text + delta.text


@given(
    pieces=st.lists(st.tuples(texts, st.booleans()), max_size=8), final=st.sampled_from(["as given", "longer", "other"])
)
def test_pieces_build_up_the_final_text(pieces: list[tuple[str, bool]], final: str) -> None:
    heard, said = Heard(), ""
    listeners = Listeners(on_text=heard)
    for text, restarted in pieces:
        listeners.add(text=Delta(text, restarted))
        said = text if restarted else said + text
        assert heard.text == said
    text = {"as given": said, "longer": f"{said}!", "other": "other"}[final]
    before = len(heard.deltas)
    listeners.settle(text=text, thinking="not listened to")
    assert heard.text == text
    assert len(heard.deltas) - before == (text != said)


def test_another_attempt_voids_what_was_given_and_nothing_else() -> None:
    text, thinking = Heard(), Heard()
    listeners = Listeners(on_text=text, on_thinking=thinking)
    listeners.start_over()
    listeners.add(thinking=Delta("six"))
    listeners.start_over()
    assert (text.deltas, thinking.deltas) == ([], [Delta("six"), Delta("", restarted=True)])


def test_listeners_may_want_one_of_the_texts_or_none() -> None:
    heard = Heard()
    assert not Listeners().present
    assert Listeners(on_thinking=heard).present
    one = Listeners(on_text=heard)
    one.add(text=Delta("42"), thinking=Delta("six"))
    Listeners().add(text=Delta("54"), thinking=Delta("five"))
    assert (one.present, heard.text) == (True, "42")


@given(st.lists(st.lists(texts, max_size=4), max_size=4))
def test_paragraphs_are_stripped_and_those_with_nothing_in_them_left_out(written: list[list[str]]) -> None:
    paragraphs, taken = Paragraphs(), ""
    for pieces in written:
        for piece in pieces:
            paragraphs.feed(piece)
            taken += paragraphs.take()
        paragraphs.end_paragraph()
    whole = "\n\n".join(filter(None, ("".join(pieces).strip() for pieces in written)))
    assert str(paragraphs) == taken == whole
    assert bool(paragraphs) == bool(whole)
