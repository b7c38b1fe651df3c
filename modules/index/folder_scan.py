"""Scans for files under a path, with their names in the index and the reasons for skipping some."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ..errors import LoadingError
from ..reading.regular_files import not_regular, open_regular, read_regular
from .file_parsers import PARSERS

logger = logging.getLogger(__name__)

_PATHS_SHOWN = 3

_UNSEEN = (".", "~$")
"""How the names of hidden files begin, and of those that Word and Excel write beside an open file."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file to index, with its name in the index."""

    path: Path
    source: str
    """POSIX path relative to the index root."""

    def read(self, *, max_bytes: int) -> bytes:
        """Return the file's bytes.

        Raises:
            LoadingError: The file is larger, or not a regular file; the message is only the reason.
            OSError: The file cannot be read.
        """
        return read_regular(self.path, max_bytes=max_bytes)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes, in hexadecimal.

        Raises:
            LoadingError: It is not a regular file; the message is only the reason.
            OSError: The file cannot be read.
        """
        with open_regular(self.path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True, order=True)
class SkippedFile:
    """A wanted file without text, or a folder that could not be listed."""

    source: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class FileScan:
    """The files under a path, before any is read."""

    folder: Path
    """Absolute path to which the sources were relative when they were found."""
    files: tuple[SourceFile, ...] = ()
    """Wanted files, sorted by source."""
    skipped: tuple[SkippedFile, ...] = ()
    """Wanted files that are not to be opened, and folders that cannot be listed; sorted by source."""
    ignored: int = 0
    """Number of files of other types."""
    named: tuple[SourceFile, ...] = ()
    """The files and folders that were named, with what the sources of their files begin with."""


def scan_folders(
    paths: Sequence[Path | str], *, file_type_wanted: Sequence[str] | None, follow_links: bool
) -> list[FileScan]:
    """Scan each file or folder with ``scan_files``; one without any file beside others is skipped as a whole.

    Raises:
        LoadingError: A path does not exist, a wanted type is unknown, or no file has a wanted type.
    """
    scans = [scan_files(path, file_type_wanted=file_type_wanted, follow_links=follow_links) for path in paths]
    if any(scan.files or scan.skipped for scan in scans):
        return [_skipped_if_empty(scan) for scan in scans]
    wanted = ", ".join(sorted(suffix[1:] for suffix in _wanted_suffixes(file_type_wanted)))
    where = ", ".join(map(str, paths[:_PATHS_SHOWN])) + (", …" if len(paths) > _PATHS_SHOWN else "")
    there = sum(scan.ignored for scan in scans)
    found = f"files there: {there:,}, of other types than {wanted}" if there else "no file is there"
    raise LoadingError(f"There is nothing to index in {where}: {found}. Give another path or other types of files.")


def _skipped_if_empty(scan: FileScan) -> FileScan:
    if scan.files or scan.skipped or scan.ignored:
        return scan
    reason = f"no file is in {scan.folder}, so that what the collection has of it stays; is its disk mounted?"
    return replace(scan, skipped=(SkippedFile(source=".", reason=reason),))


def merged(scans: Sequence[FileScan]) -> FileScan:
    """Return several scans as one, in the folder of the first; a source in two of them counts once."""
    files = {file.source: file for scan in reversed(scans) for file in scan.files}
    skipped = {file.source: file for scan in reversed(scans) for file in scan.skipped}
    return FileScan(
        folder=scans[0].folder,
        files=tuple(files[source] for source in sorted(files)),
        skipped=tuple(skipped[source] for source in sorted(skipped)),
        ignored=sum(scan.ignored for scan in scans),
        named=tuple(named for scan in scans for named in scan.named),
    )


def absent_sources(stored: Iterable[str], scan: FileScan) -> list[str]:
    """Return the stored sources that the scan does not contain, sorted, except those that could not be read."""
    there = {file.source for file in scan.files}
    hidden = {skipped.source for skipped in scan.skipped}
    return sorted(
        source
        for source in set(stored) - there
        if hidden.isdisjoint([source, *map(PurePosixPath.as_posix, PurePosixPath(source).parents)])
    )


def other_sources(stored: Iterable[str], scan: FileScan, *, folders: Mapping[str, str] | None = None) -> list[str]:
    """Return the stored sources whose files are not under what the scan names, sorted.

    Left out are sources that could not be read, and files that are there but were not scanned for, such as those of
    other types.

    Args:
        stored: Sources of the collection.
        scan: A scan with the names of the collection.
        folders: Folders of the collection by what their sources begin with, as it knew them before the scan.
    """
    search = _GoneSearch.among(folders)
    return [
        source
        for source in absent_sources(stored, scan)
        if not any(search.is_there(named, PurePosixPath(source)) for named in scan.named)
    ]


def gone_sources(
    stored: Iterable[str],
    scan: FileScan,
    *,
    folders: Mapping[str, str] | None = None,
    file_type_wanted: Sequence[str] | None = None,
) -> list[str]:
    """Return the stored sources whose files were under what the scan names and are no longer there, sorted.

    Left out are sources that could not be read, those of types that were not wanted, those of other folders inside a
    named one, and files that are still there, such as hidden ones.

    Args:
        stored: Sources of the collection.
        scan: A scan with the names of the collection.
        folders: Folders of the collection by what their sources begin with, as it knew them before the scan.
        file_type_wanted: The types that were scanned for; None for all.
    """
    suffixes = None if file_type_wanted is None else _wanted_suffixes(file_type_wanted)
    search = _GoneSearch.among(folders)
    return [
        source
        for source in absent_sources(stored, scan)
        if suffixes is None or PurePosixPath(source).suffix.lower() in suffixes
        if any(search.is_gone_from(named, PurePosixPath(source)) for named in scan.named)
    ]


@dataclass(kw_only=True)
class _GoneSearch:
    """A search for files that are gone, which lists each folder once."""

    known: Mapping[PurePosixPath, Path]
    """Folders of the collection by the prefix of their sources."""
    _names: dict[Path, frozenset[str] | None] = field(default_factory=dict)

    @classmethod
    def among(cls, folders: Mapping[str, str] | None) -> _GoneSearch:
        """Return a search in a collection, given its folders by the prefix of their sources."""
        return cls(known={PurePosixPath(prefix): Path(folder) for prefix, folder in (folders or {}).items()})

    def is_gone_from(self, named: SourceFile, source: PurePosixPath) -> bool:
        """Return whether a source belongs to a named file or folder, and to no other one, and its file is gone."""
        return self._belongs_to(named, source) and not self._is_found(named, source)

    def is_there(self, named: SourceFile, source: PurePosixPath) -> bool:
        """Return whether a source belongs to a named file or folder, and to no other one, and its file may be there."""
        return self._belongs_to(named, source) and self._is_found(named, source)

    def _belongs_to(self, named: SourceFile, source: PurePosixPath) -> bool:
        own = PurePosixPath(named.source)
        holders = self._holders_of(source)
        return source.is_relative_to(own) and not any(each != own and each.is_relative_to(own) for each in holders)

    def _is_found(self, named: SourceFile, source: PurePosixPath) -> bool:
        # A folder that takes the prefix of another one has none of its files, which may be there still.
        places = [
            named.path / source.relative_to(PurePosixPath(named.source)),
            *(self.known[each] / source.relative_to(each) for each in self._holders_of(source)),
        ]
        return any(map(self._may_be_there, places))

    def _holders_of(self, source: PurePosixPath) -> list[PurePosixPath]:
        return [prefix for prefix in self.known if source.is_relative_to(prefix)]

    def _may_be_there(self, file: Path) -> bool:
        if file.parent not in self._names:
            self._names[file.parent] = _names_in(file.parent)
        names = self._names[file.parent]
        return names is None or file.name in names


def _names_in(folder: Path) -> frozenset[str] | None:
    """Return the names of the files in a folder, none if it is gone; None if it cannot be read."""
    try:
        with os.scandir(folder) as listing:  # some systems find a file by another case
            return frozenset(each.name for each in listing if not each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        return None


def scan_files(
    path: Path | str,
    *,
    file_type_wanted: Sequence[str] | None = None,
    follow_links: bool = False,
) -> FileScan:
    """Find the wanted files under ``path`` without reading them. Hidden files and folders are ignored.

    Sources are relative to the folder, or to the folder of the file.

    Args:
        path: File or folder.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for every type in ``PARSERS``.
        follow_links: Also follow links that leave the folder. Each folder is visited once.

    Raises:
        LoadingError: The path does not exist, or a wanted type is unknown.
    """
    start = _existing_path(path)
    suffixes = _wanted_suffixes(file_type_wanted)
    folder = start if start.is_dir() else start.parent
    walk = _Walk(folder=folder, follow_links=follow_links)
    found = list(walk.under(start) if start.is_dir() else [_file_entry(start)])
    files: list[SourceFile] = []
    skipped: list[SkippedFile] = []
    ignored = 0
    for entry in found:
        source = entry.path.relative_to(folder).as_posix()
        if not entry.is_folder and entry.path.suffix.lower() not in suffixes:
            ignored += 1
        elif reason := entry.reason or _name_problem(source):
            shown = source.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            skipped.append(SkippedFile(source=shown, reason=reason))
        else:
            files.append(SourceFile(path=entry.path, source=source))
    if ignored:
        logger.info("Ignored %d files under %s that are not %s.", ignored, path, ", ".join(sorted(suffixes)))
    return FileScan(
        folder=folder,
        files=tuple(sorted(files, key=lambda file: file.source)),
        skipped=tuple(sorted(skipped)),
        ignored=ignored,
        named=(SourceFile(path=start, source=start.relative_to(folder).as_posix()),),
    )


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A file or folder, and the reason for skipping it (``""``: none)."""

    path: Path
    reason: str = ""
    is_folder: bool = False


