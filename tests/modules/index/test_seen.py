"""What a person sees in HTML and PDF files is in their chunks, or told as left out; what nobody sees is not there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import LoadLimits, parse_file
from judgetree.modules.index.folder_scan import scan_files
from judgetree.modules.index.parsers.parsed import ParsedFile
from judgetree.modules.index.plan import ChunkSizes, read_changes
from tests.cpu_time import cpu_time_below
from tests.modules.index import seen_pages, seen_pdfs, turned_pdfs
from tests.written_pdf import WrittenPage, shown, written_pdf

FILES: dict[str, tuple[str, bytes, list[str]]] = {
    **{f"page: {name}": (".html", page.encode(), texts) for name, (page, texts) in seen_pages.SEEN.items()},
    **{f"PDF: {name}": (".pdf", data, texts) for name, (data, texts) in seen_pdfs.SEEN.items()},
    **{f"PDF from the right: {name}": (".pdf", data, texts) for name, (data, texts) in turned_pdfs.TURNED.items()},
}
LACKING = {
    **{f"page: {name}": (".html", page.encode(), left_out) for name, (page, left_out) in seen_pages.LEFT_OUT.items()},
    **{f"PDF: {name}": (".pdf", data, left_out) for name, (data, left_out) in seen_pdfs.LEFT_OUT.items()},
}
HIDDEN = {
    **{f"page: {name}": (".html", f"<p>Words.</p>{page}".encode(), "XX") for name, page in seen_pages.UNSEEN.items()},
    **{f"PDF: {name}": (".pdf", data, text) for name, (data, text) in seen_pdfs.UNSEEN.items()},
}


def parsed(suffix: str, data: bytes) -> ParsedFile:
    return parse_file(suffix, data, LoadLimits())


def on_one_line(found: ParsedFile) -> str:
    return " ".join(" ".join(text.split()) for text, _ in found)


@pytest.mark.parametrize("name", FILES)
def test_what_a_reader_sees_is_in_the_text(name: str) -> None:
    suffix, data, texts = FILES[name]
    text = on_one_line(parsed(suffix, data))
    assert [each for each in texts if each not in text] == [], text


@pytest.mark.parametrize("seed", range(50))
def test_every_word_between_lines_at_any_places_is_in_the_text(seed: int) -> None:
    places = random.Random(seed)
    xs, ys = places.sample(range(50, 550, 30), 4), places.sample(range(100, 700, 26), 6)
    rules = [
        f"{x} {y} m {other} {y} l S\n" if places.random() < 0.5 else f"{x} {y} m {x} {places.choice(ys)} l S\n"
        for x, other, y in ((places.choice(xs), places.choice(xs), places.choice(ys)) for _ in range(20))
    ]
    at = places.sample([(x + 2, y + 4 + rise) for x in xs for y in ys for rise in (0, 13)], 40)
    words = [f"w{number}w" for number in range(len(at))]
    cells = [shown(x, y, word) for (x, y), word in zip(at, words, strict=True)]
    text = on_one_line(parsed(".pdf", written_pdf(WrittenPage(content="".join(rules + cells)))))
    assert [word for word in words if word not in text] == [], text


@pytest.mark.parametrize("name", HIDDEN)
def test_what_no_reader_sees_is_not_in_the_text(name: str) -> None:
    suffix, data, hidden = HIDDEN[name]
    text = on_one_line(parsed(suffix, data))
    assert hidden not in text
    assert "Words." in text


@pytest.mark.parametrize("name", LACKING)
def test_what_is_seen_and_no_text_is_told(name: str) -> None:
    suffix, data, left_out = LACKING[name]
    assert parsed(suffix, data).left_out == left_out


@pytest.mark.parametrize("name", seen_pages.ENCODED)
def test_the_encoding_of_a_page_is_found(name: str) -> None:
    assert on_one_line(parsed(".html", seen_pages.ENCODED[name])) == "“Grüße” für 5 €"


def test_the_lines_of_code_keep_their_spaces() -> None:
    ((text, _),) = parsed(".html", b"<pre>if x:\n    y = 1</pre>")
    assert text == "if x:\n    y = 1"


def test_code_beside_the_numbers_of_its_lines_keeps_its_lines() -> None:
    page = b"<table><tr><td><pre>1\n2</pre><td><pre>if x:\n    y = 1</pre></table>"
    ((text, _),) = parsed(".html", page)
    assert text.endswith("if x:\n    y = 1")
    ((text, _),) = parsed(".html", b"<table><tr><td>KV-7<td><pre>a\nb</pre></table>")
    assert text == "KV-7 | a b"


@pytest.mark.parametrize(
    ("suffix", "data", "reason"),
    [
        (".html", b"<div id=app></div><script src=a.js></script>", "it holds no text, but 1 script-only page"),
        (".pdf", seen_pdfs.SCAN, "it holds no text, but 2 scanned pages"),
        (".pdf", seen_pdfs.LOCKED, "it is protected by a password"),
        (".pdf", seen_pdfs.SCAN[:200], "it cannot be read"),
    ],
)
def test_a_file_without_text_is_refused_with_what_it_shows(suffix: str, data: bytes, reason: str) -> None:
    with pytest.raises(LoadingError, match=reason):
        parsed(suffix, data)


def test_the_report_names_what_was_left_out_of_each_file(docs: Path) -> None:
    (docs / "a.pdf").write_bytes(seen_pdfs.LEFT_OUT["scanned pages"][0])
    (docs / "b.html").write_bytes(b"<p>Words.<video></video>")
    (docs / "c.html").write_bytes(b"<p>Words.")
    plan = read_changes(scan_files(docs), {}, ChunkSizes(), lambda done, total, stage: None, LoadLimits())
    assert plan.report({}, ignored=0).left_out == {"a.pdf": {"scanned page": 2}, "b.html": {"video": 1}}


@pytest.mark.parametrize("opening", ["<s>", "<div style='text-decoration:line-through'>", "<s><div>"])
def test_what_is_struck_out_is_read_in_linear_time(opening: str) -> None:
    with cpu_time_below(5):
        assert "end" in on_one_line(parsed(".html", f"{opening * 4_000}<p>end".encode()))


_RULES = "".join(
    f".c{at} .d{at % 50}, div.c{at}.e{at % 7}, #i{at} > div {{display:block;top:1px}}" for at in range(2_000)
)


@pytest.mark.parametrize(
    "page",
    [
        "<span style='vertical-align:super'>" * 5_000,
        "<sup>" * 5_000,
        "<label style='text-decoration:line-through'>" * 2_500,
        "<span style='text-decoration:line-through'>" * 2_500,
        "<i aria-hidden=true>" * 2_500 + "x" + "</i>" * 2_500,
        "<div style='visibility:hidden'><div style='visibility:visible'>" * 1_250,
        f"<style>{_RULES}</style>" + "<div class='c1 d1'>" * 2_500,
        f"<style>{''.join(f'.x{at} div{{display:block}}' for at in range(500))}</style>" + "<div>" * 2_500,
        "<style>" + "div " * 1_250 + "{display:none} div div div div{top:1px}</style>" + "<div>" * 2_500,
        "<style>" + ".a{display:none}" * 12_500 + "</style>",
        "<style>" + ".a,.b{" * 12_500 + "</style>",
        "<table>" + "<b>" * 1_250 + "<td></td>" * 1_250,
        "<dd><section>" * 1_250 + "</dt>" * 1_250,
        "<p>" + "<s>" * 1_250 + "<p>x" * 1_250,
        "<svg><text>" + "<tspan x=1 dy=-6 font-size=9>" * 2_500 + "</text></svg>",
        "<b class=msupsub><b class=vlist><b style='top:-3em'>" * 1_250,
        "<b class=msupsub>" * 2_500,
        "<b class=mfrac><b class=vlist><b style='top:-3em'>2</b><b style='top:-4em'>" * 1_250,
        "<b class=mtable><b class=col-align-c><b class=vlist><b style='top:-3em'>" * 1_000,
        "<b class=sqrt><b class=vlist><b style='top:-3em'>" * 1_250,
        "<div style='display:inline-flex'>" * 2_500,
        "<math>" + "<mtext>" * 2_500 + "</math>",
    ],
    ids=lambda page: page[:30],
)
def test_styles_are_read_in_linear_time(page: str) -> None:
    with cpu_time_below(2):
        assert "end" in on_one_line(parsed(".html", f"{page}<p>end".encode()))


@pytest.mark.parametrize("count", [300, 25_000])
def test_what_too_many_rules_are_about_is_not_hidden(count: int) -> None:
    rules = ".a{display:none}" + "".join(f".x{at} p{{display:block}}" for at in range(count))
    assert on_one_line(parsed(".html", f"<style>{rules}</style><p class=a>one".encode())) == "one"
