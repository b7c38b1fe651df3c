"""Evaluation runs as requests see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.server.serving import serving
from tests.eval.run_writer import RunWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the run ``mill``."""
    folder = tmp_path / "runs"
    (folder / "mill").mkdir(parents=True)
    RunWriter(folder / "mill").fill()
    return folder


@pytest.fixture
def http(settings: Settings, folder: Path) -> Iterator[httpx.Client]:
    """A client of a server that shows the runs."""
    with serving(settings, ServerOptions(runs=folder)) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def test_runs_have_headline_figures_with_intervals(http: httpx.Client) -> None:
    listed = http.get("/v1/runs").json()
    (run,) = listed["data"]
    assert (run["name"], run["systems"], run["started"]) == ("mill", ["naive", "judge"], "2025-03-01T10:00:00+00:00")
    assert (run["questions"], run["answered"], run["failed"], run["problem"]) == (3, 5, 1, "")
    em = {each["system"]: each for each in run["metrics"] if each["metric"] == "em"}
    assert em["judge"]["mean"] == pytest.approx(2 / 3)
    assert em["judge"]["low"] < 2 / 3 < em["judge"]["high"]
    assert em["naive"]["n"] == 3
