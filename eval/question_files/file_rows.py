"""From a file of questions to its rows: encoding, separator and columns, before any cell is understood."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast

from ...modules.errors import LoadingError, SettingsError, needs_extra, reason_of
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.parser_process import ParserProcess
from ...modules.index.row_parsers import table_parser
from ...modules.reading.delimited_text import separator_of
from ...modules.reading.regular_files import read_named
from ...modules.reading.spreadsheet_cells import of_cell
from ...modules.reading.text_encoding import UTF_8, decode

Column = Literal["id", "question", "answer", "supporting", "type", "lang", "cluster"]

USUAL_NAMES: Mapping[Column, tuple[str, ...]] = {
    "id": ("id", "_id", "qid", "question_id", "query_id"),
    "question": ("question", "query", "user_input", "input", "prompt", "问题"),
    "answer": (
        *("answer", "answers", "gold", "gold_answer", "golden_answers", "ground_truth", "ground_truths"),
        *("reference", "references", "expected", "expected_answer", "target", "答案"),
    ),
    "supporting": (
        *("supporting", "supporting_documents", "gold_documents", "documents", "document"),
        *("sources", "source", "files", "file"),
    ),
    "type": ("type", "kind", "category"),
    "lang": ("lang", "language"),
    "cluster": ("cluster", "cluster_id"),
}
"""The names that a column may have, in any case; the first of them that a row has is taken."""

WORKBOOKS = (".xlsx", ".xlsm")
_LINES = (".jsonl", ".ndjson")
_SHAPES = {
    ".csv": "CSV",
    ".tsv": "TSV",
    **dict.fromkeys(WORKBOOKS, "a workbook"),
    **dict.fromkeys(_LINES, "JSON Lines"),
}
_FOREIGN = {
    ".gz": "is packed: unpack it, as with gunzip",
    ".zip": "is packed: unpack it",
    ".xls": "is a workbook of an old kind. Save it as .xlsx",
    ".ods": "is a workbook of LibreOffice. Save it as .xlsx",
    ".parquet": "is a Parquet file. Save it as CSV, or give what pandas.read_parquet returns as questions",
}
"""Files that people have for tables and that are not read, with what to do."""
_LIMITS = LoadLimits()
_ADVICE = "Give a UTF-8 file, a workbook that Excel or LibreOffice opens, or several smaller files."
_NO_ENCODINGS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"})
"""Codecs of Python that are no encodings of files, or that take quadratic time."""


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """One row of a file."""

    number: int
    """From 1, as a spreadsheet or an editor shows it."""
    cells: Sequence[tuple[str, object]]
    """(name of the column, cell) in the order of the file."""
    fault: str = ""
    """Why it is no row; ``""`` if it is one."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """By name of a column, why its cell has no text."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """By name of a column, what is doubtful of the text of its cell."""
    merged: Mapping[str, int] = field(default_factory=dict)
    """By name of a column, the row above with whose cell its cell is merged."""
    doubt: str = ""
    """What is doubtful of the row itself."""
    is_hidden: bool = False
    """Whether a workbook does not show it."""


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """What a file of questions holds."""

    rows: Iterator[FileRow]
    """The rows that are not blank; can be read once."""
    shape: str
    """"CSV", "TSV", "a workbook", "JSON" or "JSON Lines"."""
    is_table: bool
    """Whether cells are texts, of which one may hold several."""
    header: tuple[str, ...] = ()
    """Names of the columns of a table."""
    separator: str = ""
    """What separates the cells of a text table; ``""`` for other files."""
    encoding: str = ""
    """Encoding of a text; ``""`` for a workbook."""
    is_guess: bool = False
    """Whether neither the file nor the caller says its encoding, which is not UTF-8."""
    sheet: str = ""
    """Name of the sheet of a workbook that is read: the first visible one."""
    other_sheets: tuple[str, ...] = ()
    hidden_columns: tuple[str, ...] = ()
    """Names of the columns that the sheet does not show."""
    struck: int = 0
    """Texts of a workbook with struck-through parts, which are left out."""


def read_rows(
    path: Path,
    *,
    names: Collection[str],
    question_names: Collection[str],
    id_names: Sequence[str],
    encoding: str | None,
) -> FileRows:
    """Read the rows of a file.

    Args:
        path: The file, up to 200 MB.
        names: Names that its columns may have, case-folded; they tell the separator.
        question_names: Those of them that the column of questions may have.
        id_names: Those of them that the column of ids may have; the first names the index that pandas writes into JSON.
        encoding: Encoding of a text; None finds it.

    Raises:
        SettingsError: There is no such encoding, or a workbook is given one.
        LoadingError: The file cannot be read; the message names it.
        MissingExtraError: The file is a workbook, and the extra ``eval`` is not installed.
    """
    suffix = path.suffix.lower()
    if foreign := _FOREIGN.get(suffix):
        raise LoadingError(f"{path} {foreign}.")
    if encoding is not None:
        check_encoding(encoding)
    data = read_named(path, what="questions of", advice="Name a file of questions.", max_bytes=_LIMITS.file_bytes)
    shape = _SHAPES.get(suffix, "JSON")
    if suffix in WORKBOOKS:
        return _workbook(path, data, shape, encoding)
    text, found = _decoded(path, data, encoding)
    is_guess = encoding is None and not found.startswith("utf-")
    if shape not in ("CSV", "TSV"):
        parser = "lines" if suffix in _LINES else "objects"
        head = "" if parser == "lines" else json.dumps([sorted(question_names), [*id_names]]) + "\n"
        rows = (_object_row(*each) for each in _parsed(path, parser, (head + text).encode("utf-8", "replace"), shape))
        return FileRows(rows=rows, shape=shape, is_table=False, encoding=found, is_guess=is_guess)
    separator = separator_of(text, names, usual="\t" if shape == "TSV" else ",")
    parsed = _parsed(path, table_parser(separator), text.encode("utf-8", "replace"), shape)
    header, below = _with_header(parsed, is_text=True)
    return FileRows(
        rows=below,
        shape=shape,
        is_table=True,
        header=header,
        separator=separator,
        encoding=found,
        is_guess=is_guess,
    )


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding of texts.

    Raises:
        SettingsError: Python has no such encoding.
    """
    fault: Exception | None = None
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # LookupError: a codec of bytes, such as zip
    except (LookupError, ValueError) as error:
        name, fault = "", error
    if not name or name.replace("-", "_") in _NO_ENCODINGS:
        raise SettingsError(
            f"encoding={encoding!r:.60} is not an encoding. Allowed are those of Python, such as utf-8, utf-16, "
            "cp1252, cp1251, gb18030 and shift_jis; or leave it out."
        ) from fault
    return name


