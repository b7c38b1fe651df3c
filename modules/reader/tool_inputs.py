"""The text in the brackets of an action: a query, or the input of a tool."""

from __future__ import annotations

import json

LONGEST_INPUT = 4_000
"""Most characters of a tool's input; a longer one ends in an ellipsis, so that no tool takes it for the whole."""

_CLOSING = {"[": "]", "(": ")", "［": "］", "【": "】", "（": "）"}
_QUOTES = ('""', "``", "“”")
_JSON = json.JSONDecoder(strict=False)


def tool_input(text: str, opening: str) -> str:
    """Return the tool input at the start of a text, on one line and without surrounding quotes.

    Blanks, marks and case within it stay as they are. A JSON object ends at its own bracket and may go over several
    lines; everything else ends with the line.

    >>> tool_input('{"name": "a]b"}] and more', "[")
    '{"name": "a]b"}'
    >>> tool_input("6 * 7]", "[")
    '6 * 7'
    """
    line = text.partition("\n")[0]
    given = " ".join((_json_object(text) or text_within(line, opening)).strip().splitlines())
    if given[:1] + given[-1:] in _QUOTES and not {given[0], given[-1]} & set(given[1:-1]):
        given = given[1:-1].strip()
    return given if len(given) <= LONGEST_INPUT else f"{given[:LONGEST_INPUT]} …"


def text_within(text: str, opening: str) -> str:
    """Return the text before the bracket that closes ``opening``, nested pairs included; all if none does."""
    closing, depth = _CLOSING.get(opening, ""), 1
    for at, character in enumerate(text):
        depth += (character == opening) - (character == closing)
        if depth == 0:
            return text[:at]
    return text


def _json_object(text: str) -> str:
    """Return the JSON object with which a text begins, on one line; ``""`` if it begins with none."""
    if not text.startswith("{"):
        return ""
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    return json.dumps(value, ensure_ascii=False) if "\n" in text[:end] else text[:end]
