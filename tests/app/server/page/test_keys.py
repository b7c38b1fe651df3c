"""The page of a server that demands keys."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.server.page.looking import look
from tests.app.server.serving import serving
from tests.driver import browser, needs_driver


@needs_driver
@pytest.mark.slow
def test_the_page_asks_for_a_key_and_keeps_it_as_long_as_the_tab(settings: Settings, tmp_path: Path) -> None:
    with closing(KeyTables(settings)) as tables:
        _, text = KeyBook(tables).add("ada", collections=None)
        _, narrow = KeyBook(tables).add("eve", collections=["kitchen"])
    with serving(settings, ServerOptions(needs_keys=True)) as url, browser(tmp_path / "browser") as page:
        page.appear()
        page.open(f"{url}/")
        page.wait("document.querySelector('form.welcome input')")
        look(page, "key")
        assert page.console() == []
        page.write("form.welcome input", "wrong")
        page.press("Enter")
        page.wait("document.querySelector('.welcome [role=alert]')")
        assert all("401" in said for said in page.console())
        page.write("form.welcome input", text)
        page.press("Enter")
        page.wait("document.querySelector('.composer')")
        page.reload()
        page.wait("document.querySelector('.composer') && document.querySelector('.conversations li')")
        assert page.console() == []
        assert page.run("return JSON.stringify(localStorage)") == "{}"
        assert page.run("return Object.values(sessionStorage)") == [text]
        page.open(f"{url}/#/collections")
        page.wait("document.querySelector('.upload input[list]')")
        page.run(f"sessionStorage.setItem('judgetree.key', '{narrow}')")
        page.reload()
        page.wait("document.querySelector('.upload select')?.value === 'kitchen'")
        assert "These alone may be filled here." in page.text(".upload")
        look(page, "upload-narrow-key")
