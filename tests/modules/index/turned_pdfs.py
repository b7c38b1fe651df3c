"""PDF files with words that are written from right to left, letter by letter, and what must come of each."""

from __future__ import annotations

from tests.written_pdf import WrittenPage, shown, written_pdf

_DIGITS = "٤٥٦"
_LETTERS = "אבגדהוזחטיךכלםמןנסעףפץצקרשת" + "ابتثجحخدذرزسشصضطظعغفقكلمنهويةءأ"
_CODES = {letter: chr(0xA1 + at) for at, letter in enumerate(_LETTERS + _DIGITS)}
_FONT = (
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding "
    f"/FirstChar 32 /LastChar 255 /Widths [{' '.join(['600'] * 224)}] >>"
)


def _written(x: float, y: float, *runs: str, from_right: bool = True) -> str:
    """Letters one by one, in runs from left to right; those of Hebrew and Arabic runs stand from right to left.

    The letters are written from the right or from the left one on, as is seen by no reader.
    """
    letters = [letter for run in runs for letter in (run[::-1] if set(run) & set(_LETTERS) else run)]
    places = [(x + 6 * at, letter) for at, letter in enumerate(letters) if letter != " "]
    return "".join(
        shown(left, y, _CODES.get(letter, letter)) for left, letter in (reversed(places) if from_right else places)
    )


def _file(*content: str) -> bytes:
    return written_pdf(
        WrittenPage(content="".join(content)), font=_FONT, letters={code: letter for letter, code in _CODES.items()}
    )


_LEFT = [
    "שלום לכל מי שקורא את הטור הזה",
    "שעומד בצד שמאל של הדף וגם",
    "נקרא אחרי הטור שעומד מימין",
    "ורק אז בא סופו של הדף",
]
_RIGHT = ["האגם היה שקט כל הבוקר וגם", "האנפה עמדה במים הרדודים", "עד שבאה רוח קרה מן הצפון", "ואז עפה מעל לקני הסוף"]

TURNED: dict[str, tuple[bytes, list[str]]] = {
    **{
        f"Hebrew and a number, from the {'right' if side else 'left'}": (
            _file(_written(50, 700, ".", "בר", " ", "456", " ", "הלחץ בשסתום הוא", from_right=side)),
            ["הלחץ בשסתום הוא 456 בר."],
        )
        for side in (True, False)
    },
    **{
        f"Arabic and a number, from the {'right' if side else 'left'}": (
            _file(_written(50, 700, "456", " ", "الضغط هو", from_right=side)),
            ["الضغط هو 456"],
        )
        for side in (True, False)
    },
    "Latin names and brackets": (
        _file(_written(50, 700, ".(", "12", " ", "ראה עמוד", ") ", "Acme Pumps Ltd", " ", "המשאבה של")),
        ["המשאבה של Acme Pumps Ltd (ראה עמוד 12)."],
    ),
    "numbers with signs in Hebrew": (
        _file(_written(50, 700, "02-555-1234", " ", "טלפון", " ,", "$3.50", " ,", "25-30%", " ", "מחיר")),
        ["מחיר 25-30%, $3.50, טלפון 02-555-1234"],
    ),
    "names, units and numbers": (
        _file(
            _written(50, 700, "bar 16.5", " ", "الضغط"),
            _written(50, 680, "ISO 9001", " ", "شهادة"),
            _written(50, 660, "KV-7", " ", "صمام"),
            _written(50, 640, "٤٥٦", " ", "وزن"),
            _written(50, 620, "30-25", " ", "من"),
        ),
        ["الضغط 16.5 bar", "شهادة ISO 9001", "صمام KV-7", "وزن ٤٥٦", "من 25-30"],
    ),
    "Hebrew and Arabic in an English sentence": (
        _file(
            _written(50, 700, "The words ", "שלום לכם", " mean hello, (", "456", " ", "الضغط هو", ") does not."),
            _written(50, 680, "It weighs 40 ", "שקל", " or so."),
        ),
        ["The words שלום לכם mean hello, (الضغط هو 456) does not.", "It weighs 40 שקל or so."],
    ),
    "a mostly Latin line in a Hebrew text": (
        _file(
            *(_written(50, 700 - 14 * at, line) for at, line in enumerate(_RIGHT)),
            _written(50, 620, "לדף", " ", "Open the application GitHub Actions"),
        ),
        ["Open the application GitHub Actions לדף"],
    ),
    "struck out": (
        _file(_written(50, 700, "חדש", " ", "ישן", " ", "זה"), "74 703 m 92 703 l S\n"),
        ["זה ~~ישן~~ חדש"],
    ),
    "a number struck out": (
        _file(_written(50, 700, "בר", " ", "456", " ", "הלחץ בשסתום הוא"), "68 703 m 86 703 l S\n"),
        ["הלחץ בשסתום הוא ~~456~~ בר"],
    ),
    "columns": (
        _file(
            *(_written(50, 700 - 14 * at, line) for at, line in enumerate(_LEFT)),
            *(_written(320, 700 - 14 * at, line) for at, line in enumerate(_RIGHT)),
        ),
        [" ".join([*_RIGHT, *_LEFT])],
    ),
    "table": (
        _file(
            *(
                _written(x, 700 - 20 * row, cell)
                for row, cells in enumerate(
                    [("משקל", "לחץ", "שסתום"), ("kg 40", "bar 16", "KV-7"), ("", "bar 25", "KV-8")]
                )
                for x, cell in zip((60, 260, 460), cells, strict=True)
            )
        ),
        ["שסתום | לחץ | משקל", "KV-7 | 16 bar | 40 kg KV-8 | 25 bar"],
    ),
}
"""Files by what is tried, each with texts that must be in it; line ends count as spaces."""
