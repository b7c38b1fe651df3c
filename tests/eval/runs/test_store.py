"""Files of a run directory that are damaged are named, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.errors import LoadingError

ENDLESS = "[" * 200_000 + "\n"


def test_a_manifest_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(ENDLESS)
    with pytest.raises(LoadingError, match=r"manifest\.json is damaged .* Give another --out"):
        RunStore(tmp_path).read_manifest()


def test_a_row_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(ENDLESS)
    with pytest.raises(LoadingError, match=r"rows\.jsonl, line 1 is damaged: .* Take that line out of the file"):
        RunStore(tmp_path).read_rows()
