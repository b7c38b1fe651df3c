"""Files to documents: one page of a PDF, one row of a CSV, one JSON object or one whole text is one document.

Every document carries ``source`` (POSIX path relative to the index root) and ``title``; a page of a PDF also carries
``page`` (from 1), a row of a CSV ``row`` (from 1). A new file type is one function and one line in ``LOADERS``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document

from .errors import LoadingError

logger = logging.getLogger(__name__)

LOADER_VERSION = 1
"""Goes into file digests: raise it when a loader gives another text, and files are read again."""

RESERVED_METADATA = frozenset(
    {"pk", "id", "distance", "text", "source", "page", "row", "start_index", "chunk_id", "file_digest"}
    | {"retrieval_score", "rank", "verdict", "score", "score_confidence", "reason", "next_query"}
    | {"recursion_depth", "next_rag_thread_id", "sub_answer", "sub_run_error"}
)
"""Names with a meaning of their own; metadata found in a JSON file under one of them gets a trailing underscore."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file to index, and what it is called in the index."""

    path: Path
    source: str
    """POSIX path relative to the index root."""

    def digest(self) -> str:
        """SHA-256 of the file's bytes, in hexadecimal.

        Raises:
            OSError: The file cannot be read.
        """
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True)
class FileScan:
    """What stands under a path, before anything is read."""

    files: tuple[SourceFile, ...]
    """Wanted files, sorted by source."""
    ignored: int
    """Files of other types."""


@dataclass(frozen=True, kw_only=True)
class SkippedFile:
    """A file that was wanted but gave no text."""

    source: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What came of loading a path."""

    documents: tuple[Document, ...]
    skipped: tuple[SkippedFile, ...]
    ignored: int


def load_documents(
    path: Path | str, *, file_type_wanted: Sequence[str] | None = None, root: Path | str | None = None
) -> LoadReport:
    """Read a file, or a folder with its subfolders; a broken or empty file is skipped and named in the report.

    Args:
        path: File or folder.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for every type in ``LOADERS``.
        root: What sources are relative to; see ``scan_files``.

    Raises:
        LoadingError: The path does not exist, or a wanted type is unknown.
    """
    scan = scan_files(path, file_type_wanted=file_type_wanted, root=root)
    documents: list[Document] = []
    skipped: list[SkippedFile] = []
    for file in scan.files:
        try:
            documents.extend(load_file(file))
        except LoadingError as error:
            logger.warning("Skipped %s: %s", file.source, error)
            skipped.append(SkippedFile(source=file.source, reason=str(error)))
    return LoadReport(documents=tuple(documents), skipped=tuple(skipped), ignored=scan.ignored)


def scan_files(
    path: Path | str, *, file_type_wanted: Sequence[str] | None = None, root: Path | str | None = None
) -> FileScan:
    """Find the wanted files under ``path`` without reading them. Hidden files and folders are passed over uncounted.

    Sources are relative to ``root`` where the file lies below it; a file from elsewhere is named from its given
    folder on (``other/notes.md`` for the folder ``/somewhere/other``). Without a root it is the given folder itself.

    Raises:
        LoadingError: The path does not exist, or a wanted type is unknown.
    """
    start = Path(path).expanduser().resolve()
    if not start.exists():
        raise LoadingError(f"There is no file or folder {path}. Name an existing one.")
    suffixes = _wanted_suffixes(file_type_wanted)
    paths = [start] if start.is_file() else list(_walk(start))
    wanted = [candidate for candidate in paths if candidate.suffix.lower() in suffixes]
    ignored = len(paths) - len(wanted)
    if ignored:
        logger.info("Ignored %d files under %s that are not %s.", ignored, path, ", ".join(sorted(suffixes)))
    folder = start.parent if start.is_file() else start
    base = Path(root).expanduser().resolve() if root is not None else folder
    files = (SourceFile(path=file, source=_source_of(file, base, folder)) for file in wanted)
    return FileScan(files=tuple(sorted(files, key=lambda file: file.source)), ignored=ignored)


def load_file(file: SourceFile) -> list[Document]:
    """Read one file; at least one document comes back, in the order of the file, none without text.

    Raises:
        LoadingError: The file is broken or holds no text; the message is the reason alone.
    """
    loader = LOADERS[file.path.suffix.lower()]
    try:
        documents = [_finished(document, file) for document in loader(file.path)]
    except LoadingError:
        raise
    except UnicodeDecodeError as error:
        raise LoadingError("it is not UTF-8 text; save it as UTF-8") from error
    except Exception as error:  # parsers of broken files raise anything, struct.error and AttributeError included
        raise LoadingError(f"it cannot be read ({type(error).__name__}: {error})") from error
    documents = [document for document in documents if document.page_content.strip()]
    if not documents:
        raise LoadingError("it holds no text" + (" (scanned pages?)" if file.path.suffix.lower() == ".pdf" else ""))
    return documents


def clean_text(text: str) -> str:
    """Text without NUL characters (PostgreSQL refuses them) and with lone surrogates (no UTF-8) replaced by U+FFFD."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _wanted_suffixes(file_type_wanted: Sequence[str] | None) -> frozenset[str]:
    if file_type_wanted is None:
        return frozenset(LOADERS)
    names = [file_type_wanted] if isinstance(file_type_wanted, str) else file_type_wanted
    suffixes = frozenset("." + name.lower().lstrip("*").lstrip(".") for name in names)
    unknown = sorted(suffixes - LOADERS.keys())
    if unknown or not suffixes:
        raise LoadingError(
            f"file_type_wanted={list(names)} cannot be loaded ({', '.join(unknown) or 'no type given'}). "
            f"Allowed: {', '.join(sorted(suffix[1:] for suffix in LOADERS))}."
        )
    return suffixes


