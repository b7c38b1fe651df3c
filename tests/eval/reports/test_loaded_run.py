"""Run directories as reports read them: what they hold, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.reports.loaded_run import load_run
from judgetree.modules.errors import LoadingError


@pytest.mark.parametrize(
    ("file", "advice"),
    [
        ("sweep.json", r"is a sweep, of which `judgetree eval report` tells\. Name one of its runs, such as .*topk-3"),
        ("recording.jsonl", "is a recording: `judgetree replay "),
        ("other.txt", "holds no finished question"),
    ],
)
def test_a_folder_of_something_else_is_named(tmp_path: Path, file: str, advice: str) -> None:
    """A sweep of 96 answers was to be run first."""
    (tmp_path / file).write_text("{}")
    (tmp_path / "topk-3").mkdir()
    (tmp_path / "topk-3" / "rows.jsonl").touch()
    with pytest.raises(LoadingError, match=advice):
        load_run(tmp_path)
