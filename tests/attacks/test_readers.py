"""Whatever stands in place of a file that people name: a typed error that names it, and nothing hangs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.modules.errors import UserError
from judgetree.modules.reading.regular_files import MAX_DATA_BYTES
from tests.cpu_time import cpu_time_below

from .readers import DOORS, EXCUSED, Door, calls_in_code
from .watch import peak_memory_mb

MOST_CPU_S = 10.0
MOST_MEMORY_MB = 400.0
DEEP = 200_000


def _sparse(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(MAX_DATA_BYTES + 1)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "loop": lambda file: file.symlink_to(file.name),
    "huge": _sparse,
    "nested": lambda file: file.write_bytes(b"[" * DEEP),
    "nested-objects": lambda file: file.write_bytes(b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"\n"),
    "binary": lambda file: file.write_bytes(b"\xff\xfe\x00" * 1_000 + b"\n"),
    "digits": lambda file: file.write_bytes(b'{"score": ' + b"9" * DEEP + b"}\n"),
    "zip": lambda file: file.write_bytes(b"PK\x03\x04" + b"\x00" * 1_000 + b"\n"),
    "quotes": lambda file: file.write_bytes(b'"' * DEEP + b"\n"),
}
"""What stands in place of the file."""
_REFUSED = frozenset({"fifo", "device", "folder", "huge"})
"""What no reader may take for a file without content."""


def test_every_reader_is_attacked_or_excused() -> None:
    found = {call.site for call in calls_in_code()}
    attacked = {site for door in DOORS for site in door.sites}
    assert attacked - found == set(), "these are no longer in the code"
    assert EXCUSED.keys() - found == set(), "these excuses are no longer in the code"
    unknown = found - attacked - EXCUSED.keys()
    assert unknown == set(), "read through modules/reading/regular_files.py and add a door to readers.py, or excuse it"


def _refusal_of(door: Door, path: Path) -> str | None:
    """What a reader says of a file that it refuses; None if it reads it."""
    try:
        door.read(path)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and /dev")
@pytest.mark.parametrize("place", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_hostile_file_is_refused_by_name(
    door: Door, place: Callable[[Path], object], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "graphs"
    folder.mkdir()
    place(folder / door.name)
    before_mb = peak_memory_mb()
    with cpu_time_below(MOST_CPU_S):
        said = _refusal_of(door, folder / door.name)
    if said is None:
        assert request.node.callspec.id.split("-", 1)[1] not in _REFUSED
    else:
        assert Path(door.name).stem in said or str(folder) in said or door.name == "a.txt"
        assert len(said) < 3_000
    assert peak_memory_mb() - before_mb < MOST_MEMORY_MB
