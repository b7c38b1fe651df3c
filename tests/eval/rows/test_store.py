"""Files of a run directory that are damaged are named, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.errors import LoadingError


@pytest.mark.parametrize(
    ("name", "read", "said"),
    [
        ("manifest.json", RunStore.read_manifest, r"manifest\.json: it is nested too deep\. Delete it"),
        ("rows.jsonl", RunStore.read_rows, r"rows\.jsonl, line 1 is damaged: .* Take that line out of the file"),
    ],
)
def test_file_that_is_nested_without_end_is_refused(
    tmp_path: Path, name: str, read: Callable[[RunStore], object], said: str
) -> None:
    (tmp_path / name).write_text("[" * 200_000 + "\n")
    with pytest.raises(LoadingError, match=said):
        read(RunStore(tmp_path))
