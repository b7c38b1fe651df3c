"""Parsers from the bytes of a file to texts: a page of a PDF, a row of a CSV, a JSON object or a whole text each.

The module opens no files and does not import LangChain, so that a worker process starts fast. A new file type is one
function and one line in ``PARSERS``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..errors import LoadingError
from ..reading.delimited_text import fitting_separator, table_rows
from .parsers.html import parse_html
from .parsers.markdown import parse_markdown
from .parsers.parsed import (
    LeftOut,
    Metadata,
    Parsed,
    ParsedFile,
    Piece,
    ReadAs,
    clean_text,
    format_left_out,
    read_lines,
    titled,
)
from .parsers.pdf.document import parse_pdf
from .parsers.word.document import parse_docx
from .row_parsers import ROW_PARSERS

PARSER_VERSION = 7
"""Part of file digests: raise it when a parser's texts change, so that files are read again."""

RESERVED_METADATA = frozenset(
    {"pk", "id", "distance", "text", "source", "page", "row", "start_index", "chunk_id", "file_digest"}
    | {"retrieval_score", "rank", "verdict", "score", "score_confidence", "reason", "next_query"}
    | {"recursion_depth", "next_rag_thread_id", "sub_answer", "sub_run_error", "budget_spent"}
    | {"shown_place", "round_answer", "also_in", "also_keys", "tool"}
    | {"p_needed", "p_calibrated", "skipped", "round", "priority", "tries"}
    | {"block_belongs", "key_passage", "block_reason", "block_problem"}
    | {"shared_thread_id", "shared_sub_runs", "shared_llm_calls"}
    | {"linked_from", "linked_by", "link_hop", "link_state"}
)
"""Names of judgetree's own metadata; those in JSON files get a trailing underscore."""

MAX_METADATA_BYTES = 32_768
"""Most bytes of metadata as JSON. Every chunk has a copy, and a Milvus server accepts 65,536 bytes."""
MAX_METADATA_DEPTH = 20
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, kw_only=True)
class LoadLimits:
    """Limits on reading one file; a file that exceeds them is skipped and reported."""

    file_bytes: int = 200_000_000
    """Most bytes of the file, and of its text."""
    documents: int = 1_000_000
    """Most pages, rows or objects."""
    seconds: float = 60.0
    """Most seconds for a PDF, Word or HTML file, or a large JSON or CSV file."""
    memory_bytes: int = 1 << 30
    """Address space of the process that parses these; Windows has no such limit, and macOS may ignore it."""


def parse_file(suffix: str, data: bytes, limits: LoadLimits) -> ParsedFile:
    """Return the texts of a file: at least one, all storable; rows where ``suffix`` is a name of those.

    Args:
        suffix: A key of ``PARSERS``, or of ``ROW_PARSERS``, which may find no row.
        data: The bytes of the file.
        limits: Limits of text and number of texts.

    Raises:
        LoadingError: The file is broken, has no text, or exceeds the limits; the message is only the reason.
    """
    if not data and suffix not in ROW_PARSERS:
        raise LoadingError("it holds no text: the file is empty")
    try:
        parse = ROW_PARSERS.get(suffix) or PARSERS[suffix]
        left_out: Counter[str] = Counter()
        read_as: list[str] = []
        found = list(_within(limits, _texts(parse(data), left_out, read_as)))
    except LoadingError:
        raise
    except UnicodeDecodeError as error:
        raise LoadingError("it is not UTF-8 text; save it as UTF-8") from error
    except RecursionError as error:
        raise LoadingError("it is nested too deep to be read") from error
    except MemoryError as error:
        raise LoadingError(f"reading it takes more than {limits.memory_bytes >> 20} MB of memory") from error
    except Exception as error:  # parsers of broken files raise errors of any type, such as struct.error
        raise LoadingError(f"it cannot be read ({type(error).__name__}: {_first_line(str(error))})") from error
    if not found and suffix not in ROW_PARSERS:
        reason = f"it holds no text, but {format_left_out(left_out)}" if left_out else "it holds no text"
        raise LoadingError(reason)
    return ParsedFile(texts=found, left_out=dict(left_out), read_as="".join(read_as))


