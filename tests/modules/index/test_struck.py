"""What a thin line strikes out in a PDF file is marked, letter by letter, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from judgetree.modules.index.parsers.pdf.document import parse_pdf
from tests.browser import needs_browser
from tests.cpu_time import cpu_time_below
from tests.modules.index.printed_tables import printed
from tests.modules.index.struck_pdfs import PRINTED, STRUCK, UNSTRUCK
from tests.written_pdf import WrittenPage, shown, written_pdf

FILES = {**STRUCK, **UNSTRUCK}


def pages_of(data: bytes) -> list[str]:
    """Return the texts of pages, each on one line, those without a word left out."""
    texts = [" ".join(piece[0].split()) for piece in parse_pdf(data) if isinstance(piece, tuple)]
    return [text for text in texts if text]


@pytest.mark.parametrize("name", FILES)
def test_what_a_line_strikes_out_is_marked(name: str) -> None:
    data, text = FILES[name]
    assert pages_of(data) == [text]


@pytest.fixture(scope="module")
def printed_texts() -> Mapping[str, str]:
    """The texts of pages that a browser has printed, by what is printed."""
    return dict(zip(PRINTED, pages_of(printed([f"<p>{html}" for html, _ in PRINTED.values()])), strict=True))


@needs_browser
@pytest.mark.parametrize("name", PRINTED)
def test_what_a_browser_strikes_out_is_marked(name: str, printed_texts: Mapping[str, str]) -> None:
    assert printed_texts[name] == PRINTED[name][1]


@needs_browser
def test_a_part_of_chinese_words_is_marked() -> None:
    (text,) = pages_of(printed(["<p>合同<s>甲方</s>乙方应于<s>三十</s>十五日内付款"]))
    assert text.replace(" ", "").replace("|", "") == "合同~~甲方~~乙方应于~~三十~~十五日内付款"


@pytest.mark.parametrize("step", [0, 0.01, 1])
def test_many_lines_and_letters_are_read_in_linear_time(step: float) -> None:
    lines = "".join(
        f"{50 + at % 500} {703 - step * (at // 500)} m {54 + at % 500} {703 - step * (at // 500)} l S\n"
        for at in range(4_000)
    )
    words = "".join(shown(50 + 5 * (at % 100), 700 - 1.5 * (at // 100), "w") for at in range(4_000))
    with cpu_time_below(10):
        assert pages_of(written_pdf(WrittenPage(content=lines + words)))
