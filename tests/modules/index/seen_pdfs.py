"""PDF files with a sentence in every place that a reader sees, and what must come of each."""

from __future__ import annotations

from collections.abc import Sequence

from tests.written_pdf import WrittenPage, shown, written_pdf

_LEFT = [
    "The heron stood in the shallow water",
    "for an hour without a single step and",
    "then took the largest of the sticklebacks",
    "before it flew away over the reeds.",
]
_RIGHT = [
    "Copper prices fell again last Tuesday",
    "because the harbour in the north was",
    "closed for repairs to both of its cranes",
    "and no ship could be unloaded there.",
]


def _lines(x: float, y: float, lines: list[str], *, size: float = 10) -> str:
    return "".join(shown(x, y - 14 * number, line, size=size) for number, line in enumerate(lines))


def _across(top: float = 700) -> str:
    """Two columns, written line by line across both."""
    return "".join(
        shown(50, top - 14 * number, left) + shown(320, top - 14 * number, right)
        for number, (left, right) in enumerate(zip(_LEFT, _RIGHT, strict=True))
    )


def _raised(x: float, y: float, before: str, script: str, after: str, *, rise: float) -> str:
    return f"BT /F1 10 Tf {x} {y} Td ({before}) Tj /F1 6 Tf {rise} Ts ({script}) Tj /F1 10 Tf 0 Ts ({after}) Tj ET\n"


_TABLE = "".join(
    shown(x, 600 - 20 * row, cell)
    for row, cells in enumerate(
        [
            ("Valve", "Pressure", "Weight"),
            ("KV-7", "16 bar", "40 kg"),
            ("KV-8", "25 bar", "52 kg"),
            ("KV-9", "", "61 kg"),
        ]
    )
    for x, cell in zip((60, 260, 460), cells, strict=True)
    if cell
)
_RULED = "".join(
    shown(60, 600 - 30 * row, left)
    + shown(320, 600 - 30 * row, right)
    + f"50 {590 - 30 * row} m 560 {590 - 30 * row} l S\n"
    for row, (left, right) in enumerate(
        [
            ("Name of the part in the catalogue of 1998", "Remarks of the inspector at the last visit"),
            ("Flange of the large pump in the cellar", "Leaks a little in winter, to be watched"),
            ("Gasket of the small pump on the roof", "Brittle by now, to be replaced in spring"),
            ("Lever of the emergency valve at the gate", "Painted red and blocked by a wooden box"),
        ]
    )
)
_BELOW = "".join(
    shown(x, 440 - 24 * row, cell)
    for row, cells in enumerate([("Reeds cut", "40 kg"), ("Nests found", "52"), ("Herons seen", "61")])
    for x, cell in zip((60, 320), cells, strict=True)
)


def _rows(xs: Sequence[float], y: float, *rows: str, step: float = 20) -> str:
    """Rows whose cells are parted by "|" and begin at xs."""
    return "".join(
        shown(x, y - step * number, cell.strip())
        for number, row in enumerate(rows)
        for x, cell in zip(xs, row.split("|"), strict=True)
        if cell.strip()
    )


def _flat(left: float, right: float, *ys: float) -> str:
    return "".join(f"{left} {y} m {right} {y} l S\n" for y in ys)


def _upright(bottom: float, top: float, *xs: float) -> str:
    return "".join(f"{x} {bottom} m {x} {top} l S\n" for x in xs)


