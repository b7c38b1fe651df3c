"""Modules of the page that need no server's answers, run in a real browser."""

from __future__ import annotations

import json
from typing import cast

import pytest

from tests.driver import Page, needs_driver
from tests.modules.test_passage_names import NAMES

pytestmark = [needs_driver, pytest.mark.slow]


def run(page: Page, module: str, script: str) -> object:
    """What a script returns that gets a module as ``it``."""
    body = f"const it = await import('/assets/{module}'); {script}"
    code = f"const done = arguments[0]; (async () => {{ {body} }})().then(done, (error) => done(String(error)))"
    return page.run_async(code)


def test_both_languages_say_the_same_things(page: Page) -> None:
    en, zh = (cast(dict[str, object], run(page, f"words/{name}.js", "return it.default")) for name in ("en", "zh"))
    assert en.keys() == zh.keys()
    for key, words in en.items():
        said = words if isinstance(words, list) else [words]
        for text in [*said[:-1], zh[key]]:
            assert places(text) == places(said[-1]), key


def places(text: object) -> set[str]:
    return {part.split("}")[0] for part in str(text).split("{")[1:]}


HOSTILE = """# Title

<img src=x onerror="document.title='owned'"> <script>document.title='owned'</script>
[plain](https://example.com/a) [own](/v1/models) [bad](javascript:document.title='owned') [data](data:text/html,x)
![picture](https://example.com/a.png) [1] [7]

| a | b |
|:--|--:|
| 1 | **2** |
"""


def test_markdown_becomes_elements_and_nothing_of_it_runs(page: Page) -> None:
    found = run(
        page,
        "js/text/markdown.js",
        f"""const holder = document.createElement('div');
        holder.append(...it.rendered({json.dumps(HOSTILE)}, (n) => n === 1 ? document.createElement('button') : null));
        document.body.append(holder);
        const all = (selector) => [...holder.querySelectorAll(selector)];
        return {{ links: all('a').map((one) => one.getAttribute('href')), loaded: all('img, script, iframe').length,
          buttons: all('button').length, cells: all('td').map((one) => one.style.textAlign), bold: all('strong').length,
          text: holder.innerText, head: all('h4').length }};""",
    )
    assert isinstance(found, dict)
    text = found.pop("text")
    assert found == {
        "links": ["https://example.com/a", "/v1/models", "https://example.com/a.png"],
        "loaded": 0,
        "buttons": 1,
        "cells": ["left", "right"],
        "bold": 1,
        "head": 1,
    }
    assert "<script>" in text
    assert "[7]" in text
    assert page.run("return document.title") == "judgetree"


PATCHES = [
    ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3], "b/c": {"~": 1}}),
    ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2], "b/c": {"~": 1}}),
    ([{"op": "replace", "path": "/b~1c/~0", "value": None}], {"a": [1, 2], "b/c": {"~": None}}),
    ([{"op": "remove", "path": "/a/0"}, {"op": "remove", "path": "/b~1c"}], {"a": [2]}),
    ([{"op": "replace", "path": "", "value": [1]}], [1]),
]


@pytest.mark.parametrize(("operations", "expected"), PATCHES)
def test_patches_change_a_document(page: Page, operations: object, expected: object) -> None:
    given = json.dumps({"a": [1, 2], "b/c": {"~": 1}})
    assert run(page, "js/net/patch.js", f"return it.patched({given}, {json.dumps(operations)})") == expected


def test_events_are_read_whatever_the_pieces_they_come_in(page: Page) -> None:
    text = ': hello\r\nevent: tree\r\nid: 1\r\ndata: {"a":\r\ndata: "é中"}\r\n\r\ndata:x\n\nevent: none\n\n'
    script = f"""const bytes = new TextEncoder().encode({json.dumps(text)});
      const start = (to) => {{ bytes.forEach((byte) => to.enqueue(new Uint8Array([byte]))); to.close(); }};
      const body = new ReadableStream({{ start }});
      const found = []; for await (const event of it.eventsOf(body)) found.push(event); return found;"""
    assert run(page, "js/net/events.js", script) == [
        {"event": "tree", "data": '{"a":\n"é中"}', "id": "1"},
        {"event": "message", "data": "x", "id": ""},
    ]


@pytest.mark.parametrize(("metadata", "short", "full"), NAMES)
def test_passages_have_the_names_of_the_command_line(
    page: Page, metadata: dict[str, object], short: str, full: str
) -> None:
    named = run(
        page, "js/text/names.js", f"const of = {json.dumps(metadata)}; return [it.nameOf(of), it.fullNameOf(of)]"
    )
    file = short.rsplit("/", 1)[-1] if short == metadata.get("source") else short
    assert named == (["", ""] if short == "c1" else [file, full])


def test_headings_leave_no_gap_and_cards_have_no_marks(page: Page) -> None:
    lines = [
        "### One",
        "# Two",
        "##### Three",
        "See [1, 2], [3](https://example.com) and `x`.",
        "| a |\n|---|\n| *b* |",
    ]
    text = json.dumps("\n\n".join(lines))
    found = run(
        page,
        "js/text/markdown.js",
        f"""const holder = document.createElement('div');
        holder.append(...it.rendered({text}, (n) => n < 3 ? document.createElement('button') : null, {{ below: 2 }}));
        return [[...holder.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((one) => one.tagName),
          holder.querySelectorAll('button').length, it.plain({text})];""",
    )
    assert found == [["H3", "H3", "H4"], 2, "One Two Three See [1, 2], 3 and x. a b"]
