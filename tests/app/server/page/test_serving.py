"""The files of the page as a server gives them out."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import httpx
import pytest

from judgetree.app.server.page.serving import POLICY, assets
from tests.app.server.page.looking import REPO

FOLDER = REPO / "app" / "server" / "page"
OWN = [path for path in FOLDER.rglob("*") if path.suffix in {".js", ".css", ".html"} and "vendor" not in path.parts]


def test_the_page_and_all_that_it_loads_come_from_this_server(http: httpx.Client) -> None:
    page = http.get("/")
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    wanted = re.findall(r'(?:src|href)="(/[^"]*)"', page.text)
    assert len(wanted) > 3
    for name in assets():
        if name != "index.html":
            wanted.append(f"/assets/{name}")
    for path in wanted:
        found = http.get(path)
        assert found.status_code == 200, path
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert http.get(path, headers={"If-None-Match": found.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    "path", ["nothing.js", "../serving.py", "serving.py", "%2e%2e/%2e%2e/application.py", "index.html"]
)
def test_no_other_file_is_given_out(http: httpx.Client, path: str) -> None:
    answer = http.get(f"/assets/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_own_files_make_no_markup_and_name_no_other_site(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in text
    sites = set(re.findall(r"https?://([\w.-]+)", text)) - {"www.w3.org", "html.spec.whatwg.org"}
    assert sites == set()
    assert len(text.splitlines()) <= 350


def test_third_parties_are_as_noted() -> None:
    noted = (FOLDER / "THIRD_PARTY.md").read_text(encoding="utf-8")
    for file in (FOLDER / "vendor").iterdir():
        assert f"vendor/{file.name}`" in noted
        if file.suffix == ".mjs":
            assert hashlib.sha256(file.read_bytes()).hexdigest() in noted
