"""Framing: whatever a text holds, readers of events and readers of lines get the same events."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from judgetree.app.server.knowledge.framing import json_event, line_event, text_events

HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(["\r", "\n", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\x00", "\ufeff", "\ud800"]),
        st.sampled_from(
            ["data:", "data: ERROR: ", "event: ", "id:", ": ", "\n\n", "retry: 1", "DONE: {}", "[DONE]", " "]
        ),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


def sent(texts: list[tuple[str, str]]) -> bytes:
    """A stream with each text as text, as a line, and as JSON."""
    events = [
        event
        for name, text in texts
        for event in (*text_events(name, text), line_event("ERROR", text), json_event("SOURCE", {"text": text}))  # type: ignore[arg-type]
    ]
    return b"".join(event.encode() for event in events)


def events_of(stream: bytes) -> list[str]:
    """The data of a stream's events, by the rules of the HTML standard for event streams."""
    found: list[str] = []
    data: list[str] = []
    for line in re.split("\r\n|\n|\r", stream.decode().removeprefix("\ufeff")):
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif line == "" and data:
            found.append("\n".join(data))
            data = []
        else:
            assert line == "", "no other field, no comment"
    return found


def lines_of(stream: bytes) -> list[str]:
    """The same for a reader of lines, to whom every line break is one, and an empty ``data:`` line a newline."""
    found: list[str] = []
    for line in stream.decode().splitlines():
        if line == "data: ":
            found[-1] += "\n"
        elif line:
            assert re.match("data: (THINK|CONTENT|ERROR|SOURCE): ", line)
            found.append(line.removeprefix("data: "))
    return found


@given(st.lists(st.tuples(st.sampled_from(["THINK", "CONTENT"]), HOSTILE), max_size=3))
def test_no_text_breaks_the_framing(texts: list[tuple[str, str]]) -> None:
    stream = sent(texts)
    events = events_of(stream)
    assert events == lines_of(stream)
    expected = [text.replace("\ud800", "\ufffd") for _, text in texts]
    lines = [events_with("SOURCE", events), events_with("ERROR", events)]
    assert [json.loads(each)["text"] for each in lines[0]] == [text for _, text in texts]
    assert lines[1] == [" ".join(text.splitlines()) for text in expected]
    for name in ("THINK", "CONTENT"):
        said = [text for (its, _), text in zip(texts, expected, strict=True) if its == name]
        assert "".join(events_with(name, events)) == "".join(map(with_newlines, said))


def events_with(name: str, events: list[str]) -> list[str]:
    return [each.removeprefix(f"{name}: ") for each in events if each.startswith(f"{name}: ")]


def with_newlines(text: str) -> str:
    """The text with ``\\n`` for every line break."""
    ends = bool(text) and text.splitlines(keepends=True)[-1] != text.splitlines()[-1]
    return "\n".join(text.splitlines()) + "\n" * ends
