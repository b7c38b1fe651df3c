r"""Named events on ``data:`` lines: ``data: CONTENT: the drum``.

- An event is ``NAME: text``, with one space, and has no ``event:`` field, so that ``onmessage`` of an ``EventSource``
  gets all. JSON stands on one line and is ASCII.
- A text is sent line by line. A line that ends is an event whose last, empty ``data:`` line is its newline. So a
  ``data:`` line is either ``NAME: …`` or empty, whatever is in the text, also for a program that reads lines alone.
- Every kind of line break (``\r``, ``\r\n``, U+2028, …) arrives as ``\n``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from sse_starlette import ServerSentEvent

EventName = Literal["SESSION", "THINK", "CONTENT", "SOURCE", "RESTART", "ERROR", "DONE"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def text_events(name: EventName, text: str) -> Iterator[ServerSentEvent]:
    r"""Yield the events of a text, one a line; none for an empty text.

    >>> [event.encode() for event in text_events("CONTENT", "six\nby nine")]
    [b'data: CONTENT: six\ndata: \n\n', b'data: CONTENT: by nine\n\n']
    """
    for line in _SURROGATES.sub("\ufffd", text).splitlines(keepends=True):
        (body,) = line.splitlines()
        yield _event(name, body if body == line else f"{body}\n")


def line_event(name: EventName, text: str) -> ServerSentEvent:
    """Return one event of a text whose line breaks become spaces."""
    return _event(name, " ".join(_SURROGATES.sub("\ufffd", text).splitlines()))


def json_event(name: EventName, document: Mapping[str, object]) -> ServerSentEvent:
    r"""Return one event of JSON.

    >>> json_event("SOURCE", {"text": "a\nb"}).encode()
    b'data: SOURCE: {"text":"a\\nb"}\n\n'
    """
    return _event(name, json.dumps(document, separators=(",", ":")))


def _event(name: EventName, data: str) -> ServerSentEvent:
    return ServerSentEvent(data=f"{name}: {data}", sep="\n")
