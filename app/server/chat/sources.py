"""The sources of an answer: as annotations, as a list behind the answer, and as events of Open WebUI."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self
from urllib.parse import quote

from fastapi import Request

from ....graphs.conversation.turn.events import SourceEvent
from ....graphs.conversation.turn.result import TurnResult
from ....modules.calls.record import is_declined
from ..keys.links import LinkSigner
from ..serving.caller import Caller

Json = dict[str, object]

_LIST = "\n\nSources:\n"
_TREE = "[Search tree]("
_LISTED = re.compile(r"\d{1,4}\. \[(?:\\.|[^\\\]\n])*+\]\([^\n]*+")
_MARKDOWN = re.compile(r"[\\`*_\[\]<>&~$|]")
_NO_ADDRESS = re.compile(r"[\s()<>\[\]\\`\x00-\x1f\x7f]")
_BRACKETED_HOST = re.compile(r"\w{1,9}://\[[0-9a-fA-F:.]++\]")
"""The start of an address by a number of IPv6, which keeps its brackets."""
_CITATION = re.compile(r"\[(\d{1,3}(?:, ?\d{1,3})*)\]")


@dataclass(frozen=True, kw_only=True)
class AnswerLinks:
    """Addresses of the sources and the search tree of an answer, signed so that its readers can open them."""

    base_url: str
    """Address of the server."""
    signer: LinkSigner

    @classmethod
    def of(cls, request: Request, caller: Caller) -> Self:
        """Return the addresses for the sender of a request, at the address that it was sent to."""
        return cls(base_url=str(request.base_url), signer=caller.links)

    def tree(self, thread_id: str) -> str:
        """Return the address of a search tree."""
        return self._address(f"/v1/trees/{thread_id}")

    def chunk(self, thread_id: str, chunk_id: str) -> str:
        """Return the address of a chunk of a thread."""
        return self._address(f"/v1/trees/{thread_id}/chunks/{chunk_id}")

    def _address(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}{quote(path)}{self.signer.query(path)}"


@dataclass(frozen=True, kw_only=True)
class AnswerSources:
    """The sources of one answer; a refusal has none."""

    given: Sequence[SourceEvent]
    result: TurnResult
    text: str
    """The answer as the client has it."""
    links: AnswerLinks

    @cached_property
    def _events(self) -> Sequence[SourceEvent]:
        is_refusal = self.result.status == "refused" or is_declined(self.result.answer, self.result.answer_calls)
        return () if is_refusal else self.given

    @cached_property
    def _spans(self) -> dict[int, list[tuple[int, int]]]:
        """Places of the numbers that the answer cites, by number of the source."""
        numbers = {source.number for source in self._events}
        spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for cited, span in citations_in(self.text):
            for number in numbers & cited:
                spans[number].append(span)
        return spans

    @property
    def cited(self) -> list[int]:
        """Numbers of the sources that the answer cites; none for one that cites by no number."""
        return sorted(self._spans)

    def annotations(self, offset: int = 0) -> list[Json]:
        """Return a citation for each place at which the answer cites a source.

        Sources that it does not cite have an empty place at its end; if it cites none, all have the whole answer.

        Args:
            offset: Where the answer begins in the text of the message.
        """
        end = len(self.text)
        rest = (end, end) if self._spans else (0, end)
        return [
            {
                "type": "url_citation",
                "url_citation": {"url": self._url_of(source), "title": source.name}
                | {"start_index": offset + span[0], "end_index": offset + span[1]},
            }
            for source in self._events
            for span in self._spans.get(source.number, [rest])
        ]

    def markdown(self) -> str:
        """Return a list of the sources, and the address of the search tree; ``""`` without any source."""
        if not self._events:
            return ""
        listed = _LIST + "\n".join(map(self._line, self._events))
        return f"{listed}\n\n{_TREE}{self.tree_url})" if self.tree_url else listed

    def _line(self, source: SourceEvent) -> str:
        remark = " (not cited)" if self._spans and source.number not in self._spans else ""
        return f"{source.number}. [{link_text(source.name)}]({link_address(self._url_of(source))}){remark}"

    def open_webui_sources(self) -> Iterator[Json]:
        """Yield the data of Open WebUI's events ``source``.

        Open WebUI joins passages of one name, and counts names for the numbers that an answer cites. So passages of
        one document have its name together; in an answer that cites numbers each passage has a name of its own.
        """
        documents: defaultdict[str, list[SourceEvent]] = defaultdict(list)
        for source in self._events:
            documents[self._document_of(source)].append(source)
        if not self._spans:
            for name, passages in documents.items():
                yield self._open_webui_source(name, passages)
            return
        for source in self._events:
            name = self._document_of(source)
            passages = documents[name]
            numbered = name if len(passages) == 1 else f"{name} ({passages.index(source) + 1})"
            yield self._open_webui_source(numbered, [source])

    def _open_webui_source(self, name: str, passages: Sequence[SourceEvent]) -> Json:
        return {
            "source": {"id": name, "name": name, "url": self._url_of(passages[0])},
            "document": [each.text for each in passages],
            "metadata": [
                {"source": name, "name": name, "chunk_id": each.chunk_id, "score": each.score} for each in passages
            ],
        }

    def _document_of(self, source: SourceEvent) -> str:
        """Return the name of a source's document, with its file where another document has the same name."""
        is_shared = any(each.name == source.name and each.source != source.source for each in self._events)
        return f"{source.name} ({source.source})" if is_shared else source.name

    @property
    def tree_url(self) -> str:
        """Address of the search tree; ``""`` without a search."""
        tree = self.result.tree
        return self.links.tree(tree.root.thread_id) if tree else ""

    def _url_of(self, source: SourceEvent) -> str:
        if source.source.startswith(("http://", "https://")):
            return source.source
        chunks = self.result.turn["chunks"] if self.result.turn else []
        thread = next((ref["thread_id"] for ref in chunks if ref["chunk_id"] == source.chunk_id), "")
        return self.links.chunk(thread, source.chunk_id)


def citations_in(text: str) -> list[tuple[set[int], tuple[int, int]]]:
    """Return the numbers that a text cites, each with the place of its brackets.

    >>> citations_in("The drum [1] is thick [2, 3].")
    [({1}, (9, 12)), ({2, 3}, (22, 28))]
    """
    return [({int(number) for number in found[1].split(",")}, found.span()) for found in _CITATION.finditer(text)]


def without_list(text: str) -> str:
    """Return an answer without the list of sources that ``AnswerSources.markdown`` has put behind it.

    >>> without_list("212 °C\\n\\nSources:\\n1. [KV-133](http://host/1)\\n\\n[Search tree](http://host/2)")
    '212 °C'
    """
    answer, head, listed = text.rpartition(_LIST)
    lines = [line for line in listed.splitlines() if line.strip()]
    is_list = bool(head and lines) and all(_LISTED.match(line) or line.startswith(_TREE) for line in lines)
    return answer if is_list else text


def link_text(name: str) -> str:
    r"""Return a name as the text of a Markdown link, in one line.

    >>> print(link_text("F[40] *new*"))
    F\[40\] \*new\*
    """
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(name.split()))


def link_address(url: str) -> str:
    """Return an address as the target of a Markdown link.

    >>> link_address("http://[::1]/Drum_(40)?a=[b]")
    'http://[::1]/Drum_%2840%29?a=%5Bb%5D'
    """
    bracketed = _BRACKETED_HOST.match(url)
    end = bracketed.end() if bracketed else 0
    return url[:end] + _NO_ADDRESS.sub(lambda found: quote(found[0], safe=""), url[end:])