def _decoded(path: Path, data: bytes, encoding: str | None) -> tuple[str, str]:
    """Return the text of a file and its encoding."""
    try:
        if encoding is not None:
            return data.decode(encoding).removeprefix("\ufeff"), check_encoding(encoding)
        found = decode(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LoadingError(
            f"Cannot read {path}: it is not {encoding} text (byte {error.start}, about line {line}). Give its encoding "
            "(--encoding), or leave that out to have it found."
        ) from error
    except LoadingError as error:
        raise LoadingError(
            f"Cannot read {path}: {reason_of(error)}. {_ADVICE} Or name its encoding: --encoding."
        ) from error
    if found.encoding.startswith(f"{UTF_8} ("):
        line = found.text.partition("\ufffd")[0].count("\n") + 1
        raise LoadingError(
            f"Cannot read {path}: it is UTF-8 text with broken places, the first in line {line}. Mend them, or name "
            "its encoding: --encoding."
        )
    return found.text.removeprefix("\ufeff"), found.encoding


def _workbook(path: Path, data: bytes, shape: str, encoding: str | None) -> FileRows:
    if encoding is not None:
        raise SettingsError(f"encoding={encoding!r} is not allowed: {path} is a workbook, which says its own.")
    with needs_extra("eval"):
        if find_spec("openpyxl") is None:
            raise ModuleNotFoundError(name="openpyxl")
    parsed = _parsed(path, "workbook", data, shape)
    found, _ = next(parsed)
    sheet, others = str(found["sheet"]), tuple(cast("list[str]", found["others"]))
    header, rows = _with_header(parsed, is_text=False)
    if others and not header:
        raise LoadingError(
            f"Cannot read {path} as {shape}: its sheet {sheet!r} is empty, and {', '.join(map(repr, others)):.300} is "
            "not read. Move the sheet of the questions to the front."
        )
    hidden = tuple(header[place] for place in cast("list[int]", found["hidden"]) if place < len(header))
    return FileRows(
        rows=rows,
        shape=shape,
        is_table=True,
        header=header,
        sheet=sheet,
        other_sheets=others,
        hidden_columns=hidden,
        struck=int(cast(int, found["struck"])),
    )


Parsed = tuple[Mapping[str, object], object]
"""The metadata of a row, and the row."""


def _parsed(path: Path, parser: str, data: bytes, shape: str) -> Iterator[Parsed]:
    """Yield the rows of a file, parsed within the limits of documents, large files in a process."""
    try:
        with ParserProcess(_LIMITS) as process:
            parsed = process.parse(parser, data)
    except LoadingError as error:
        known = path.suffix.lower() == ".json" or path.suffix.lower() in _SHAPES
        guessed = "" if known else f"; its ending {path.suffix!r:.20} is none of {', '.join([*_SHAPES, '.json'])}"
        raise LoadingError(f"Cannot read {path} as {shape}: {reason_of(error)}{guessed}. {_ADVICE}") from error
    return ((metadata, json.loads(row)) for row, metadata in parsed)


def _object_row(metadata: Mapping[str, object], row: object) -> FileRow:
    number, fault = cast("int", metadata["row"]), str(metadata.get("fault", ""))
    if not fault and not isinstance(row, Mapping):
        lines = (
            ". Write its objects one a line, or name a file of one list .json"
            if isinstance(row, list) and row and isinstance(row[0], Mapping)
            else ""
        )
        fault = f"it is not an object with keys such as question and answer, but {row!r:.60}{lines}"
    return FileRow(number=number, cells=() if fault else [*cast("Mapping[str, object]", row).items()], fault=fault)


def _with_header(parsed: Iterator[Parsed], *, is_text: bool) -> tuple[tuple[str, ...], Iterator[FileRow]]:
    """Return the names of the columns, which stand in the first row that is not blank, and the rows below."""
    _, first = next(parsed, ({}, []))
    header = tuple(name.strip() for name in cast("list[str]", first))
    return header, (_table_row(header, meta, cast("list[str]", cells), is_text=is_text) for meta, cells in parsed)


def _table_row(
    header: Sequence[str], metadata: Mapping[str, object], cells: Sequence[str], *, is_text: bool
) -> FileRow:
    number = cast("int", metadata["row"])
    if any(map(str.strip, cells[len(header) :])):
        fault = (
            f"it has {len(cells)} cells, and the first row names {len(header)} columns. Put a text that holds the "
            "separator between quotes"
        )
        return FileRow(number=number, cells=(), fault=fault)
    texts = [*map(of_cell, cells[: len(header)]), *[""] * (len(header) - len(cells))]
    faults, doubts = (_by_name(header, metadata.get(name)) for name in ("faults", "doubts"))
    doubt = ""
    if is_text and len(cells) != len(header):
        count, quoted = ("more", "separator") if len(cells) > len(header) else ("fewer", "line break")
        doubt = f"rows have {count} cells than the first: a text with a {quoted} stands between quotes"
    return FileRow(
        number=number,
        cells=[*zip(header, texts, strict=True)],
        faults={name: str(fault) for name, fault in faults.items()},
        doubts={name: str(each) for name, each in doubts.items()},
        merged={name: cast("int", row) for name, row in _by_name(header, metadata.get("merged")).items()},
        doubt=doubt,
        is_hidden=bool(metadata.get("is_hidden")),
    )


def _by_name(header: Sequence[str], remarks: object) -> Mapping[str, object]:
    found = remarks if isinstance(remarks, Mapping) else {}
    return {header[int(place)]: each for place, each in found.items() if int(place) < len(header)}


def repeated_names(names: Sequence[str]) -> frozenset[str]:
    """Return the names that columns share, case-folded."""
    return frozenset(name for name, count in Counter(map(str.casefold, names)).items() if count > 1)