def _texts(pieces: Iterable[Piece], left_out: Counter[str], read_as: list[str]) -> Iterator[Parsed]:
    for piece in pieces:
        if isinstance(piece, LeftOut):
            left_out[piece.kind] += piece.count
        elif isinstance(piece, ReadAs):
            read_as.append(piece.encoding)
        else:
            yield piece


def _within(limits: LoadLimits, texts: Iterable[Parsed]) -> Iterator[Parsed]:
    size = 0
    for number, (text, metadata) in enumerate(texts, start=1):
        size += len(text)
        if size > limits.file_bytes:
            raise LoadingError(f"it holds more than {limits.file_bytes / 1e6:g} MB of text")
        if number > limits.documents:
            raise LoadingError(f"it holds more than {limits.documents} pages, rows or objects; split it")
        if (cleaned := clean_text(text)).strip():
            yield cleaned, metadata


def _first_line(text: str) -> str:
    return clean_text(" ".join(text.split()))[:200]


def _parse_text(data: bytes) -> Iterable[Parsed]:
    yield read_lines(data), {}


def _parse_csv(data: bytes) -> Iterable[Parsed]:
    content = data.decode("utf-8-sig")
    rows = (row for _, row in table_rows(content, fitting_separator(content)))
    header = next((row for row in rows if any(map(str.strip, row))), [])
    for number, row in enumerate(rows, start=1):
        if any(map(str.strip, row[len(header) :])):
            raise LoadingError(
                f"row {number} has {len(row)} fields, the header {len(header)}; commas, semicolons, tabs or | may "
                "separate them, and a text that holds the separator stands between quotes"
            )
        text = "\n".join(f"{name}: {value}" for name, value in zip(header, row, strict=False) if value.strip())
        yield text, {"row": number}


def _parse_json(data: bytes) -> Iterable[Parsed]:
    content = json.loads(read_lines(data))
    for number, item in enumerate(content if isinstance(content, list) else [content], start=1):
        yield _json_document(item, f"object {number}")


def _parse_jsonl(data: bytes) -> Iterable[Parsed]:
    for number, line in enumerate(read_lines(data).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise LoadingError(f"line {number} is not JSON ({_first_line(str(error))})") from error
        yield _json_document(item, f"line {number}")


def _json_document(item: object, place: str) -> Parsed:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise LoadingError(f'{place} is not an object with a "text" string')
    nested = item["metadata"] if isinstance(item.get("metadata"), dict) else {}
    found = {**{key: value for key, value in item.items() if key not in ("text", "metadata")}, **nested}
    metadata: Metadata = {}
    for key, value in found.items():
        name = clean_text(key)
        metadata[f"{name}_" if name in RESERVED_METADATA else name] = _storable(value, f"{place}: {name[:40]!r}")
    if isinstance(title := metadata.get("title"), str):
        metadata |= titled(title)
    if metadata and (size := len(json.dumps(metadata))) > MAX_METADATA_BYTES:
        raise LoadingError(f"{place} has {size} bytes of metadata; allowed are {MAX_METADATA_BYTES}")
    return item["text"], metadata


def _storable(value: object, place: str, depth: int = 1) -> object:
    """Return the value as Milvus and PostgreSQL accept it; refuse deep nesting and integers of more than 64 bits."""
    if depth > MAX_METADATA_DEPTH:
        raise LoadingError(f"{place} is nested more than {MAX_METADATA_DEPTH} deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): _storable(inner, place, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner, place, depth + 1) for inner in value]
    if isinstance(value, int) and value not in _INT64:
        raise LoadingError(f"{place} holds an integer of {value.bit_length()} bits; allowed are 64, so quote it")
    return value


PARSERS: Mapping[str, Callable[[bytes], Iterable[Piece]]] = {
    ".pdf": parse_pdf,
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".txt": _parse_text,
    ".html": parse_html,
    ".htm": parse_html,
    ".docx": parse_docx,
    ".csv": _parse_csv,
    ".json": _parse_json,
    ".jsonl": _parse_jsonl,
}
"""Parsers by suffix, in lower case with its dot."""
UTF_8_SUFFIXES = frozenset({".md", ".markdown", ".txt", ".csv", ".json", ".jsonl"})
"""Suffixes of files whose parsers take UTF-8; those of other files find the encoding."""
