"""PDF files and pages with lines through words and near them, and what must come of each."""

from __future__ import annotations

from tests.written_pdf import WrittenPage, shown, written_pdf


def _line(left: float, right: float, y: float, *, pen: float = 0.7) -> str:
    return f"{pen} w {left} {y} m {right} {y} l S\n"


def _pdf(
    *content: str, entries: str = "", annotations: tuple[str, ...] = (), form: str = "", form_entries: str = ""
) -> bytes:
    page = WrittenPage(
        content="".join(content), entries=entries, annotations=annotations, form=form, form_entries=form_entries
    )
    return written_pdf(page, font="<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>")


def _struck_by_annotation(*quads: str) -> tuple[str]:
    points = " ".join(quads)
    return (f"<< /Type /Annot /Subtype /StrikeOut /Rect [50 690 300 720] /QuadPoints [{points}] /F 4 >>",)


_WORDS = shown(50, 700, "pay 40 50 now")
"""In Courier, whose letters are 0.6 of their size wide."""
_FORTY = 74, 86
_WAVES = "".join(f"{x} 704 {x + 1} 704 {x + 1} 702 {x + 2} 702 c " for x in range(74, 86, 2))
STRUCK: dict[str, tuple[bytes, str]] = {
    "a word": (_pdf(_WORDS, _line(*_FORTY, 703)), "pay ~~40~~ 50 now"),
    "some words": (_pdf(_WORDS, _line(50, 86, 703)), "~~pay 40~~ 50 now"),
    "words by pieces of a line": (_pdf(_WORDS, _line(50, 70, 703), _line(70, 86, 703)), "~~pay 40~~ 50 now"),
    "a part of a word": (_pdf(shown(50, 700, "price:4050"), _line(86, 98, 703)), "price:~~40~~50"),
    "two parts of a word in one path": (
        _pdf(shown(50, 700, "4050and6070"), "50 703 m 62 703 l 92 703 m 104 703 l S\n"),
        "~~40~~50and~~60~~70",
    ),
    "the first and the last letter": (
        _pdf(shown(50, 700, "words"), _line(50, 56, 703), _line(74, 80, 703)),
        "~~w~~ord~~s~~",
    ),
    "by a flat box": (_pdf(_WORDS, "74 702.6 12 .8 re f\n"), "pay ~~40~~ 50 now"),
    "by two lines": (_pdf(_WORDS, _line(*_FORTY, 702.4), _line(*_FORTY, 704)), "pay ~~40~~ 50 now"),
    "large words by a thick line": (_pdf(shown(50, 700, "Big", size=60), "50 715 108 4.5 re f\n"), "~~Big~~"),
    "by dots": (
        _pdf(_WORDS, "".join(f"{x} 702.6 1 1 re f\n" for x in range(74, 86, 2))),
        "pay ~~40~~ 50 now",
    ),
    "by a dashed pen": (_pdf(_WORDS, "[2 2] 0 d\n", _line(*_FORTY, 703)), "pay ~~40~~ 50 now"),
    "by waves": (_pdf(_WORDS, f".5 w 74 703 m {_WAVES} S\n"), "pay ~~40~~ 50 now"),
    "with an index": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (old H) Tj /F1 6 Tf -2 Ts (2) Tj /F1 10 Tf 0 Ts (O now) Tj ET\n",
            _line(74, 89.6, 703),
        ),
        "old ~~H_2O~~ now",
    ),
    "with a raised number at its end, by two lines": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (old x) Tj /F1 6 Tf 4 Ts (2) Tj /F1 10 Tf 0 Ts ( now) Tj ET\n",
            _line(74, 80, 703),
            _line(80, 83.6, 704.6),
        ),
        "old ~~x^2~~ now",
    ),
    "only the mark of a footnote": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (holds) Tj /F1 6 Tf 4 Ts (12) Tj /F1 10 Tf 0 Ts ( now) Tj ET\n",
            _line(80, 87.2, 705.8, pen=0.5),
        ),
        "holds~~^12~~ now",
    ),
    "in a form": (
        _pdf(
            _WORDS,
            "q .5 0 0 .5 50 700 cm /X1 Do Q\n",
            form="1.4 w 0 0 m 24 0 l S\n",
            form_entries="/Matrix [1 0 0 1 48 6]",
        ),
        "pay ~~40~~ 50 now",
    ),
    "text that runs upwards": (
        _pdf(shown(300, 100, "pay 40 50 now", turn=(0, 1)), "297 124 m 297 136 l S\n"),
        "pay ~~40~~ 50 now",
    ),
    "text that runs downwards": (
        _pdf(shown(300, 500, "pay 40 50 now", turn=(0, -1)), "303 476 m 303 464 l S\n"),
        "pay ~~40~~ 50 now",
    ),
    "on a turned page": (
        _pdf(shown(300, 100, "pay 40 50 now", turn=(0, 1)), "297 124 m 297 136 l S\n", entries="/Rotate 90"),
        "pay ~~40~~ 50 now",
    ),
    "white on black": (
        _pdf("0 g 40 690 200 30 re f 1 g 1 G\n", _WORDS, _line(*_FORTY, 703)),
        "pay ~~40~~ 50 now",
    ),
    "by an annotation": (
        _pdf(_WORDS, annotations=_struck_by_annotation("74 708 86 708 74 698 86 698")),
        "pay ~~40~~ 50 now",
    ),
    "text on its side by an annotation": (
        _pdf(
            shown(300, 100, "pay 40 50 now", turn=(0, 1)),
            annotations=_struck_by_annotation("292 124 292 136 302 124 302 136"),
        ),
        "pay ~~40~~ 50 now",
    ),
    "in a cell": (
        _pdf(
            *(shown(x, y, text) for x, y, text in ((55, 700, "Valve"), (155, 700, "bar"), (55, 680, "KV-7"))),
            shown(155, 680, "16"),
            _line(155, 167, 683),
            *(_line(50, 250, y) for y in (715, 695, 675)),
            *(f"{x} 675 m {x} 715 l S\n" for x in (50, 150, 250)),
        ),
        "Valve | bar KV-7 | ~~16~~",
    ),
}
"""Files by what is struck out, each with the text of the file on one line."""