@dataclass(kw_only=True)
class _Walk:
    """An iterative walk that visits each folder once, since folders may be nested thousands deep."""

    folder: Path
    follow_links: bool
    _linked: set[str] = field(default_factory=set)

    def under(self, start: Path) -> Iterator[_Entry]:
        """Yield visible files in order, and skipped entries."""
        waiting = [start]
        while waiting:
            here = waiting.pop()
            try:
                with os.scandir(here) as listing:
                    entries = sorted(
                        (one for one in listing if not one.name.startswith(_UNSEEN)), key=lambda one: one.name
                    )
            except OSError as error:
                yield _Entry(path=here, reason=f"the folder cannot be listed ({error.strerror})", is_folder=True)
                continue
            for entry in entries:
                path = here / entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif not entry.is_symlink():
                    yield _file_entry(path)
                else:
                    found, onward = self._link(path)
                    yield from found
                    waiting += onward

    def _link(self, path: Path) -> tuple[list[_Entry], list[Path]]:
        try:
            target, is_folder = os.path.realpath(path, strict=True), path.is_dir()
        except OSError as error:
            return [_Entry(path=path, reason=f"the link leads nowhere ({error.strerror})")], []
        inside = Path(target).is_relative_to(self.folder)
        if not inside and not self.follow_links:
            reason = "it is a link that leaves the folder, and such links are not followed unless asked for"
            return [_Entry(path=path, reason=reason, is_folder=is_folder)], []
        if not is_folder:
            return [_file_entry(path)], []
        # A folder inside is visited at its own place; one outside is entered once, since two links may form a cycle.
        if inside or self.folder.is_relative_to(target) or target in self._linked:
            return [], []
        self._linked.add(target)
        return [], [path]