_VALVES = "Valve | Pressure | Weight", "KV-7 | 16 bar | 40 kg", "KV-8 | | 52 kg", "KV-9 | 25 bar |"
_PUMPS = "Pump | Flow | Head | Power | Year", "P-1 | 3 | | 7 | 1998", "P-2 | | 5 | 8 | 1999", "P-3 | 4 | 6 | | 2000"
_BOTH = [" ".join(each).removesuffix(" |") for each in (_VALVES, _PUMPS)]
_VALVES_AT, _PUMPS_AT = (60, 200, 340), (60, 140, 230, 330, 420)
_OPEN_TABLES = {
    "tables of other columns below each other": _rows(_VALVES_AT, 700, *_VALVES) + _rows(_PUMPS_AT, 600, *_PUMPS),
    "tables of other columns without a gap": _rows(_VALVES_AT, 700, *_VALVES) + _rows(_PUMPS_AT, 620, *_PUMPS),
    "tables of other columns with a line between": _rows(_VALVES_AT, 700, *_VALVES)
    + shown(60, 610, "The pumps were counted in the spring of the year after that one.")
    + _rows(_PUMPS_AT, 580, *_PUMPS),
}
_FRAMED = (
    _flat(55, 475, 715, 695, 675, 655, 635)
    + _upright(635, 715, 55, 195, 335, 475)
    + _flat(55, 475, 615, 595, 575, 555, 535)
    + _upright(535, 615, 55, 135, 225, 325, 415, 475)
)
_NARROW = (62, 100, 130)
_SPANNING = (
    _rows(_NARROW, 700, "Type | least | most", " | 3 | 16", " | 4 | 25", "KV-8 | 5 | 40")
    + shown(62, 670, "KV-7")
    + _flat(60, 160, 715, 695, 655, 635)
    + _flat(98, 160, 675)
    + _upright(635, 715, 60, 98, 128, 160)
)
_BROKEN = (
    "Valve | Remark | Weight",
    "KV-7 | leaks a little in the | 40 kg",
    " | winter, watch it |",
    "KV-8 | is brittle and must be | 52 kg",
    " | replaced |",
)
_ONE_PATH = "".join(
    [
        *(f"55 {y} m 475 {y} l " for y in (715, 695, 675, 655, 635)),
        *(f"{x} 635 m {x} 715 l " for x in (55, 195, 335, 475)),
        "S\n",
    ]
)
_RULED_TABLES: dict[str, tuple[str, list[str]]] = {
    "lines around all cells of two tables": (
        _rows(_VALVES_AT, 700, *_VALVES) + _rows(_PUMPS_AT, 600, *_PUMPS) + _FRAMED,
        _BOTH,
    ),
    "a cell beside two rows, and little space": (
        _SPANNING,
        ["Type | least | most KV-7 | 3 | 16 KV-7 | 4 | 25 KV-8 | 5 | 40"],
    ),
    "lines in one path": (_rows(_VALVES_AT, 700, *_VALVES) + _ONE_PATH, _BOTH[:1]),
    "lines between columns, but not between rows": (
        _rows(_VALVES_AT, 700, *_VALVES) + _flat(55, 475, 715, 695, 635) + _upright(635, 715, 55, 195, 335, 475),
        _BOTH[:1],
    ),
    "lines above and below the rows": (
        _rows(_VALVES_AT, 700, *_VALVES, "Sum | 41 bar | 92 kg") + _flat(55, 475, 715, 695, 635, 615),
        [f"{_BOTH[0]} Sum | 41 bar | 92 kg"],
    ),
    "cells of several lines between rules": (
        _rows(_VALVES_AT, 700, *_BROKEN, step=14) + _flat(55, 475, 712, 696, 668, 640),
        ["KV-7 | leaks a little in the winter, watch it | 40 kg KV-8 | is brittle and must be replaced | 52 kg"],
    ),
    "a shaded row": (
        "0.9 g 55 672 420 18 re f 0 g\n" + _rows(_VALVES_AT, 700, *_VALVES),
        _BOTH[:1],
    ),
    "a frame around paragraphs": (
        _lines(60, 700, _LEFT) + _flat(55, 475, 715, 600) + _upright(600, 715, 55, 475),
        [" ".join(_LEFT)],
    ),
    "a table in a column": (
        _lines(320, 700, [*_RIGHT, *_RIGHT])
        + _lines(50, 700, _LEFT[:2])
        + _rows((60, 140, 200), 670, "Valve | bar | kg", "KV-7 | | 40", "KV-8 | 25 | 52")
        + _flat(55, 260, 685, 665, 645, 625)
        + _upright(625, 685, 55, 135, 195, 260),
        [f"{' '.join(_LEFT[:2])} Valve | bar | kg KV-7 | | 40 KV-8 | 25 | 52 {' '.join([*_RIGHT, *_RIGHT])}"],
    ),
}
_COLUMNS = _lines(50, 700, _LEFT) + _lines(320, 700, _RIGHT)
_BELOW_COLUMNS = {
    "a table directly below columns": _rows((60, 200, 340), 644, *_VALVES, step=14),
    "a table of two columns below columns": _rows(
        (60, 340), 614, "Valve | bar", "KV-7 | 16", "KV-8 | 25", "KV-9 | 40", step=14
    ),
}
_NUMBERED = [("1.", _LEFT), ("2.", _RIGHT), ("3.", _LEFT)]


