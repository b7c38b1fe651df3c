"""What the tests of the server stand on: one that serves the corpus of the command line's tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from judgetree.modules.settings import Settings, load_settings
from tests.app.scripted.drum import NO_CERTIFICATES
from tests.app.server.serving import serving


@pytest.fixture
def settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, talking_home: Path, surroundings: dict[str, str]
) -> Settings:
    """Settings with a home folder of the test's own that holds the corpus, and the scripted model."""
    own = tmp_path / "home"
    shutil.copytree(talking_home, own)
    monkeypatch.setenv("JUDGETREE_HOME", str(own))
    return load_settings()


@pytest.fixture
def address(settings: Settings) -> Iterator[str]:
    """Address of a running server with its usual options."""
    with serving(settings) as url:
        yield url


@pytest.fixture
def http(address: str) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(verify=NO_CERTIFICATES, base_url=address, timeout=60) as client:
        yield client
