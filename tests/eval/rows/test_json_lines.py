"""Lines that are appended whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.rows.json_lines import append_line, cut_torn_end, sync_file
from judgetree.modules.errors import WritingError
from tests.file_limits import largest_file


def test_line_that_does_not_fit_is_taken_back_and_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    append_line(file, b"a" * 39_999)
    with largest_file(50_000), pytest.raises(WritingError, match=r"rows\.jsonl could not be written: .*Make room"):
        append_line(file, b"b" * 20_000)
    assert file.read_bytes() == b"a" * 39_999 + b"\n"
    append_line(file, b"b" * 20_000)
    sync_file(file)
    assert [len(line) for line in file.read_bytes().splitlines()] == [39_999, 20_000]


def test_disk_without_space_is_told() -> None:
    with pytest.raises(WritingError, match=r"/dev/full could not be written: No space left on device"):
        append_line(Path("/dev/full"), b"{}")


@pytest.mark.parametrize(
    ("before", "after"), [(b"", b""), (b"a\nb\n", b"a\nb\n"), (b"a\nb", b"a\n"), (b"b" * 200_000, b"")]
)
def test_torn_end_is_cut_off(tmp_path: Path, before: bytes, after: bytes) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(before)
    cut_torn_end(file)
    assert file.read_bytes() == after