def _existing_path(path: Path | str) -> Path:
    try:
        start = Path(path).expanduser().resolve()
        if start.exists():
            return start
    except (OSError, RuntimeError, ValueError):  # a name too long, links in a circle, NUL
        pass
    raise LoadingError(f"There is no file or folder {str(path)!r}. Name an existing one.")


def _file_entry(path: Path) -> _Entry:
    try:
        status = path.stat()
    except OSError as error:
        return _Entry(path=path, reason=f"it cannot be read ({error.strerror})")
    return _Entry(path=path, reason="" if stat.S_ISREG(status.st_mode) else not_regular(status))


def _name_problem(source: str) -> str:
    """Return why a name cannot be stored; ``""`` if it can."""
    try:
        source.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename it"
    return ""


def _wanted_suffixes(file_type_wanted: Sequence[str] | None) -> frozenset[str]:
    if file_type_wanted is None:
        return frozenset(PARSERS)
    names = [file_type_wanted] if isinstance(file_type_wanted, str) else file_type_wanted
    suffixes = frozenset("." + name.lower().lstrip("*").lstrip(".") for name in names)
    unknown = sorted(suffixes - PARSERS.keys())
    if unknown or not suffixes:
        raise LoadingError(
            f"Unknown file types: {', '.join(suffix[1:] for suffix in unknown) or 'none is given'}. "
            f"Allowed: {', '.join(sorted(suffix[1:] for suffix in PARSERS))}."
        )
    return suffixes
