"""The plan of an index update: names of files, changed files, and their chunks.

A document is a page of a PDF, a row of a CSV, a JSON object or a whole text. It has ``source`` (the file's name in the
index) and ``title``, a page also ``page`` (from 1), and a row ``row`` (from 1).
"""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from langchain_core.documents import Document

from ..digests import text_digest
from ..embedding.cache import Vector
from ..errors import LoadingError
from ..language.search_form import SearchForm, words_of_text
from ..progress import StageProgress
from ..reading.text_encoding import UTF_8, decode
from .chunking import CHUNK_OVERLAP, CHUNK_SIZE, MAX_TEXT_BYTES, split_documents
from .content import DYNAMIC_FIELDS, FILE_DIGEST, SOURCE, Row, StoredFile, file_digest
from .dense_fields import Embedders
from .file_parsers import PARSER_VERSION, UTF_8_SUFFIXES, LoadLimits
from .folder_scan import FileScan, SkippedFile, SourceFile, merged
from .parser_process import ParserProcess
from .parsers.parsed import ParsedFile
from .schema import PK_FIELD, SEARCH_FIELD, SPARSE_FIELD, TEXT_FIELD, CollectionInfo

logger = logging.getLogger(__name__)

_SAMPLE = 50


@dataclass(kw_only=True)
class SourceNames:
    """The names of files in the index, folder by folder."""

    folders: dict[str, str]
    """Folders by the prefix of their sources; ``""`` for the first one."""
    stored: Collection[str]
    """Sources in the collection."""
    is_same: Callable[[SourceFile], bool]
    """Returns whether the collection holds a file with this source and these bytes."""
    _tops: set[str] = field(default_factory=set)
    """First parts of all sources named so far."""

    def name(self, found: FileScan, *, prefix: str | None = None) -> FileScan:
        """Return the scan of a folder with the sources of its files in the collection.

        Sources of the first folder, and of folders inside a known one, are relative to that folder. Sources of a new
        folder begin with its name, numbered if it is taken. A moved folder is recognised by its files: at least half of
        the common sources have the same bytes. A ``prefix`` overrides these rules.
        """
        if prefix is None:
            prefix = _known_above(found.folder, self.folders)
        else:
            self.folders[prefix] = str(found.folder)
        if prefix is None:
            prefix = self._moved(found)
            if prefix is None:
                prefix = self._free(found.folder.name or "root") if self.folders else ""
            self.folders[prefix] = str(found.folder)
        scan = _named(found, prefix, self.folders)
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
    """Return the prefix for a folder in a known one, the innermost; None if it is in none."""
    holders = [(known, prefix) for prefix, known in folders.items() if folder.is_relative_to(known)]
    if not holders:
        return None
    known, prefix = max(holders, key=lambda holder: len(holder[0]))
    return _joined(prefix, folder.relative_to(known).as_posix())


def _named(scan: FileScan, prefix: str, folders: Mapping[str, str]) -> FileScan:
    files = [replace(file, source=_joined(prefix, file.source)) for file in scan.files]
    skipped = [replace(file, source=_joined(prefix, file.source)) for file in scan.skipped]
    named = tuple(replace(each, source=_joined(prefix, each.source)) for each in scan.named)
    # A folder inside the first one may have the name of another folder that was indexed before.
    others = {other: known for other, known in folders.items() if other and prefix in ("", ".")}
    shadowed = {file.source: others[top] for file in files if (top := PurePosixPath(file.source).parts[0]) in others}
    reasons = (
        SkippedFile(source=source, reason=f"its name belongs to the files of {known}; rename the folder")
        for source, known in shadowed.items()
    )
    return replace(
        scan,
        files=tuple(file for file in files if file.source not in shadowed),
        skipped=tuple(sorted([*skipped, *reasons])),
        named=named,
    )


def _joined(prefix: str, source: str) -> str:
    return (PurePosixPath(prefix) / source).as_posix()


_REASONS_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class ChunkSizes:
    """Sizes for ``split_documents``."""

    size: int = CHUNK_SIZE
    overlap: int = CHUNK_OVERLAP


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """The result of one update of the index. Files are named by source, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    """Number of unchanged files."""
    skipped: tuple[SkippedFile, ...] = ()
    """Files and folders that could not be read; their earlier chunks stay in the collection."""
    ignored: int = 0
    """Number of files of other types."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """Encodings of added and changed files, by source: of text files that are not UTF-8, of pages that say none."""
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What a reader sees in added and changed files and no chunk holds, by source: numbers by kind."""
    embedded: int = 0
    """Number of chunks that a model embedded; the other new ones had vectors in the collection or the cache."""
    cached: int = 0
    """Number of new chunks whose vectors came out of the embedder's cache."""
    embedding_s: float = 0.0
    """Seconds of embedding, the look into the cache included."""
    chunks: int = 0
    """Number of chunks in the collection after the update."""
    notes: tuple[str, ...] = ()
    """For the person who indexes: the choice of the embedder, scripts that it does not know, an old collection."""


