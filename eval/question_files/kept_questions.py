"""Questions given in Python, kept as a file that a run reads like any other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from ...modules.errors import SettingsError
from ...modules.storage.atomic import write_atomic


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
        raise SettingsError(f"questions cannot be written as JSON: {error}. Give texts, numbers and lists.") from error
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

    Raises:
        SettingsError: Two columns have the same name.
    """
    if not hasattr(questions, "to_dict"):
        return questions
    if not hasattr(questions, "columns"):
        return questions.tolist() if hasattr(questions, "tolist") else questions
    if not questions.columns.is_unique:
        repeated = questions.columns[questions.columns.duplicated()][0]
        raise SettingsError(f"questions has two columns {repeated!r}. Rename one of them.")
    return questions.to_dict("records")


def _plain(value: object) -> object:
    """Convert what numpy and pandas put into frames; dates are written as in a CSV file."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, date):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}")
