"""What the files of several folders are called in one collection, so that no two share a name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from .folder_scan import FileScan, FolderScan, SkippedFile, SourceFile

_SAMPLE = 50


@dataclass(kw_only=True)
class SourceNames:
    """Names the files of one folder after the other, and remembers the folders."""

    folders: dict[str, str]
    """What sources begin with, to the folder; ``""`` for the first one."""
    stored: Collection[str]
    """Sources that the collection holds."""
    is_same: Callable[[SourceFile], bool]
    """Whether the collection holds a file of that source with these bytes."""
    _tops: set[str] = field(default_factory=set)
    """First parts of the sources that were given."""

    def name(self, found: FolderScan, *, prefix: str | None = None) -> FileScan:
        """The scan of a folder with the sources that the collection gives its files.

        The first folder's files are named relative to it, and those of a folder inside a known one as in that one. A
        new folder's sources begin with its name, numbered where another folder has it. A folder that is not where it
        was is known by its files: at least half of the sources that both hold have the bytes they had.

        Args:
            found: The folder and its scan.
            prefix: What sources are to begin with; None to find it.
        """
        if prefix is None:
            prefix = _known_above(found.folder, self.folders)
        else:
            self.folders[prefix] = str(found.folder)
        if prefix is None:
            prefix = self._moved(found.scan)
            if prefix is None:
                prefix = self._free(found.folder.name or "root") if self.folders else ""
            self.folders[prefix] = str(found.folder)
        scan = _named(found.scan, prefix, self.folders)
        self._tops |= {PurePosixPath(file.source).parts[0] for file in scan.files}
        return scan

    def _moved(self, scan: FileScan) -> str | None:
        for prefix, known in self.folders.items():
            if Path(known).exists():
                continue
            common = [file for file in _named(scan, prefix, self.folders).files if file.source in self.stored]
            sample = common[:_SAMPLE]
            if sample and 2 * sum(map(self.is_same, sample)) >= len(sample):
                return prefix
        return None

    def _free(self, name: str) -> str:
        taken = {*self.folders, *self._tops, *(PurePosixPath(source).parts[0] for source in self.stored)}
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        return next(candidate for candidate in itertools.chain([name], numbered) if candidate not in taken)


def _known_above(folder: Path, folders: Mapping[str, str]) -> str | None:
    """What sources of a folder begin with that is, or lies in, a known one; the innermost counts."""
    holders = [(known, prefix) for prefix, known in folders.items() if folder.is_relative_to(known)]
    if not holders:
        return None
    known, prefix = max(holders, key=lambda holder: len(holder[0]))
    return _joined(prefix, folder.relative_to(known).as_posix())


def _named(scan: FileScan, prefix: str, folders: Mapping[str, str]) -> FileScan:
    files = [replace(file, source=_joined(prefix, file.source)) for file in scan.files]
    skipped = [replace(file, source=_joined(prefix, file.source)) for file in scan.skipped]
    # A folder inside the first one may be called like another folder that was indexed before.
    others = {other: known for other, known in folders.items() if other and prefix in ("", ".")}
    shadowed = {file.source: others[top] for file in files if (top := PurePosixPath(file.source).parts[0]) in others}
    reasons = (
        SkippedFile(source=source, reason=f"its name belongs to the files of {known}; rename the folder")
        for source, known in shadowed.items()
    )
    return replace(
        scan,
        files=tuple(file for file in files if file.source not in shadowed),
        skipped=tuple(sorted([*skipped, *reasons], key=lambda file: file.source)),
    )


def _joined(prefix: str, source: str) -> str:
    return (PurePosixPath(prefix) / source).as_posix()