@dataclass(kw_only=True)
class UpdatePlan:
    """The changes of an update, filled file by file."""

    chunks: list[Document] = field(default_factory=list)
    """Chunks of added and changed files, with ``chunk_id`` and ``file_digest``."""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    encodings: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Mapping[str, int]] = field(default_factory=dict)
    unchanged: int = 0

    def replaced_ids(self, stored: Mapping[str, StoredFile]) -> frozenset[str]:
        """Return the ids of the stored chunks of changed and removed files."""
        return frozenset(chunk_id for source in (*self.changed, *self.removed) for chunk_id in stored[source].chunk_ids)

    def reused_ids(self, stored: Mapping[str, StoredFile]) -> list[str]:
        """Return the ids of the new chunks whose vectors are stored, sorted."""
        return sorted(self.replaced_ids(stored) & self.texts().keys())

    def texts(self) -> dict[str, str]:
        """Return the texts of the new chunks by id."""
        return {str(chunk.metadata["chunk_id"]): chunk.page_content for chunk in self.chunks}

    def report(
        self,
        stored: Mapping[str, StoredFile],
        *,
        ignored: int,
    ) -> IndexReport:
        """Return the report of the update, once the plan is carried out on ``stored``."""
        before = sum(len(file.chunk_ids) for file in stored.values())
        return IndexReport(
            added=tuple(self.added),
            changed=tuple(self.changed),
            removed=tuple(self.removed),
            unchanged=self.unchanged,
            skipped=tuple(sorted(self.skipped)),
            ignored=ignored,
            encodings=dict(sorted(self.encodings.items())),
            left_out=dict(sorted(self.left_out.items())),
            chunks=before - len(self.replaced_ids(stored)) + len(self.chunks),
        )


@dataclass(frozen=True, kw_only=True)
class NamedScan:
    """Files that were found, under their names in a collection, with what the collection holds."""

    scan: FileScan
    folders: Mapping[str, str]
    """Folders to save with the collection, by the prefix of their sources."""
    stored: Mapping[str, StoredFile]
    """Files of the collection by source."""
    collection: tuple[CollectionInfo, Embedders] | None
    """The collection as it was opened; None for a new one."""


def read_changes(
    scan: FileScan,
    stored: Mapping[str, StoredFile],
    sizes: ChunkSizes,
    on_progress: StageProgress,
    limits: LoadLimits,
) -> UpdatePlan:
    """Read and cut the files whose bytes or chunk sizes differ from what is stored.

    Raises:
        SettingsError: The sizes do not fit each other.
    """
    plan = UpdatePlan(skipped=list(scan.skipped))
    _log_skipped(scan.skipped)
    with ParserProcess(limits) as parser:
        for done, file in enumerate(scan.files, start=1):
            try:
                data = file.read(max_bytes=limits.file_bytes)
                _plan_file(plan, file, data, stored.get(file.source), sizes, parser)
            except (LoadingError, OSError) as error:
                plan.skipped.append(_skipped_file(file, error))
            on_progress(done, len(scan.files), "load")
    return plan


def plan_removal(collection: str, stored: Mapping[str, StoredFile], sources: Collection[str]) -> UpdatePlan:
    """Plan to remove files by source.

    Raises:
        LoadingError: The collection does not hold one of them.
    """
    if unknown := sorted(set(sources) - stored.keys()):
        examples = ", ".join(sorted(stored)[:5]) or "none"
        raise LoadingError(
            f"The collection {collection!r} holds nothing of {', '.join(unknown)}. "
            f"Its files are called like this: {examples}."
        )
    return UpdatePlan(removed=sorted(set(sources)), unchanged=len(stored) - len(set(sources)))


