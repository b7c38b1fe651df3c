"""What an update of the index has to do: files that changed since the last time, and the chunks they give."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.documents import Document

from .chunking import CHUNK_OVERLAP, CHUNK_SIZE, split_documents
from .collection_content import DYNAMIC_FIELDS, FILE_DIGEST, SOURCE, Progress, Row, StoredFile
from .collection_schema import PK_FIELD, SPARSE_FIELD, TEXT_FIELD
from .dense_fields import Vector
from .errors import LoadingError
from .loading import LOADER_VERSION, FileScan, SkippedFile, SourceFile, load_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ChunkSizes:
    """How documents are cut; see ``split_documents``."""

    size: int = CHUNK_SIZE
    overlap: int = CHUNK_OVERLAP


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """What one update of the index did. Files are named by source, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    """Files that cost nothing."""
    skipped: tuple[SkippedFile, ...] = ()
    """Broken or empty files; what the collection held of them before stays."""
    ignored: int = 0
    """Files of types that were not wanted."""
    embedded: int = 0
    """Chunks that were embedded; the other new ones had their vectors already."""
    chunks: int = 0
    """Chunks that the collection holds now."""


@dataclass(kw_only=True)
class UpdatePlan:
    """Filled file by file."""

    chunks: list[Document] = field(default_factory=list)
    """Of added and changed files; with ``chunk_id`` and ``file_digest``."""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    unchanged: int = 0

    def replaced_ids(self, stored: Mapping[str, StoredFile]) -> frozenset[str]:
        """Ids of the stored chunks of changed and removed files."""
        return frozenset(chunk_id for source in (*self.changed, *self.removed) for chunk_id in stored[source].chunk_ids)

    def report(self, stored: Mapping[str, StoredFile], *, ignored: int, embedded: int) -> IndexReport:
        """What has been done once the plan is carried out on what was ``stored``."""
        before = sum(len(file.chunk_ids) for file in stored.values())
        return IndexReport(
            added=tuple(self.added),
            changed=tuple(self.changed),
            removed=tuple(self.removed),
            unchanged=self.unchanged,
            skipped=tuple(self.skipped),
            ignored=ignored,
            embedded=embedded,
            chunks=before - len(self.replaced_ids(stored)) + len(self.chunks),
        )


def read_changes(
    scan: FileScan, stored: Mapping[str, StoredFile], sizes: ChunkSizes, on_progress: Progress
) -> UpdatePlan:
    """Read and cut the files whose bytes, or the way they are cut, differ from what is stored.

    Raises:
        SettingsError: The sizes do not fit each other.
    """
    plan = UpdatePlan()
    for done, file in enumerate(scan.files, start=1):
        try:
            _plan_file(plan, file, stored.get(file.source), sizes)
        except (LoadingError, OSError) as error:
            logger.warning("Skipped %s: %s", file.source, error)
            plan.skipped.append(SkippedFile(source=file.source, reason=str(error)))
        on_progress(done, len(scan.files), "load")
    return plan


def to_row(chunk: Document, vectors: Mapping[str, Vector]) -> Row:
    """A chunk as Milvus takes it. Metadata that is called like a field gets a trailing underscore."""
    fields = {PK_FIELD, TEXT_FIELD, SPARSE_FIELD, DYNAMIC_FIELDS, *vectors}
    metadata = {f"{key}_" if key in fields else key: value for key, value in chunk.metadata.items()}
    return {**metadata, PK_FIELD: metadata.pop("chunk_id"), TEXT_FIELD: chunk.page_content, **vectors}


def _plan_file(plan: UpdatePlan, file: SourceFile, known: StoredFile | None, sizes: ChunkSizes) -> None:
    digest = _digest(file, sizes)
    if known is not None and known.digest == digest:
        plan.unchanged += 1
        return
    chunks = split_documents(load_file(file), chunk_size=sizes.size, chunk_overlap=sizes.overlap)
    for chunk in chunks:
        chunk.metadata |= {FILE_DIGEST: digest, SOURCE: file.source}
    plan.chunks.extend(chunks)
    (plan.added if known is None else plan.changed).append(file.source)


def _digest(file: SourceFile, sizes: ChunkSizes) -> str:
    """Of the file and of everything else that its chunks depend on."""
    return hashlib.sha256(f"{file.digest()} {LOADER_VERSION} {sizes.size} {sizes.overlap}".encode()).hexdigest()