def _letter_by_letter(x: float, y: float, text: str) -> str:
    """Letters that are placed one by one in a font of one width, as Chromium writes code."""
    letters = " 6 0 Td ".join(f"({letter}) Tj" for letter in text)
    return f"BT /F1 10 Tf {x} {y} Td {letters} ET\n"


_COURIER = "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
_WIDGET = "/Type /Annot /Subtype /Widget /F 4 /Rect [200 490 400 510]"
_FORM = "/AcroForm << /Fields [] /DA (/F1 10 Tf 0 g) >>"

SEEN: dict[str, tuple[bytes, list[str]]] = {
    "columns written across": (
        written_pdf(WrittenPage(content=shown(50, 740, "Two Articles", size=18) + _across())),
        [f"Two Articles {' '.join(_LEFT)} {' '.join(_RIGHT)}"],
    ),
    "short lines between columns above and below": (
        written_pdf(
            WrittenPage(
                content=_across()
                + shown(50, 628, "3 Safety")
                + shown(50, 604, "By Ada.")
                + _across(576)
                + shown(320, 504, "4 Sources")
                + _across(476)
            )
        ),
        ["{0} 3 Safety By Ada. {0} 4 Sources {0}".format(" ".join([*_LEFT, *_RIGHT]))],
    ),
    "letters without any height": (
        written_pdf(WrittenPage(content=f"BT /F1 12 Tf 1 0 0 0 50 700 Tm (abc 6) Tj ET {shown(60, 704, 'one')}")),
        ["one"],
    ),
    "columns of other line heights": (
        written_pdf(WrittenPage(content=_lines(50, 700, _LEFT) + _lines(320, 695, _RIGHT))),
        [" ".join(_LEFT), " ".join(_RIGHT)],
    ),
    "columns of other line heights below a wide summary": (
        written_pdf(
            WrittenPage(
                content=_lines(50, 728, [" ".join(_LEFT[:2]) + " near the old bridge"] * 2)
                + _lines(50, 700, _LEFT)
                + _lines(320, 705, _RIGHT)
            )
        ),
        [" ".join(_LEFT), " ".join(_RIGHT)],
    ),
    "columns that begin and end with paragraphs of one line": (
        written_pdf(
            WrittenPage(
                content=_rows((50, 320), 725, "Left first 1. | Right first 4.")
                + _across()
                + _rows((50, 320), 633, "Left last 3. | Right last 6.")
            )
        ),
        [f"Left first 1. {' '.join(_LEFT)} Left last 3. Right first 4. {' '.join(_RIGHT)} Right last 6."],
    ),
    "running title and number above and below columns": (
        written_pdf(
            WrittenPage(
                content=shown(50, 770, "The Journal of Reeds")
                + shown(530, 770, "17")
                + _across()
                + shown(300, 30, "page 3")
            )
        ),
        ["The Journal of Reeds", "17", " ".join(_LEFT), " ".join(_RIGHT), "page 3"],
    ),
    "table": (
        written_pdf(WrittenPage(content=_lines(50, 700, _LEFT) + _TABLE)),
        ["Valve | Pressure | Weight", "KV-7 | 16 bar | 40 kg", "KV-8 | 25 bar | 52 kg", "KV-9 | | 61 kg"],
    ),
    "table of sentences between rules": (
        written_pdf(WrittenPage(content=_RULED)),
        ["Flange of the large pump in the cellar | Leaks a little in winter, to be watched"],
    ),
    "rows below a table between rules": (
        written_pdf(WrittenPage(content=_RULED + _BELOW)),
        ["Lever of the emergency valve", "Reeds cut | 40 kg Nests found | 52 Herons seen | 61"],
    ),
    **{name: (written_pdf(WrittenPage(content=content)), _BOTH) for name, content in _OPEN_TABLES.items()},
    **{name: (written_pdf(WrittenPage(content=content)), texts) for name, (content, texts) in _RULED_TABLES.items()},
    "a table between lines on a turned page": (
        written_pdf(
            WrittenPage(
                content="0 1 -1 0 600 0 cm\n"
                + _rows(_VALVES_AT, 500, *_VALVES, step=12)
                + _flat(55, 475, 512, 496, 460)
                + _upright(460, 512, 55, 195, 335, 475),
                entries="/Rotate 90",
            )
        ),
        _BOTH[:1],
    ),
    **{
        name: (
            written_pdf(WrittenPage(content=_COLUMNS + content)),
            [f"{' '.join(_LEFT)} {' '.join(_RIGHT)} Valve | ", "KV-7 | 16", "KV-8 | "],
        )
        for name, content in _BELOW_COLUMNS.items()
    },
    "a numbered list is no table": (
        written_pdf(
            WrittenPage(
                content="".join(
                    shown(50, 700 - 60 * at, number) + _lines(80, 700 - 60 * at, lines)
                    for at, (number, lines) in enumerate(_NUMBERED)
                )
            )
        ),
        [" ".join(f"{number} {' '.join(lines)}" for number, lines in _NUMBERED)],
    ),
    "code whose letters are placed one by one": (
        written_pdf(
            WrittenPage(content=_letter_by_letter(50, 700, "def fill [x]:") + _letter_by_letter(50, 688, "return x")),
            font=_COURIER,
        ),
        ["def fill [x]: return x"],
    ),
    "struck out": (
        written_pdf(
            WrittenPage(
                content=shown(50, 700, "gone")
                + "50 703 m 72.2 703 l S\n"  # a line
                + shown(80, 700, "gone")
                + "80 702.6 22.2 .8 re f\n"  # a box
                + shown(110, 700, "under")
                + "110 698 m 135 698 l S\n"
                + shown(145, 700, "kept")
                + "0 653 m 600 653 l S\n"
                + shown(50, 650, "crossed")
            )
        ),
        ["~~gone gone~~ under kept crossed"],
    ),
    "a large number before smaller text": (
        written_pdf(
            WrittenPage(
                content=shown(50, 700, "10", size=30)
                + shown(86.7, 700, "6 pieces", size=11)
                + shown(50, 600, "25 ", size=30)
                + shown(91, 600, "4 pieces", size=11)
            )
        ),
        ["10 6 pieces", "25 4 pieces"],
    ),
    "power": (written_pdf(WrittenPage(content=_raised(50, 700, "It bears 10", "6", " Pa.", rise=4))), ["10^6 Pa."]),
    "power behind a blank": (
        written_pdf(WrittenPage(content=_raised(50, 700, "It bears 10 ", "6", " Pa, not 5.", rise=4))),
        ["It bears 10 ^6 Pa, not 5."],
    ),
    "raised behind a wide blank": (
        written_pdf(WrittenPage(content=_raised(50, 700, "See the note ", "12", " more.", rise=4)), font=_COURIER),
        ["See the note ^12 more."],
    ),
    "raised before its word": (
        written_pdf(
            WrittenPage(
                content=_raised(50, 700, "", "14", "C and ", rise=4)
                + _raised(50, 660, "The ", "235", "U decays.", rise=4)
                + _raised(50, 620, "", "2", " See the deed.", rise=4)
            )
        ),
        ["^14C and The ^235U decays. ^2 See the deed."],
    ),
    "a fraction behind a whole number": (
        written_pdf(
            WrittenPage(
                content="BT 50 700 Td /F1 10 Tf (It is 3 ) Tj /F1 6 Tf 4 Ts (1) Tj /F1 10 Tf 0 Ts (/) Tj "
                "/F1 6 Tf -2 Ts (2) Tj /F1 10 Tf 0 Ts ( in wide.) Tj ET\n"
            )
        ),
        ["It is 3 1/2 in wide."],
    ),
    "a first letter as high as several lines": (
        written_pdf(
            WrittenPage(
                content=shown(50, 672, "T", size=40)
                + shown(75, 700, "he heron stood")
                + shown(75, 686, "in the shallow")
                + shown(75, 672, "water for 10")
                + shown(50, 658, "hours and left.")
            )
        ),
        ["The heron stood in the shallow water for 10 hours and left."],
    ),
    "footnote mark": (
        written_pdf(
            WrittenPage(
                content=_raised(50, 700, "It was built in 1984", "2", " by Ada.", rise=4)
                + "BT /F1 6 Tf 50 64 Td (2) Tj /F1 10 Tf 0 -4 Td 4 0 Td (See the deed.) Tj ET\n"
            )
        ),
        ["1984^2 by Ada.", "2 See the deed."],
    ),
    "lowered": (written_pdf(WrittenPage(content=_raised(50, 700, "H", "2", "O boils.", rise=-2))), ["H_2O boils."]),
    "divided words": (
        written_pdf(
            WrittenPage(
                content=_lines(
                    50, 700, ["The inspec-", "tion of a well-", "known valve KV-", "7 is state-of-the-", "art."]
                )
            )
        ),
        ["The inspection of a well-known valve KV-7 is state-of-the-art."],
    ),
    "ligatures": (
        written_pdf(
            WrittenPage(content=shown(50, 700, "the o\u201ace")),
            font="<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding "
            "/Differences [130 /ffi] >> >>",
        ),
        ["the office"],
    ),
    "turned page": (
        written_pdf(WrittenPage(content=shown(100, 100, "The turned page", turn=(0, 1)), entries="/Rotate 90")),
        ["The turned page"],
    ),
    "turned text": (
        written_pdf(WrittenPage(content=_lines(80, 700, _LEFT) + shown(40, 300, "read from below", turn=(0, 1)))),
        [" ".join(_LEFT), "read from below"],
    ),
    "text box": (
        written_pdf(
            WrittenPage(
                content=shown(50, 700, "Page."),
                annotations=[
                    "<< /Type /Annot /Subtype /FreeText /Rect [50 500 300 540] /Contents (A note in a box) /F 4 >>"
                ],
            )
        ),
        ["A note in a box"],
    ),
    "form field": (
        written_pdf(
            WrittenPage(
                content=shown(100, 497, "Inspector:"),
                annotations=[f"<< {_WIDGET} /FT /Tx /T (inspector) /V (Ada Byron) >>"],
            ),
            catalog=_FORM.replace("[]", "[4 0 R]"),
        ),
        ["Inspector: Ada Byron"],
    ),
    "chosen value": (
        written_pdf(
            WrittenPage(
                content=shown(100, 497, "Colour:"),
                annotations=[
                    f"<< {_WIDGET} /FT /Ch /Ff 131072 /T (colour) /Opt [[(r) (deep red)] [(b) (blue)]] /V (r) >>"
                ],
            ),
            catalog=_FORM.replace("[]", "[4 0 R]"),
        ),
        ["Colour: deep red"],
    ),
}
"""Files by what is tried, each with texts that must be in it; line ends count as spaces."""