def name_sources(
    found: Sequence[FileScan],
    info: CollectionInfo | None,
    stored: Mapping[str, StoredFile],
    *,
    root: Path | None,
    prefix: str | None,
    max_bytes: int,
) -> tuple[FileScan, Mapping[str, str]]:
    """Return all files under their names in the collection, and the folders to save with it.

    Args:
        found: Scans of folders.
        info: Description of the collection; None for a new one.
        stored: Files of the collection by source.
        root: The index's own folder, which is named before all others.
        prefix: Prefix of the sources in ``root``; None to find it.
        max_bytes: Size of the largest file that is compared with the stored one.
    """

    def is_same(file: SourceFile) -> bool:
        known = stored.get(file.source)
        if known is None or info is None:
            return False
        try:
            data = file.read(max_bytes=max_bytes)
        except (LoadingError, OSError):
            return False
        return known.digest == _digest(data, ChunkSizes(size=info.chunk_size, overlap=info.chunk_overlap))

    names = SourceNames(folders=dict(info.folders) if info else {}, stored=stored, is_same=is_same)
    if root is not None and found[0].folder != root:
        names.name(FileScan(folder=root), prefix=prefix)
    named = [names.name(one, prefix=prefix if one.folder == root else None) for one in found]
    return merged(named), names.folders


def none_readable(skipped: Sequence[SkippedFile]) -> str:
    """Return the message for an update in which no file could be read, with the first reasons."""
    reasons = "; ".join(f"{file.source}: {file.reason}" for file in skipped[:_REASONS_SHOWN])
    more = f"; and {rest} more" if (rest := len(skipped) - _REASONS_SHOWN) > 0 else ""
    return f"None of the {len(skipped)} files could be read. {reasons}{more}."


def to_row(chunk: Document, vectors: Mapping[str, Vector], form: SearchForm = "written") -> Row:
    """Return a chunk as a row; metadata with the name of a field gets a trailing underscore."""
    texts = {TEXT_FIELD: chunk.page_content}
    if form == "folded":
        texts[SEARCH_FIELD] = _words(chunk.page_content)
    fields = {PK_FIELD, SPARSE_FIELD, DYNAMIC_FIELDS, *texts, *vectors}
    metadata = {f"{key}_" if key in fields else key: value for key, value in chunk.metadata.items()}
    return {**metadata, PK_FIELD: metadata.pop("chunk_id"), **texts, **vectors}


def _words(text: str) -> str:
    """Return what BM25 counts of a text, as far as a field holds it: some characters become many."""
    words = words_of_text(text)
    if len(words) * 4 <= MAX_TEXT_BYTES:
        return words
    return words.encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")


def _plan_file(
    plan: UpdatePlan, file: SourceFile, data: bytes, known: StoredFile | None, sizes: ChunkSizes, parser: ParserProcess
) -> None:
    digest = _digest(data, sizes)
    if known is not None and known.digest == digest:
        plan.unchanged += 1
        return
    data, encoding = _as_utf_8(file, data)
    parsed = parser.parse(file.path.suffix.lower(), data)
    chunks = split_documents(to_documents(file, parsed), chunk_size=sizes.size, chunk_overlap=sizes.overlap)
    for chunk in chunks:
        chunk.metadata |= {FILE_DIGEST: file_digest(digest, len(chunks)), SOURCE: file.source}
    plan.chunks.extend(chunks)
    (plan.added if known is None else plan.changed).append(file.source)
    if encoding != UTF_8 or parsed.read_as:
        plan.encodings[file.source] = parsed.read_as or encoding
    if parsed.left_out:
        plan.left_out[file.source] = parsed.left_out


def _as_utf_8(file: SourceFile, data: bytes) -> tuple[bytes, str]:
    """Return a text file's bytes in UTF-8 and its encoding; other files, which know their own, as they are."""
    if file.path.suffix.lower() not in UTF_8_SUFFIXES:
        return data, UTF_8
    decoded = decode(data)
    return (data, UTF_8) if decoded.encoding == UTF_8 else (decoded.text.encode("utf-8", "replace"), decoded.encoding)


def to_documents(file: SourceFile, parsed: ParsedFile) -> list[Document]:
    """Return the texts of a file as documents, in order, with the file's source and a title."""
    documents: list[Document] = []
    for text, metadata in parsed:
        title = str(metadata.get("title") or "").strip() or file.path.stem
        documents.append(Document(page_content=text, metadata={**metadata, "source": file.source, "title": title}))
    return documents


def _skipped_file(file: SourceFile, error: LoadingError | OSError) -> SkippedFile:
    reason = str(error) if isinstance(error, LoadingError) else f"it cannot be read ({error.strerror or error})"
    skipped = SkippedFile(source=file.source, reason=reason)
    _log_skipped([skipped])
    return skipped


def _log_skipped(files: Iterable[SkippedFile]) -> None:
    for file in files:
        logger.warning("Skipped %s: %s", file.source, file.reason)


def _digest(data: bytes, sizes: ChunkSizes) -> str:
    """Return a digest of the file and of all else that determines its chunks."""
    content = hashlib.sha256(data).hexdigest()
    return text_digest(f"{content} {PARSER_VERSION} {sizes.size} {sizes.overlap}").hex()