UNSTRUCK: dict[str, tuple[bytes, str]] = {
    **{
        f"columns at heights {offset} apart, size {size}": (
            _pdf(
                shown(50, 760, "See the valves", size=size),
                _line(50, 50 + 14 * 0.6 * size, 759, pen=0.5),
                shown(300, 760 + offset, "See the pumps.", size=size),
                _line(300, 300 + 14 * 0.6 * size, 759 + offset, pen=0.5),
            ),
            "See the valves See the pumps.",
        )
        for offset, size in ((2.5, 9), (2.5, 10), (2.9, 10), (2.9, 11))
    },
    "an underlined mark of a footnote": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (holds) Tj /F1 6 Tf 4 Ts (12) Tj /F1 10 Tf 0 Ts ( now) Tj ET\n",
            _line(80, 87.2, 703),
        ),
        "holds^12 now",
    ),
    "an underlined index": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (holds) Tj /F1 6 Tf -2.5 Ts (12) Tj /F1 10 Tf 0 Ts ( now) Tj ET\n",
            _line(80, 87.2, 699.2, pen=0.5),
        ),
        "holds_12 now",
    ),
    "an index in an underlined word": (
        _pdf(
            "BT /F1 10 Tf 50 700 Td (gas CO) Tj /F1 6 Tf -2.5 Ts (2) Tj /F1 10 Tf 0 Ts ( now) Tj ET\n",
            _line(74, 89.6, 699, pen=0.5),
        ),
        "gas CO_2 now",
    ),
    "half-height band of colour": (_pdf("1 1 0 rg 74 700 12 4.5 re f 0 g\n", _WORDS), "pay 40 50 now"),
    "thick pen of colour": (_pdf("1 1 0 RG\n", _line(*_FORTY, 703, pen=13), _WORDS), "pay 40 50 now"),
    "bar behind a label": (_pdf(".8 g 70 701 20 4 re f 0 g\n", _WORDS), "pay 40 50 now"),
    "white line": (_pdf(_WORDS, "1 G\n", _line(*_FORTY, 703)), "pay 40 50 now"),
    "line in the colour of its ground": (
        _pdf("1 .9 .5 rg 40 690 200 30 re f 0 g\n", _WORDS, "1 .9 .5 RG\n", _line(*_FORTY, 703)),
        "pay 40 50 now",
    ),
    "line without opacity": (_pdf(_WORDS, "/Clear gs\n", _line(*_FORTY, 703)), "pay 40 50 now"),
    "path that is not drawn": (_pdf(_WORDS, "74 703 m 86 703 l n\n"), "pay 40 50 now"),
    "underline": (_pdf(_WORDS, _line(*_FORTY, 698.5)), "pay 40 50 now"),
    "double underline": (_pdf(_WORDS, _line(*_FORTY, 698.5), _line(*_FORTY, 697)), "pay 40 50 now"),
    "overline": (_pdf(_WORDS, _line(*_FORTY, 709)), "pay 40 50 now"),
    "line across the page": (_pdf(_WORDS, _line(0, 600, 703)), "pay 40 50 now"),
    "line far longer than its word": (_pdf(shown(50, 700, "40"), _line(50, 90, 703)), "40"),
    "arrow behind a word": (
        _pdf(shown(50, 700, "in"), _line(66, 90, 703), "86 705 m 90 703 l 86 701 l S\n", shown(94, 700, "out")),
        "in out",
    ),
    "fraction": (
        _pdf(
            shown(50, 700, "a ="),
            shown(74, 706, "12", size=8),
            shown(74, 694, "34", size=8),
            _line(73, 85, 703, pen=0.5),
        ),
        "12 a = 34",
    ),
    "frame of a word": (_pdf(_WORDS, "72 697 16 13 re S\n"), "pay 40 50 now"),
    "hidden annotation": (
        _pdf(
            _WORDS,
            annotations=(_struck_by_annotation("74 708 86 708 74 698 86 698")[0].replace("/F 4", "/F 2"),),
        ),
        "pay 40 50 now",
    ),
}
"""Files by what is near words and does not strike them out, each with the text of the file on one line."""

