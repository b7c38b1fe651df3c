"""Recordings hold what sub-questions find; an experiment that follows links is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.record_and_replay import record
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.errors import SettingsError


def test_an_experiment_that_follows_links_is_not_recorded(tmp_path: Path) -> None:
    experiment = Experiment(dataset="questions:nowhere.jsonl", systems=("judge",), expansion="both")
    with pytest.raises(SettingsError, match="expansion='both' cannot be recorded"):
        record(experiment, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
