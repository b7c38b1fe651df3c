"""Changes of JSON documents as JSON Patch (RFC 6902): ``add``, ``remove`` and ``replace``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired

from typing_extensions import TypedDict

Json = object
"""What ``json.loads`` returns."""


class PatchOperation(TypedDict):
    """One operation of a JSON Patch."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: NotRequired[Json]


def changes_between(old: Json, new: Json) -> list[PatchOperation]:
    """Return the operations that make ``new`` of ``old``, in the order in which they are applied; none if equal.

    Lists are compared place by place, so that one that grew at its end gives one operation for each new item.

    >>> changes_between({"a": [1, 2]}, {"a": [3, 2, 4]})
    [{'op': 'replace', 'path': '/a/0', 'value': 3}, {'op': 'add', 'path': '/a/2', 'value': 4}]
    """
    return list(_changes(old, new, ""))


def _changes(old: Json, new: Json, path: str) -> Iterator[PatchOperation]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _changes_of_object(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        for place, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from _changes(before, after, f"{path}/{place}")
        for place in reversed(range(len(new), len(old))):
            yield PatchOperation(op="remove", path=f"{path}/{place}")
        for place in range(len(old), len(new)):
            yield PatchOperation(op="add", path=f"{path}/{place}", value=new[place])
    elif type(old) is not type(new) or old != new:  # 1, 1.0 and true are equal in Python
        yield PatchOperation(op="replace", path=path, value=new)


def _changes_of_object(old: dict[str, Json], new: dict[str, Json], path: str) -> Iterator[PatchOperation]:
    for name, before in old.items():
        place = f"{path}/{_escaped(name)}"
        if name in new:
            yield from _changes(before, new[name], place)
        else:
            yield PatchOperation(op="remove", path=place)
    for name, after in new.items():
        if name not in old:
            yield PatchOperation(op="add", path=f"{path}/{_escaped(name)}", value=after)


def _escaped(name: str) -> str:
    """Return a name as a part of a JSON Pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
