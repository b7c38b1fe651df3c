"""The view "Collections" in a real browser: what is in them, and the search playground."""

from __future__ import annotations

import pytest

from tests.app.server.page.looking import look
from tests.driver import Page, needs_driver


@pytest.mark.slow
@needs_driver
def test_a_collection_is_looked_into_and_searched_in_three_ways(page: Page, site: str) -> None:
    page.click("[href='#/collections']")
    page.wait("document.querySelector('.cards a')")
    look(page, "collections")
    page.click(".cards a")
    page.wait("document.querySelector('.files tbody tr')")
    assert page.run("return document.querySelectorAll('.files tbody tr').length") == 50
    page.write("[role=search] input", "highest temperature of gaskets")
    page.press("Enter")
    page.wait("document.querySelectorAll('.hit-list').length === 3")
    assert page.run("return [...document.querySelectorAll('.hit-list')].every((list) => list.querySelector('.score'))")
    look(page, "playground")
    page.reload()
    page.wait("document.querySelectorAll('.hit-list .hit').length > 3")
    page.click(".hit")
    page.wait("document.querySelector('dialog .document')")
    page.press("Escape")
    page.write(".filters input[aria-label='Find a file']", "kv-207")
    page.wait("document.querySelectorAll('.files tbody tr').length === 1")
    page.appear(width=360, height=780, dark=True)
    look(page, "playground-phone-dark")