def _walk(folder: Path) -> Iterator[Path]:
    for here, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith("."))


def _source_of(file: Path, base: Path, folder: Path) -> str:
    if file.is_relative_to(base):
        return file.relative_to(base).as_posix()
    return (Path(folder.name) / file.relative_to(folder)).as_posix()


def _finished(document: Document, file: SourceFile) -> Document:
    metadata = {key: clean_text(value) if isinstance(value, str) else value for key, value in document.metadata.items()}
    metadata["source"] = file.source
    metadata["title"] = str(metadata.get("title") or "").strip() or file.path.stem
    return Document(page_content=clean_text(document.page_content), metadata=metadata)


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    # UTF-16 is what Windows tools save as "Unicode"; only its byte order mark gives it away.
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding).replace("\r\n", "\n")


def _load_text(path: Path) -> Iterable[Document]:
    yield Document(page_content=_read_text(path))


def _load_markdown(path: Path) -> Iterable[Document]:
    text = _read_text(path)
    heading = re.search(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", text, re.MULTILINE)
    yield Document(page_content=text, metadata={"title": heading.group(1) if heading else ""})


def _load_pdf(path: Path) -> Iterable[Document]:
    from pypdf import PdfReader  # noqa: PLC0415 - keeps the package importable in a moment

    with PdfReader(path) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            raise LoadingError("it is protected by a password")
        for number, page in enumerate(reader.pages, start=1):
            yield Document(page_content=page.extract_text(), metadata={"page": number})


HTML_BLOCKS = "address article aside blockquote dd div dl dt h1 h2 h3 h4 h5 h6 hr li main ol p pre section table tr ul"


def _load_html(path: Path) -> Iterable[Document]:
    from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning  # noqa: PLC0415 - as above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)  # XHTML is read well enough
        page = BeautifulSoup(path.read_bytes(), "html.parser")
    title = page.title or page.find(re.compile("^h[1-6]$"))
    heading = title.get_text(" ", strip=True) if title else ""
    for hidden in page(["script", "style", "noscript", "template", "title"]):
        hidden.decompose()
    # Only blocks break lines: <b> inside a sentence must not.
    for tag in page(["br", *HTML_BLOCKS.split()]):
        tag.insert_before("\n")
        tag.append("\n")
    for cell in page(["td", "th"]):
        cell.append(" ")
    lines = (re.sub(r"\s+", " ", line).strip() for line in page.get_text().split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    yield Document(page_content=text, metadata={"title": heading})


def _load_docx(path: Path) -> Iterable[Document]:
    import docx  # noqa: PLC0415 - as above
    from docx.table import Table  # noqa: PLC0415

    title, blocks = "", []
    for block in docx.Document(str(path)).iter_inner_content():
        if isinstance(block, Table):
            blocks.append("\n".join(" | ".join(cell.text for cell in row.cells) for row in block.rows))
            continue
        # Looking a style up reads all of them, so only until the title is found.
        if not title and block.style is not None and (block.style.name or "").startswith(("Title", "Heading")):
            title = block.text
        blocks.append(block.text)
    yield Document(page_content="\n\n".join(block for block in blocks if block.strip()), metadata={"title": title})


def _load_csv(path: Path) -> Iterable[Document]:
    rows = csv.reader(_read_text(path).splitlines(keepends=True), strict=True)
    header = next(rows, [])
    for number, row in enumerate(rows, start=1):
        if len(row) > len(header):
            raise LoadingError(f"row {number} has {len(row)} fields, the header {len(header)}")
        text = "\n".join(f"{name}: {value}" for name, value in zip(header, row, strict=False) if value.strip())
        yield Document(page_content=text, metadata={"row": number})


def _load_json(path: Path) -> Iterable[Document]:
    content = json.loads(_read_text(path))
    for number, item in enumerate(content if isinstance(content, list) else [content], start=1):
        yield _json_document(item, f"object {number}")


def _load_jsonl(path: Path) -> Iterable[Document]:
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise LoadingError(f"line {number} is not JSON ({error})") from error
        yield _json_document(item, f"line {number}")


def _json_document(item: object, place: str) -> Document:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise LoadingError(f'{place} is not an object with a "text" string')
    nested = item.get("metadata")
    found = {**{key: value for key, value in item.items() if key not in ("text", "metadata")}, **_mapping(nested)}
    metadata = {f"{key}_" if key in RESERVED_METADATA else key: value for key, value in found.items()}
    return Document(page_content=item["text"], metadata=metadata)


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


LOADERS: Mapping[str, Callable[[Path], Iterable[Document]]] = {
    ".pdf": _load_pdf,
    ".md": _load_markdown,
    ".markdown": _load_markdown,
    ".txt": _load_text,
    ".html": _load_html,
    ".htm": _load_html,
    ".docx": _load_docx,
    ".csv": _load_csv,
    ".json": _load_json,
    ".jsonl": _load_jsonl,
}
"""Suffix (lower case, with its dot) to the function that reads such a file."""
