"""What stands in a page that judgetree has drawn, without a browser."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of script elements by their id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str | None, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[self.tags[-1][1].get("id")] = data


def part(page: str, name: str) -> object:
    """The JSON of a script element, by its id."""
    return json.loads(Elements(page).scripts[name])


def unpacked(pack: object) -> object:
    """What the page's script finds in a pack."""
    return json.loads(gzip.decompress(base64.b64decode(str(pack))))
