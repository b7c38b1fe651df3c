"""Loading of files as documents: a page of a PDF, a row of a CSV, a JSON object or a whole text each.

Every document has ``source`` (POSIX path relative to the folder) and ``title``, a page of a PDF also ``page`` (from 1),
and a row of a CSV ``row`` (from 1).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document

from ..errors import LoadingError
from .file_parsers import LoadLimits, Parsed
from .folder_scan import SkippedFile, SourceFile, scan_files
from .parser_process import ParserProcess

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """The result of loading a path."""

    documents: tuple[Document, ...]
    skipped: tuple[SkippedFile, ...]
    ignored: int


def load_documents(
    path: Path | str,
    *,
    file_type_wanted: Sequence[str] | None = None,
    follow_links: bool = False,
    limits: LoadLimits | None = None,
) -> LoadReport:
    """Read a file or a folder with its subfolders; unreadable files are skipped and reported.

    Args:
        path: File or folder.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for every type in ``PARSERS``.
        follow_links: Also follow links that leave the folder.
        limits: Limits on reading one file.

    Raises:
        LoadingError: The path does not exist, or a wanted type is unknown.
    """
    limits = limits or LoadLimits()
    scan = scan_files(path, file_type_wanted=file_type_wanted, follow_links=follow_links)
    documents: list[Document] = []
    skipped = list(scan.skipped)
    log_skipped(scan.skipped)
    with ParserProcess(limits) as parser:
        for file in scan.files:
            try:
                documents.extend(to_documents(file, file.read(max_bytes=limits.file_bytes), parser))
            except (LoadingError, OSError) as error:
                skipped.append(skipped_file(file, error))
    return LoadReport(
        documents=tuple(documents), skipped=tuple(sorted(skipped, key=lambda file: file.source)), ignored=scan.ignored
    )


def to_documents(file: SourceFile, data: bytes, parser: ParserProcess) -> list[Document]:
    """Return the documents of a file's bytes, in order: at least one, none without text.

    Raises:
        LoadingError: The file is broken or has no text; the message is only the reason.
    """
    return [_finished(parsed, file) for parsed in parser.parse(file.path.suffix.lower(), data)]


def skipped_file(file: SourceFile, error: LoadingError | OSError) -> SkippedFile:
    """Return the record of an unreadable file, after logging it."""
    reason = str(error) if isinstance(error, LoadingError) else f"it cannot be read ({error.strerror or error})"
    skipped = SkippedFile(source=file.source, reason=reason)
    log_skipped([skipped])
    return skipped


def log_skipped(files: Iterable[SkippedFile]) -> None:
    """Log one warning a file."""
    for file in files:
        logger.warning("Skipped %s: %s", file.source, file.reason)


def _finished(parsed: Parsed, file: SourceFile) -> Document:
    text, metadata = parsed
    title = str(metadata.get("title") or "").strip() or file.path.stem
    return Document(page_content=text, metadata={**metadata, "source": file.source, "title": title})
