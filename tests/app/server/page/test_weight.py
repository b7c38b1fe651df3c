"""What the page weighs at a first visit, and what is seen before its script has come."""

from __future__ import annotations

from typing import cast

import httpx
import pytest

from judgetree.app.server.page.bundle import bundle
from judgetree.app.server.page.serving import assets
from tests.driver import Page, needs_driver

LOADED = """
const done = arguments[0];
const all = () => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
let before = -1;
const look = () => {
  const now = all();
  if (now.length === before && now.every((one) => one.responseEnd)) {
    done(now.map((one) => [one.name, one.transferSize]));
  } else { before = now.length; setTimeout(look, 300); }
};
look();
"""


@needs_driver
@pytest.mark.slow
def test_the_first_view_is_light_and_takes_few_requests(page: Page, site: str) -> None:
    page.chrome("Network.clearBrowserCache")
    page.open("about:blank")
    page.open(f"{site}/")
    page.wait("document.querySelector('.composer')")
    loaded = cast(list[tuple[str, int]], page.run_async(LOADED))
    sizes = {name.removeprefix(site): size for name, size in loaded}
    assert sum(sizes.values()) <= 120_000, sizes
    assert len(loaded) <= 15, sizes


@needs_driver
@pytest.mark.slow
def test_something_is_seen_before_the_script_has_come(page: Page, site: str) -> None:
    page.chrome("Network.enable")
    page.chrome("Network.setBlockedURLs", urls=["*.js"])
    try:
        page.open("about:blank")
        page.open(f"{site}/")
        page.wait("performance.getEntriesByName('first-contentful-paint').length")
        assert page.text(".brand") == "judgetree"
        assert page.run("return document.querySelector('.arriving').checkVisibility()") is True
    finally:
        page.chrome("Network.setBlockedURLs", urls=[])
        page.console()


def test_the_joined_files_are_compressed_and_kept_for_ever(http: httpx.Client) -> None:
    document = http.get("/").text
    joined = [path for path, each in assets().items() if each.keeps]
    assert len(joined) == 2
    for path in joined:
        assert document.count(f"/assets/{path}") == 1
        packed = http.get(f"/assets/{path}", headers={"Accept-Encoding": "br, gzip"})
        plain = http.get(f"/assets/{path}", headers={"Accept-Encoding": "identity"})
        assert packed.content == plain.content
        assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 2
        assert packed.headers["ETag"] != plain.headers["ETag"]
        for answer in (packed, plain):
            assert "immutable" in answer.headers["Cache-Control"]
            assert answer.headers["Vary"] == "Accept-Encoding"
    assert http.get("/").headers["Cache-Control"] == "no-cache"


MODULES = {
    "index.html": '<link rel="stylesheet" href="/assets/b.css">\n<link rel="stylesheet" href="/assets/a.css">\n'
    '<script type="module" src="/assets/js/main.js"></script>',
    "a.css": "a {}\n",
    "b.css": "b {}\n",
    "js/main.js": 'import all, { tree as grown } from "./all.js";\nall(grown);\n',
    "js/all.js": "export const tree = 1;\n",
}


def test_modules_that_cannot_be_joined_are_named() -> None:
    with pytest.raises(ValueError, match=r"js/main\.js.*import all, "):
        bundle({path: text.encode() for path, text in MODULES.items()}, "index.html")
