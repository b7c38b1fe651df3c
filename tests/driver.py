"""A browser that is clicked and typed into: Chromium by chromedriver, in the words of W3C WebDriver."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.browser import CHROMIUM, HOW_TO_INSTALL, IS_CI

CHROMEDRIVER = shutil.which("chromedriver")
needs_driver = pytest.mark.skipif(
    (CHROMIUM is None or CHROMEDRIVER is None) and not IS_CI, reason=f"no chromium with chromedriver: {HOW_TO_INSTALL}"
)

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--window-size=1000,900",
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowRight": "\ue014"}


class Page:
    """An open page."""

    def __init__(self, session: httpx.Client) -> None:
        self._session = session

    def open(self, address: str) -> None:
        self._post("url", url=address)

    def run(self, script: str) -> object:
        """What a script returns."""
        return self._post("execute/sync", script=script, args=[])

    def run_async(self, script: str) -> object:
        """What a script gives to its last argument, a function."""
        return self._post("execute/async", script=script, args=[])

    def wait(self, condition: str) -> None:
        """Wait until a condition in JavaScript holds."""
        waiting = (
            f"const done = arguments[0]; const look = () => ({condition}) ? done(true) : setTimeout(look, 10); look();"
        )
        assert self.run_async(waiting) is True

    def text(self, selector: str) -> str:
        return str(self.run(f"return document.querySelector({selector!r}).innerText"))

    def press(self, key: str) -> None:
        """Press a key, whatever has the focus."""
        value = KEYS.get(key, key)
        steps = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])

    def click(self, selector: str) -> None:
        self._post(f"element/{self._found(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        """Type into an element; the text for a file input is a path."""
        self._post(f"element/{self._found(selector)}/value", text=text)

    def open_tab(self, address: str) -> str:
        """Open an address in another tab, which is looked at from now on; returns the tab before, for ``turn_to``."""
        before = str(self._get("window"))
        opened = self._post("window/new", type="tab")
        assert isinstance(opened, dict)
        self.turn_to(opened["handle"])
        self.open(address)
        return before

    def turn_to(self, tab: str) -> None:
        """Look at another tab."""
        self._post("window", handle=tab)

    def close_tab(self) -> None:
        """Close the tab that is looked at."""
        self._session.delete("window")

    def reload(self) -> None:
        self._post("refresh")

    def appear(self, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Take a size, down to that of phones, and prefer dark or light colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.chrome("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.chrome("Emulation.setEmulatedMedia", features=[scheme])

    def console(self) -> list[str]:
        """What scripts wrote since the last look, errors among it."""
        entries = self._post("se/log", type="browser")
        assert isinstance(entries, list)
        return [entry["message"] for entry in entries]

    def picture(self) -> bytes:
        return base64.b64decode(str(self._get("screenshot")))

    def _found(self, selector: str) -> str:
        self.wait(f"document.querySelector({json.dumps(selector)})")
        found = self._post("element", using="css selector", value=selector)
        assert isinstance(found, dict)
        return str(found[_ELEMENT])

    def chrome(self, command: str, **parameters: object) -> object:
        """What Chrome says to a command of its own protocol."""
        return self._post("goog/cdp/execute", cmd=command, params=parameters)

    def _post(self, what: str, **content: object) -> object:
        return _value(self._session.post(what, json=content))

    def _get(self, what: str) -> object:
        return _value(self._session.get(what))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start a browser of its own, with its profile in a folder."""
    assert CHROMIUM is not None and CHROMEDRIVER is not None, HOW_TO_INSTALL
    log = profile / "chromedriver.log"
    profile.mkdir(parents=True, exist_ok=True)
    with (
        log.open("wb") as out,
        subprocess.Popen([str(CHROMEDRIVER), "--port=0"], stdout=subprocess.PIPE, stderr=out) as driver,
    ):
        try:
            assert driver.stdout is not None
            said = iter(driver.stdout.readline, b"")
            port = next(line.rsplit(b" ", 1)[1].strip(b".\n") for line in said if b"successfully on port" in line)
            with httpx.Client(base_url=f"http://127.0.0.1:{port.decode()}", timeout=60, trust_env=False) as client:
                yield from _pages(client, profile)
        finally:
            driver.terminate()


def _pages(client: httpx.Client, profile: Path) -> Iterator[Page]:
    options = {"binary": CHROMIUM, "args": [*_ARGUMENTS, f"--user-data-dir={profile / 'profile'}"]}
    wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
    session = _value(client.post("session", json={"capabilities": wanted}))
    assert isinstance(session, dict)
    address = client.base_url.join(f"/session/{session['sessionId']}")
    client.base_url = address
    try:
        yield Page(client)
    finally:
        _value(client.delete(address))  # ends the browser, which outlives its driver


def _value(reply: httpx.Response) -> object:
    value = reply.json()["value"]
    assert reply.is_success, value
    return value
