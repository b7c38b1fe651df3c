"""An empty, cut or missing manifest beside whole rows: read and repaired from its copy, or a message that says how."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.rows.two_copies import copy_of, mend_from_copy, read_either, write_twice
from judgetree.modules.errors import LoadingError
from tests.eval.run_rows import write_run

DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:20]),
    "no json": lambda file: file.write_bytes(b"\x00" * 4096),
    "no text": lambda file: file.write_bytes(b"\xff\xfe"),
    "nested": lambda file: file.write_bytes(b"[" * 100_000),
    "missing": Path.unlink,
}
damaged = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "q.csv").write_text("question,answer\nWho?,right\n", encoding="utf-8")
    return write_run(tmp_path / "run", {"judge": 1}, dataset=f"questions:{tmp_path / 'q.csv'}", systems=["judge"])


@damaged
def test_a_damaged_manifest_is_read_from_its_copy_and_repaired(
    damage: Callable[[Path], object], run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, store = run / "manifest.json", RunStore(run)
    before, known = file.read_bytes(), store.read_manifest()
    damage(file)
    with caplog.at_level(logging.WARNING):
        assert store.read_manifest() == known
    assert "manifest.copy.json" in caplog.text
    assert len(load_report(run).questions) == 1
    store.mend()
    assert file.read_bytes() == before


@damaged
def test_a_damaged_copy_harms_nothing(damage: Callable[[Path], object], run: Path) -> None:
    store = RunStore(run)
    known = store.read_manifest()
    damage(copy_of(run / "manifest.json"))
    store.mend()
    assert store.read_manifest() == known


@damaged
def test_a_damaged_manifest_without_a_copy_says_how_to_keep_the_rows(
    damage: Callable[[Path], object], run: Path
) -> None:
    copy_of(run / "manifest.json").unlink()
    damage(run / "manifest.json")
    with pytest.raises(LoadingError, match=r"(?s)manifest.*[Rr]epeat the command that made.*it keeps\s+them"):
        load_report(run)
    RunStore(run).mend()
    assert len(RunStore(run).read_rows()) == 1


def test_a_file_of_another_version_is_not_replaced_by_its_copy(run: Path) -> None:
    file = run / "manifest.json"
    file.write_text('{"format": "judgetree-run/999"}', encoding="utf-8")
    RunStore(run).mend()
    with pytest.raises(LoadingError, match="judgetree-run/999"):
        RunStore(run).read_manifest()


def test_starting_over_leaves_no_copy(run: Path) -> None:
    RunStore(run).start_over()
    assert RunStore(run).read_manifest() is None
    assert not list(run.glob("*.json*"))


def test_a_file_that_was_never_written_has_no_content(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert read_either(file, what="it", advice="") is None
    mend_from_copy(file)
    write_twice(file, "{}")
    assert read_either(file, what="it", advice="") == {}
