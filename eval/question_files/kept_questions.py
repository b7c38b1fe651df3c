"""Questions given in Python, kept as a file that a run reads like any other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from ...modules.errors import SettingsError, reason_of
from ...modules.storage.atomic import write_atomic
from .file_rows import USUAL_NAMES


def keep_questions(questions: object, folder: Path) -> Path:
    """Write a DataFrame, a Series, or a list of questions or of mappings, as a questions file; returns the file.

    Its name has the digest of its content, so that other questions do not replace it.

    Raises:
        SettingsError: The questions are something else, there is none, or a value is none that JSON can hold.
        WritingError: They could not be written.
    """
    rows = records_of(questions)
    if isinstance(rows, Sequence) and not rows:
        raise SettingsError("questions is empty. Give at least one question.")
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise SettingsError(
            f"questions={questions!r:.200} is not usable. Give a file, a DataFrame, or a list of questions or mappings."
        )
    try:
        objects = ({"question": row} if isinstance(row, str) else row for row in rows)
        lines = [json.dumps(each, ensure_ascii=False, default=_plain) + "\n" for each in objects]
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"questions cannot be written as JSON: {reason_of(error)}. Give texts, numbers and lists."
        ) from error
    content = "".join(lines).encode("utf-8", "backslashreplace")
    file = folder / f"questions-{hashlib.sha256(content).hexdigest()[:12]}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(file, content)
    return file


def with_questions_kept(keys: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Return the keys of an experiment with a file for its ``questions``, where these are no file themselves.

    Raises:
        SettingsError: They cannot be kept (see ``keep_questions``), or are given an encoding.
    """
    questions = keys.get("questions")
    if isinstance(questions, str | Path | None):
        return {**keys}
    if (encoding := keys.get("encoding")) is not None:
        raise SettingsError(f"encoding={encoding!r:.60} is not allowed: the questions are no file. Leave it out.")
    return {**keys, "questions": keep_questions(questions, folder)}


def records_of(questions: object) -> object:
    """Return the rows of what pandas made, or ``questions`` itself.

    An index whose values differ, other than a count, becomes a column of its name, and the ids of rows without any.

    Raises:
        SettingsError: Two columns have the same name.
    """
    if not hasattr(questions, "to_dict"):
        return questions
    index = getattr(questions, "index", None)
    keys = _row_names(index)
    if not hasattr(questions, "columns"):
        if not hasattr(questions, "tolist"):
            return questions
        rows = questions.tolist()
        return [*map(_named_text, keys, rows)] if keys else rows
    if not questions.columns.is_unique:
        repeated = questions.columns[questions.columns.duplicated()][0]
        raise SettingsError(f"questions has two columns {repeated!r}. Rename one of them.")
    records = _with_short_floats(questions).to_dict("records")
    if not keys:
        return records
    names = _names_of(getattr(index, "name", None), {str(name).strip().casefold() for name in questions.columns})
    return [{**dict.fromkeys(names, key), **record} for key, record in zip(keys, records, strict=True)]


def _with_short_floats(frame: Any) -> Any:
    """Return a frame whose floats of 32 bits and less are those that print alike: 0.1, not 0.10000000149011612."""
    kinds = {place: str(kind).lower() for place, kind in enumerate(frame.dtypes)}
    short = [place for place, kind in kinds.items() if kind in ("float16", "float32")]
    if not short:
        return frame
    frame = frame.copy()
    for place in short:
        texts = frame.iloc[:, place].astype("string").astype(object)
        frame.isetitem(place, texts.map(float, na_action="ignore").astype(object))
    return frame


def _row_names(index: object) -> list[object]:
    """Return the values of an index that names rows; an empty list for another."""
    is_named = type(index).__name__ not in ("RangeIndex", "MultiIndex") and getattr(index, "is_unique", False)
    return list(index.tolist()) if is_named and hasattr(index, "tolist") else []


def _named_text(key: object, row: object) -> object:
    return {USUAL_NAMES["id"][0]: key, USUAL_NAMES["question"][0]: row} if isinstance(row, str) else row


def _names_of(name: object, known: Collection[str]) -> list[str]:
    """Return the columns that an index becomes: one of its name, and one of ids where that name is not usual."""
    own = "" if name is None else str(name)
    names = [own] if own and own.strip().casefold() not in known else []
    is_usual = any(own.strip().casefold() in usual for usual in USUAL_NAMES.values())
    has_ids = is_usual or any(usual in known for usual in USUAL_NAMES["id"])
    return names if has_ids else [*names, USUAL_NAMES["id"][0]]


def _plain(value: object) -> object:
    """Convert what numpy and pandas put into frames; dates are written as in a CSV file, without a midnight."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    if isinstance(value, date):
        return str(value)
    if hasattr(value, "tolist"):
        return _as_printed(value).tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _as_printed(value: Any) -> Any:
    """Return a value of numpy as what prints alike in Python: short floats, and dates that would become numbers."""
    kind = getattr(value, "dtype", None)
    if kind is None:
        return value
    if kind.kind in ("M", "m"):
        return value.astype(f"{kind.kind}8[us]")
    return value.astype(str).astype(float) if kind.kind == "f" and kind.itemsize < 8 else value
