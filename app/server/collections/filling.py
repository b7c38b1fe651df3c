"""Puts uploaded files into a collection: kept below the home folder, and indexed from there."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ....modules.digests import text_digest
from ....modules.errors import CollectionError, LoadingError
from ....modules.index.content import stored_files
from ....modules.index.factory import open_index
from ....modules.index.file_parsers import LoadLimits
from ....modules.index.index import Index
from ....modules.index.plan import IndexReport
from ....modules.index.writer_lock import LockOptions
from ....modules.memory.schema import is_memory
from ....modules.progress import StageProgress
from ....modules.settings import Settings
from ....modules.storage.atomic import write_atomic
from ....modules.storage.write_errors import refusing_full_disk
from ....modules.trust.private import private_folder

_UPLOADS = "uploads"
LOCK = LockOptions(wait_s=30.0)  # also the longest time that the end of the server waits for another writer


@dataclass(frozen=True, kw_only=True)
class PendingUpload:
    """A file of an upload, not yet among those of its collection."""

    name: str
    path: Path
    """Where it waits."""


def uploads_folder(settings: Settings, collection: str) -> Path:
    """Return the folder with the uploaded files of a collection.

    Names that differ only in case have folders of their own, also where the file system takes them for the same.
    """
    told_apart = f"-{text_digest(collection).hex()[:8]}"
    return settings.home / _UPLOADS / (collection.lower() + (told_apart if collection != collection.lower() else ""))


def fill(
    collection: str,
    arrived: Sequence[PendingUpload],
    settings: Settings,
    *,
    max_file_bytes: int,
    on_progress: StageProgress,
) -> IndexReport:
    """Keep the files, replacing uploads of the same names, and index them; those that it skipped could not be read.

    No other file of the collection is touched. A file that cannot be read is not kept, and what the collection had of
    an earlier one of its name stays. After an error the files are kept: the same upload again continues from there.

    Raises:
        LoadingError: None of the files could be read, and the collection has no other.
        CollectionError: The database or the collection cannot be used.
        ModelCallError: An embedding endpoint failed.
        WritingError: A file could not be kept.
    """
    folder = uploads_folder(settings, collection).expanduser().resolve()
    with open_index(
        collection,
        settings,
        data_path=folder,
        limits=LoadLimits(file_bytes=max_file_bytes),
        lock=LOCK,
        on_progress=on_progress,
    ) as index:
        index.source_prefix = _source_prefix(index, folder)
        with refusing_full_disk(folder):
            private_folder(folder)
        paths = [folder / file.name for file in arrived]
        for path, file in zip(paths, arrived, strict=True):
            write_atomic(path, file.path.read_bytes(), private=True)
        try:
            report = index.add_new_files(paths[0], also=paths[1:])
        except LoadingError:
            _discard(paths)
            raise
    _discard(folder / PurePosixPath(skipped.source).name for skipped in report.skipped)
    return report


def _discard(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _source_prefix(index: Index, folder: Path) -> str | None:
    """Return what the sources of uploads begin with; None where a known folder decides it, or in a new collection.

    Without a prefix of its own, the folder could be taken for another one that was moved and has some of the same
    files; uploads would then replace that one's files.
    """
    client, name = index.connection.client, index.vector_store_name
    if not client.has_collection(name):
        return None
    if is_memory(client, name):
        raise CollectionError(f"{name!r} holds the memory of conversations. Choose another name for the collection.")
    folders = index.info().folders
    if any(folder.is_relative_to(known) for known in folders.values()):
        return None
    return _moved_home(folders, folder) or _free_prefix(folders, stored_files(index.connection, name))


def _moved_home(folders: Mapping[str, str], folder: Path) -> str | None:
    """Return the prefix of this folder from when the home folder was elsewhere; None if there was none."""
    for prefix, known in folders.items():
        if Path(known).parts[-2:] == folder.parts[-2:] and not Path(known).exists():
            return prefix
    return None


def _free_prefix(folders: Collection[str], stored: Collection[str]) -> str:
    taken = {*folders, *(PurePosixPath(source).parts[0] for source in stored)}
    numbered = (f"{_UPLOADS}-{number}" for number in itertools.count(2))
    return next(prefix for prefix in itertools.chain([_UPLOADS], numbered) if prefix not in taken)
