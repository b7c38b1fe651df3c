"""What every test stands on: no settings from outside. (The network beyond loopback is blocked in pyproject.toml.)"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes to draw says more of what else the machine does than of the test.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# Background jobs of a shell ignore Ctrl-C, and so would the processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Search for no garbage while the tests are collected, which leaves none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of all searches for garbage, as runs and servers do."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, *gc.get_threshold()[1:])
    gc.enable()


OUTSIDE = ("JUDGETREE_", "OPENAI_", "DASHSCOPE_", "LANGSMITH_", "LANGCHAIN_")
KEPT = {"JUDGETREE_TEST_POSTGRES"}


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make an empty folder; ``tmp_path`` looks through all that there are for the next number, which takes longer."""
    base, numbers = tmp_path_factory.mktemp("own"), itertools.count()

    def new() -> Path:
        folder = base / str(next(numbers))
        folder.mkdir()
        return folder

    return new


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch, new_folder: Callable[[], Path]) -> Iterator[None]:
    """An empty current folder and no setting from outside, so that a developer's own .env or key changes nothing."""
    for name in list(os.environ):
        if name.startswith(OUTSIDE) and name not in KEPT:
            monkeypatch.delenv(name)
    folder = new_folder()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JUDGETREE_HOME", str(folder / ".judgetree"))
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{folder}-config")  # where consents are kept
    yield
    if (adaptations := sys.modules.get("judgetree.modules.llm.wire.adaptations")) is not None:
        adaptations.forget_adaptations()  # a later server may have the port of one that refused something
