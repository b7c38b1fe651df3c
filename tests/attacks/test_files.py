"""Hostile files are skipped by name, within their limits, and the rest of the folder is indexed."""

from __future__ import annotations

import resource
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import LoadLimits
from judgetree.modules.index.folder_scan import SourceFile, scan_files
from judgetree.modules.index.parser_process import ParserProcess
from judgetree.modules.index.plan import ChunkSizes, read_changes, to_documents
from tests.attacks.files import CONTENTS, READABLE, write_special

LIMITS = LoadLimits(file_bytes=20_000_000, seconds=2.0, memory_bytes=600 << 20)
PATIENT = replace(LIMITS, seconds=60.0)
"""For files that are read: a busy machine may need longer to start the parser."""


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.slow
def test_a_hostile_file_is_read_or_skipped_within_its_limits(tmp_path: Path, name: str) -> None:
    file = SourceFile(path=tmp_path / name, source=name)
    file.path.write_bytes(CONTENTS[name]())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reason = ""
    before_s = _cpu_s()
    with ParserProcess(PATIENT if name in READABLE else LIMITS) as parser:
        try:
            to_documents(file, parser.parse(file.path.suffix, file.read(max_bytes=LIMITS.file_bytes)))
        except LoadingError as error:
            reason = str(error)
    assert _cpu_s() - before_s < LIMITS.seconds + 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 300_000
    assert bool(reason) != (name in READABLE)
    assert len(reason) < 300


def _cpu_s() -> float:
    """CPU time of this process and of the parsers that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@pytest.mark.skipif(sys.platform != "linux", reason="needs special files and names that are no UTF-8")
def test_special_files_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    shown = write_special(tmp_path)
    (tmp_path / "fine.txt").write_text("fine")
    (tmp_path / "folder.pdf").mkdir()
    (tmp_path / "folder.pdf" / "inner.md").write_text("inner")
    (tmp_path / "folder.pdf" / "up").symlink_to("..")
    plan = read_changes(scan_files(tmp_path), {}, ChunkSizes(), lambda done, total, stage: None, LIMITS)
    assert plan.added == ["fine.txt", "folder.pdf/inner.md"]
    assert sorted(file.source for file in plan.skipped) == shown
