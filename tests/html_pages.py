"""What stands in a page that judgetree has drawn, without a browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest


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


def ask_nothing_outside(page: str, *namespaces: str) -> None:
    """Check that a page links to itself alone; the addresses in it are names of XML."""
    tags = Elements(page).tags
    assert not [tag for tag, _ in tags if tag in {"link", "img", "iframe", "object", "base", "image"}]
    addresses = [value for _, attrs in tags for name, value in attrs.items() if name.split(":")[-1] in ("src", "href")]
    assert [value for value in addresses if not (value or "").startswith("#")] == []
    assert set(re.findall(r"https?://[^\s\"'<>]+", page)) <= {"http://www.w3.org/2000/svg", *namespaces}


def allow_own_script_and_style_alone(page: str) -> None:
    """Check that the policy of a page names the digests of its script and styles, and that nothing is inline."""
    tags = Elements(page).tags
    policy = next(attrs["content"] for tag, attrs in tags if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    allowed = {name: values for name, *values in map(str.split, policy.split(";"))}
    for tag, most in (("style", 2), ("script", 1)):  # the picture has a style of its own
        contents = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert 1 <= len(contents) <= most
        for content in contents:
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in allowed[f"{tag}-src"]
    assert not [name for _, attrs in tags for name in attrs if name == "style" or name.startswith("on")]


def break_dot(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a ``dot`` that fails on the PATH, alone."""
    (folder / "dot").write_text("#!/bin/sh\nexit 1\n")
    (folder / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