_STRANGER = "/Filter /Standard /V 1 /R 2 /P -4 /O <" + "11" * 32 + "> /U <" + "22" * 32 + ">"

LEFT_OUT: dict[str, tuple[bytes, dict[str, int]]] = {
    "scanned pages": (
        written_pdf(WrittenPage(image=True), WrittenPage(content=shown(50, 700, "Words.")), WrittenPage(image=True)),
        {"scanned page": 2},
    ),
    "a scan with a stamp": (
        written_pdf(WrittenPage(image=True, content=shown(50, 50, "page 7"))),
        {"scanned page": 1},
    ),
    "text as curves": (
        written_pdf(
            WrittenPage(content=shown(50, 700, "Words.")),
            WrittenPage(content="".join(f"{10 * at} 10 m {10 * at} 40 50 60 90 20 c S\n" for at in range(40))),
        ),
        {"drawn page": 1},
    ),
    "a comment": (
        written_pdf(
            WrittenPage(
                content=shown(50, 700, "Words."),
                annotations=["<< /Type /Annot /Subtype /Text /Rect [50 500 70 520] /Contents (Why?) >>"],
            )
        ),
        {"comment": 1},
    ),
    "a picture over a page of text": (
        written_pdf(WrittenPage(image=True, content=_lines(50, 700, _LEFT))),
        {},
    ),
    "an empty page": (written_pdf(WrittenPage(content=shown(50, 700, "Words.")), WrittenPage()), {}),
}
"""Files by what is tried, each with what is told as left out."""

UNSEEN: dict[str, tuple[bytes, str]] = {
    "beyond the edge": (
        written_pdf(WrittenPage(content=shown(50, 700, "Words.") + shown(50, 900, "beyond"))),
        "beyond",
    ),
    "a hidden field": (
        written_pdf(
            WrittenPage(
                content=shown(50, 700, "Words."),
                annotations=["<< /Type /Annot /Subtype /FreeText /Rect [50 500 300 540] /Contents (hidden) /F 2 >>"],
            )
        ),
        "hidden",
    ),
}
"""Files by what is tried, each with a text that no reader sees."""
SCAN = written_pdf(WrittenPage(image=True), WrittenPage(image=True))
LOCKED = written_pdf(
    WrittenPage(content=shown(50, 700, "Secret.")), trailer=f"/Encrypt << {_STRANGER} >> /ID [<00> <00>]"
)