PRINTED: dict[str, tuple[str, str]] = {
    "parts of words": ("price:<s>40</s>50 un<s>real</s>ly €<s>40</s>", "price:~~40~~50 un~~real~~ly €~~40~~"),
    "Hebrew": ("זה <s>ישן</s> חדש", "זה ~~ישן~~ חדש"),
    "dotted": ("<s style='text-decoration-style:dotted'>two words</s>", "~~two words~~"),
    "dashed": ("<s style='text-decoration-style:dashed'>two words</s>", "~~two words~~"),
    "wavy": ("<s style='text-decoration-style:wavy'>two words</s>", "~~two words~~"),
    "double": ("<s style='text-decoration-style:double'>two words</s>", "~~two words~~"),
    "large": ("<s style='font-size:60px'>Big</s>", "~~Big~~"),
    "large and wavy": ("<s style='font-size:60px;text-decoration-style:wavy'>Bog</s>", "~~Bog~~"),
    "red and thick": ("<s style='text-decoration:line-through 3px red'>words</s>", "~~words~~"),
    "half of the ink": ("<s style='text-decoration-color:rgba(0,0,0,.5)'>words</s>", "~~words~~"),
    "half of all ink": ("<s style='opacity:.5'>words</s>", "~~words~~"),
    "white on black": ("<s style='background:black;color:white'>words</s>", "~~words~~"),
    "turned": ("<s style='display:inline-block;transform:rotate(90deg)'>words</s>", "~~words~~"),
    "scripts": ("<s>old H<sub>2</sub>O and x<sup>2</sup></s>, new", "~~old H_2O and x^2~~, new"),
    "marks of footnotes": (
        "holds<sup><a href='#x'>12</a></sup>, said<a href='#x'><sup>[3]</sup></a>, more<sup><u>note 4</u></sup>",
        "holds^12, said^([3]), more^(note 4)",
    ),
    "underlined index": ("alpha<u><sub>only</sub></u>", "alpha_only"),
    "underlined small text": ("<u><sub>only</sub></u>", "only"),
    "underlined chemistry": ("<u>CO<sub>2</sub></u> and <u>mc<sup>2</sup></u>", "CO_2 and mc^2"),
    "underlines of two columns": (
        "<span style='display:flex;font-size:11px'><u style='width:200px'>See the valves</u>"
        "<u style='margin-top:3px'>and the pumps</u></span>",
        "See the valves and the pumps",
    ),
    "thick underline": (
        "<u style='text-decoration:underline 8px yellow;text-underline-offset:-8px'>two words</u>",
        "two words",
    ),
    "shadow": ("<b style='box-shadow:inset 0 -.5em yellow'>two words</b>", "two words"),
    "gradient": ("<b style='background:linear-gradient(transparent 55%,yellow 55%)'>two words</b>", "two words"),
    "block behind words": (
        "<b style='position:relative'><i style='position:absolute;z-index:-1;left:0;right:0;top:40%;height:40%;"
        "background:#cfc'></i>two words</b>",
        "two words",
    ),
    "white line": ("<s style='text-decoration-color:white'>words</s>", "words"),
    "line without opacity": ("<s style='text-decoration-color:transparent'>words</s>", "words"),
    "line in the colour of its ground": (
        "<s style='background:yellow;text-decoration-color:yellow'>words</s>",
        "words",
    ),
}
"""HTML by what is printed, each with its text in the PDF file."""
