"""Rows of a JSON text: a list of objects, JSON Lines, or one object by columns or rows, as pandas writes it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from ..errors import LoadingError

JsonRow = tuple[int, object, str]
"""Number of a row, from 1; the row; and why it is none, or ""."""

_SHOWN = 8


def json_rows(text: str, names: Collection[str], id_names: Sequence[str]) -> Iterator[JsonRow]:
    """Yield the rows of a JSON text, or of JSON Lines if it is no single value.

    One object is read by columns (``{"question": ["Who?"]}``, ``{"question": {"0": "Who?"}}``), by rows
    (``{"0": {"question": "Who?"}}``), as pandas' ``split`` and ``table``, or as a row itself. Names of its rows, unless
    they count from 0, become a key ``id_names[0]`` of rows that have no id.

    Args:
        text: The text.
        names: Names that the column of questions may have, case-folded.
        id_names: Names that the column of ids may have, case-folded.

    Raises:
        LoadingError: It is no JSON, or an object of another shape; the message is only the reason.
    """
    if not text.strip():
        return
    try:
        content = json.loads(text, object_pairs_hook=_unrepeated)
    except json.JSONDecodeError as error:
        if not text.lstrip().startswith("{"):
            raise LoadingError(f"it is not JSON ({error})") from error
        yield from json_line_rows(text)
        return
    except RecursionError as error:
        raise LoadingError("it is nested too deep to be read") from error
    except ValueError as error:  # a number of too many digits, or a repeated key
        raise LoadingError(f"it is not JSON that can be read ({error})") from error
    rows = (
        content
        if isinstance(content, list)
        else _rows_of(content, names, id_names)
        if isinstance(content, dict)
        else [content]
    )
    for number, row in enumerate(rows, start=1):
        yield number, row, ""


def json_line_rows(text: str) -> Iterator[JsonRow]:
    """Yield the rows of JSON Lines; blank lines count, but are left out."""
    decoder = json.JSONDecoder(object_pairs_hook=_unrepeated)
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would split texts at U+2028
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line), ""
        except RecursionError:
            yield number, None, "it is nested too deep"
        except ValueError as error:
            yield number, None, f"it is not JSON ({error}). Each object stands whole in a line of its own"


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1) if len(keys) < 1000 else "of an object"
        raise ValueError(f"the key {repeated!r:.80} stands twice in one object")
    return found


def _rows_of(content: Mapping[str, object], names: Collection[str], id_names: Sequence[str]) -> Sequence[object]:
    """Return the rows that one object holds."""
    asked = next((key for key in content if key.strip().casefold() in names), None)
    if asked is not None:
        is_row = not isinstance(content[asked], list | dict)
        return [content] if is_row else _by_columns(content, id_names)
    data = content.get("data")
    if isinstance(data, list) and isinstance(named := content.get("columns"), list):
        return _with_ids(_split(named, data), content.get("index"), id_names)
    if isinstance(data, list) and isinstance(schema := content.get("schema"), dict):
        return _with_ids(data, _key_of(schema.get("primaryKey"), data), id_names)
    inner = [*content.values()]
    if inner and all(isinstance(each, dict) and any(key.casefold() in names for key in each) for each in inner):
        return _with_ids(inner, [*content], id_names)
    listed = [key for key, value in content.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    holds = f", such as the list that {listed[0]!r:.80} holds" if listed else ""
    keys = ", ".join(map(repr, [*content][:_SHOWN])) + (", …" if len(content) > _SHOWN else "")
    raise LoadingError(
        f"it is one object with the keys {keys:.300}, none of which is the question. Give a list of objects with keys "
        f"such as question and answer{holds}, or name the key: --columns question=KEY"
    )


def _by_columns(content: Mapping[str, object], id_names: Sequence[str]) -> Sequence[object]:
    columns = [*content.values()]
    if all(isinstance(column, dict) for column in columns):
        places = [[*cast("Mapping[str, object]", column)] for column in columns]
        if any(set(each) != set(places[0]) for each in places):
            raise _unequal(content, "do not have the same rows")
        rows: list[object] = [
            {name: cast("Mapping[str, object]", column)[place] for name, column in content.items()}
            for place in places[0]
        ]
        return _with_ids(rows, places[0], id_names)
    if all(isinstance(column, list) for column in columns):
        lists = cast("list[list[object]]", columns)
        if len({len(column) for column in lists}) > 1:
            raise _unequal(content, f"have {', '.join(str(len(column)) for column in lists[:_SHOWN])} rows")
        return [dict(zip(content, row, strict=True)) for row in zip(*lists, strict=True)]
    raise _unequal(content, "are neither all lists nor all objects")


def _key_of(key: object, rows: Sequence[object]) -> list[object]:
    """Return the values of the one column that a table of pandas has as its index; an empty list without one."""
    name = key[0] if isinstance(key, list) and len(key) == 1 else None
    return [row[name] for row in rows if isinstance(row, dict) and isinstance(name, str) and name in row]


def _with_ids(rows: Sequence[object], keys: object, id_names: Sequence[str]) -> Sequence[object]:
    """Return rows with their names as ids, unless these count from 0, repeat, or the rows have ids."""
    if not isinstance(keys, list) or len(keys) != len(rows) or not id_names:
        return rows
    named = [*map(str, keys)]
    if named == [*map(str, range(len(rows)))] or len(set(named)) < len(rows):
        return rows
    found = zip(keys, cast("Sequence[Mapping[str, object]]", rows), strict=True)
    return [
        row if any(name.strip().casefold() in id_names for name in row) else {id_names[0]: key, **row}
        for key, row in found
    ]


def _unequal(content: Mapping[str, object], reason: str) -> LoadingError:
    named = ", ".join(map(repr, [*content][:_SHOWN]))
    return LoadingError(
        f"it is one object by columns, and these {reason} ({named:.300}). Give a list of objects, which pandas writes "
        "with orient='records'"
    )


def _split(names: list[object], data: list[object]) -> list[object]:
    for number, row in enumerate(data, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            raise LoadingError(f"row {number} of its data does not have the {len(names)} cells of its columns")
    if not all(isinstance(name, str) for name in names) or len(set(map(str, names))) < len(names):
        raise LoadingError(f"its columns {names!r:.200} are not names that differ")
    return [dict(zip(map(str, names), cast("list[object]", row), strict=True)) for row in data]
