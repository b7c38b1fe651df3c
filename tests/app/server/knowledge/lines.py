"""A client of the knowledge chat, which reads named lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx


@dataclass(kw_only=True)
class Answered:
    """What a client has of an answer."""

    names: list[str] = field(default_factory=list)
    """Names of the events, in order, each run of the same name once."""
    texts: dict[str, str] = field(default_factory=dict)
    """THINK, CONTENT and ERROR, without what was void."""
    documents: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    """The JSON of the other events."""

    def take(self, name: str, text: str) -> None:
        """Take one event."""
        if self.names[-1:] != [name]:
            self.names.append(name)
        if name in ("THINK", "CONTENT", "ERROR"):
            self.texts[name] = self.texts.get(name, "") + text
            return
        document = json.loads(text)
        self.documents.setdefault(name, []).append(document)
        for void in document["events"] if name == "RESTART" else ():
            self.texts[void] = ""

    @property
    def content(self) -> str:
        return self.texts.get("CONTENT", "")

    @property
    def session(self) -> dict[str, object]:
        return self.documents["SESSION"][0]

    @property
    def done(self) -> dict[str, object]:
        (done,) = self.documents["DONE"]
        assert self.names[-1] == "DONE"
        return done


def events_in(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(name, text) of each event."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            name, _, text = "\n".join(data).partition(": ")
            yield name, text
            data = []
        else:
            assert line.startswith(":") or not line


def answer(http: httpx.Client, question: str, **more: object) -> Answered:
    """Ask, and read to the end."""
    taken = Answered()
    body = {"question": question, **more}
    with http.stream("POST", "/knowledge_chat_conversation", json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        for name, text in events_in(response.iter_lines()):
            taken.take(name, text)
    return taken
