"""Texts as cells of a spreadsheet, which would take some for formulas and run them."""

from __future__ import annotations

import re

_MARK = "'"
_FORMULA = re.compile(r"""'*[\t\r\n]|[\s"'\x00-\x1f\u200b-\u200f\ufeff]*[=+\-@＝＋－＠]""")
"""The start of a text that some spreadsheet takes for a formula, perhaps without the white space or quotes before."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,' \u00a0\u202f][0-9]+)*[.,]?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?\s*%?")


def to_cell(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would take it for a formula; numbers stay.

    >>> to_cell("=1+1"), to_cell("-3.5"), to_cell("-5 %"), to_cell("- yes"), to_cell("a=b")
    ("'=1+1", '-3.5', '-5 %', "'- yes", 'a=b')
    """
    return f"{_MARK}{text}" if _is_formula(text) else text


def of_cell(text: str) -> str:
    """Return the text of which ``to_cell`` made a cell.

    >>> of_cell("'=1+1"), of_cell("'tis"), of_cell(to_cell("'=1"))
    ('=1+1', "'tis", "'=1")
    """
    return text[1:] if text.startswith(_MARK) and _is_formula(text[1:]) else text


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
