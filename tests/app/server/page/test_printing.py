"""The page on paper."""

from __future__ import annotations

import base64
from typing import cast

import pytest
from pypdfium2 import PdfDocument, PdfPage

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.server.page.looking import PICTURES, ask, wait_for_answer
from tests.app.server.page.test_big_trees import show
from tests.driver import Page, needs_driver

QUESTION = "Which material closes the joint at Rating F40 of KV-133?"
HOPPING = "What is the highest service temperature of the gasket in a KV-133 Rating F40 flange?"
LINES = 300
A4 = {"paperWidth": 8.27, "paperHeight": 11.69}


@needs_driver
@pytest.mark.slow
def test_a_long_answer_is_printed_whole(page: Page, model: ScriptedServer) -> None:
    def answer_at_length(request: ReceivedRequest) -> ChatReply | None:
        if request.prompt.kind != "read":
            return None
        return ChatReply(text="\n\n".join(f"Line {number} of the answer." for number in range(LINES)))

    model.responses = answer_at_length
    ask(page, QUESTION)
    wait_for_answer(page)
    model.responses = None
    page.chrome("Emulation.setEmulatedMedia", media="print")
    try:
        height = page.run("return document.documentElement.scrollHeight")
        last = page.run("return [...document.querySelectorAll('.answer p')].at(-1).getBoundingClientRect().bottom")
        assert isinstance(height, int) and isinstance(last, int | float)
        assert LINES * 20 < last <= height
        for part in ("#bar", ".composer", ".tree-tools"):
            assert page.run(f"return document.querySelector('{part}').checkVisibility()") is False
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / "printed.png").write_bytes(page.picture())
    finally:
        page.chrome("Emulation.setEmulatedMedia", media="")


def sheets(page: Page, name: str) -> list[PdfPage]:
    """The sheets that Chromium prints the page on; pictures of them are kept to be looked at."""
    printed = cast(dict[str, str], page.chrome("Page.printToPDF", **A4))
    found = list(PdfDocument(base64.b64decode(printed["data"])))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for number, sheet in enumerate(found, 1):
        sheet.render(scale=1.5).to_pil().save(PICTURES / f"printed-{name}-{number}.png")
    return found


def top_of(words: str, sheet: PdfPage) -> float:
    """How far from the lower edge of a sheet words stand."""
    text = sheet.get_textpage()
    found = text.search(words).get_next()
    assert found, (words, text.get_text_range())
    return float(text.get_charbox(found[0])[3])


@needs_driver
@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_answer_sources_and_tree_are_printed_in_this_order(page: Page, width: int) -> None:
    page.appear(width=width, dark=True)
    ask(page, HOPPING)
    wait_for_answer(page)
    page.wait("document.querySelector('.totals').textContent.includes('8 of 60')")
    (sheet,) = sheets(page, f"turn-{width}")
    parts = ["212 °C", "materials/kv-207-gasket-materials.md", "Search tree", "8 of 60 calls"]
    parts += ["holds a needed fact; another one", "What is the maximum temperature for Dorsan", "holds every fact"]
    places = [top_of(part, sheet) for part in parts]
    assert places == sorted(places, reverse=True)


@needs_driver
@pytest.mark.slow
def test_no_card_of_a_large_tree_is_torn_by_the_end_of_a_sheet(page: Page) -> None:
    show(page, 96)
    found = [sheet.get_textpage().get_text_range() for sheet in sheets(page, "tree-96")]
    assert len(found) > 1
    for sheet in found:
        assert sheet.count("Which gasket of the flange") == sheet.count("in KV-133?") > 0
        assert sheet.count("#1") == sheet.count("names the gasket") - sheet.count("#2") - sheet.count("#3")
