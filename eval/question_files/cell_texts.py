"""What a cell of a question file may be, and the texts that it holds; whatever else it is, is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...modules.errors import reason_of
from ...modules.index.parsers.parsed import clean_text
from ...modules.reading.python_values import python_value

LISTED = "|"
"""What stands between several answers in a cell of a table, unless another separator is given."""
NOT_LISTED = "none"
"""In place of a separator: a cell of a table is one text."""
MISSING_WORDS = frozenset({"nan", "none", "null", "n/a", "na", "<na>", "nat", "#n/a"})
"""Texts, in lower case, that programs write for a missing value; a gold answer may mean them."""

_FORMS = (
    'Allowed are a text, a number, true or false, a list of these, {"value": …, "aliases": […]}, {"text": […], '
    '"answer_start": […]}, and a list of {"text": …} or {"answer": …}'
)
_DOCUMENT_FORMS = (
    'Allowed are a text, {"source": …}, a list of these, and in it lists of those of which any one will do'
)
NAME_ANOTHER = "Write the texts into a column of their own and name it"
"""How messages end on a cell that is no text, for which another column may be named, or none."""
_BESIDE: Mapping[str, frozenset[str]] = {
    "value": frozenset(
        {"normalized_value", "normalized_aliases", "matched_wiki_entity_name", "type"}
        | {"normalized_matched_wiki_entity_name", "human_answers"}
    ),
    "text": frozenset({"answer_start", "answer_end", "start", "end", "answer_id", "id"}),
    "answer": frozenset({"answer_start", "answer_id", "id", "provenance", "meta"}),
}
"""Keys of an object that holds an answer, and those beside them that say nothing else about it."""
_FACTS: Mapping[str, frozenset[str]] = {"source": frozenset({"quote", "question", "answer", "remaining_question"})}
"""The key of a supporting fact that names its document, as in ``standards_qa.jsonl``, and those beside it."""
_ALIASES = "aliases"
_STARTS = re.compile(r"[\[{(]|array\(")
_LIKE_A_LIST = re.compile(r"""[\[{]|\(\s*['"]|\w+\([\[{]""")
_BROKEN = re.compile(r"""(?:[\[{]\s*+)++['"]|array\(\[""")
_OF_NUMBERS = re.compile(r"[\[{(][-+0-9.][-+0-9.eE,\s]*+[\])}]")
_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class CellTexts:
    """The texts of a cell."""

    texts: tuple[str, ...] = ()
    """Without surrounding white space; none of them empty."""
    is_unanswerable: bool = False
    """Whether the cell says that there is no answer, as SQuAD does by empty lists."""
    is_split: bool = False
    """Whether they stood in one text, with a separator between them."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Texts of which any one will do, as lists in a list of documents say; the first of each is one of ``texts``."""


def one_text(cell: object) -> str:
    """Return the text of a cell that holds one; ``""`` for a missing one.

    Raises:
        ValueError: It is a list or an object.
    """
    return _scalar(cell)


def question_text(cell: object) -> str:
    """Return the question in a cell.

    Raises:
        ValueError: There is none, or the cell is a list or an object, or a text that prints one.
    """
    text = _scalar(cell)
    try:
        is_list = bool(_STARTS.match(text)) and _printed(text) is not None
    except ValueError:  # a question may begin with a list
        is_list = False
    if is_list:
        raise ValueError(f"its question {_shown(text)} is a list or an object. Write it as a text")
    if text.casefold() in MISSING_WORDS:
        raise ValueError(f"its question is {text!r}, a missing value. Write one, or leave the row out")
    if not text:
        raise ValueError("its question is empty")
    return text


def cell_texts(cell: object, separator: str, *, names_documents: bool = False) -> CellTexts:
    """Return the texts of a cell that may hold several.

    Args:
        cell: What a table or a JSON file holds; texts that print a list or an object, as pandas writes them, are those.
        separator: What stands between several texts in one, a backslash before it keeps it; ``""`` for nothing. Items
            of a list are never split.
        names_documents: Whether an object with a ``source`` is that document, as the supporting facts of
            ``standards_qa.jsonl`` are, and a list in a list names documents of which any one will do.

    Raises:
        ValueError: The cell is something else; the message says what, and what is allowed.
    """
    if not isinstance(cell, str):
        return _texts_of(cell, names_documents=names_documents)
    text = cell.strip()
    printed = _printed(text) if _STARTS.match(text) else None
    if printed is not None:
        return _texts_of(printed, names_documents=names_documents)
    if not separator or separator not in text:
        return CellTexts(texts=_filled(text))
    if not text.replace(separator, "").strip():
        raise ValueError(
            f"{_shown(text)} holds only {separator!r}, which parts texts. Leave the cell empty for none, or write "
            f"\\{separator} for the text"
        )
    parts = text.replace("\x00", "").replace(f"\\{separator}", "\x00").split(separator)
    texts = tuple(each for part in parts for each in _filled(part.replace("\x00", separator)))
    return CellTexts(texts=texts, is_split=len(parts) > 1)


def is_missing(cell: object) -> bool:
    """Return whether a cell holds nothing, so that another column may say it."""
    inner = cell.values() if isinstance(cell, Mapping) else cell if isinstance(cell, list | tuple) else (cell,)
    return all(map(_is_blank, inner))


def _is_blank(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == [] or (isinstance(value, float) and math.isnan(value))


def looks_like_a_list(text: str) -> bool:
    """Return whether a text begins as a printed list, mapping or object does."""
    return _LIKE_A_LIST.match(text) is not None


def _texts_of(value: object, *, names_documents: bool) -> CellTexts:
    if isinstance(value, Mapping):
        return _texts_of_object(value, names_documents=names_documents)
    if not isinstance(value, list | tuple):
        return CellTexts(texts=_filled(_scalar(value, names_documents=names_documents)))
    objects = [item for item in value if isinstance(item, Mapping)]
    are_documents = names_documents and all(not _FACTS.keys().isdisjoint(item) for item in objects)
    if objects and len(objects) < len(value) and not are_documents:
        raise ValueError(f"{_shown(value)} mixes objects and texts. {_advice(names_documents=names_documents)}")
    groups: list[list[str]] = []
    for item in value:
        if names_documents and isinstance(item, list | tuple):
            groups.append([text for part in item for text in _texts_of_item(part, names_documents=True)])
            if not groups[-1]:
                raise ValueError(
                    f"{_shown(value)} has an empty list in its list. Name documents in it, or leave it out"
                )
        else:
            groups += [[text] for text in _texts_of_item(item, names_documents=names_documents)]
    return CellTexts(
        texts=tuple(group[0] for group in groups),
        alternatives=tuple(tuple(dict.fromkeys(group)) for group in groups if len(set(group)) > 1),
    )


def _texts_of_item(item: object, *, names_documents: bool) -> tuple[str, ...]:
    if isinstance(item, Mapping):
        return _texts_of_object(item, names_documents=names_documents).texts
    return _filled(_scalar(item, names_documents=names_documents))


def _texts_of_object(value: Mapping[object, object], *, names_documents: bool) -> CellTexts:
    forms = _FACTS if names_documents and not _FACTS.keys().isdisjoint(value) else _BESIDE
    golds = [key for key in forms if key in value]
    others = [key for key in value if not golds or key not in {golds[0], _ALIASES, *forms[golds[0]]}]
    if len(golds) != 1 or others:
        keys = ", ".join(map(str, value)) or "none"
        advice = _advice(names_documents=names_documents)
        raise ValueError(f"{_shown(value)} is an object with the keys {keys:.100}. {advice}")
    gold = value[golds[0]]
    listed = [*(gold if isinstance(gold, list) else [gold])]
    aliases = value.get(_ALIASES)
    listed += aliases if isinstance(aliases, list) else [aliases]
    texts = tuple(text for item in listed for text in _filled(_scalar(item, names_documents=names_documents)))
    return CellTexts(texts=texts, is_unanswerable=golds[0] == "text" and gold == [] and not texts)


def _scalar(value: object, *, names_documents: bool = False) -> str:
    """Write a value as a spreadsheet shows it: whole numbers without a point, missing ones empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return clean_text(value).strip()
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError("an infinite number is no text")
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, int):  # and bool
        return str(value)
    kind = (
        "list" if isinstance(value, list | tuple) else "object" if isinstance(value, Mapping) else type(value).__name__
    )
    raise ValueError(
        f"{_shown(value)} is a{'n' * (kind[0] in 'aeiou')} {kind} where a text is allowed. "
        f"{_advice(names_documents=names_documents)}"
    )


def _advice(*, names_documents: bool) -> str:
    return f"{_DOCUMENT_FORMS if names_documents else _FORMS}. {NAME_ANOTHER}"


def _filled(text: str) -> tuple[str, ...]:
    stripped = clean_text(text).strip()
    return (stripped,) if stripped else ()


def _printed(text: str) -> object:
    """Return the list or object that a text prints, as JSON or as Python and numpy do; None if it is a text.

    A list of numbers alone is a text: it may be an interval, a range or a date; and so is what stands in parentheses
    and holds no text, such as (3) or (None).

    Raises:
        ValueError: It begins as a list of texts, and does not end as one.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = python_value(text)
        except ValueError as error:
            if _BROKEN.match(text):
                raise ValueError(
                    f"{_shown(text)} begins like a list, but {reason_of(error)}. Mend it, or write the text itself as "
                    "a JSON list of one text"
                ) from error
            return None
    if not isinstance(value, list | dict) or _OF_NUMBERS.fullmatch(text):
        return None
    return None if text.startswith("(") and not any(isinstance(item, str) for item in value) else value


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
