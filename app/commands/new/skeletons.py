"""What a package with a part of one's own holds at first: the part, its contract test and its pyproject.toml.

``--help`` imports it, so that it imports what is heavy inside its functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal

SkeletonKind = Literal["judge", "retriever", "metric", "policy", "system", "dataset"]


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """What tells the packages of a kind apart; ``{name}`` and ``{class_name}`` stand for those of the part."""

    part: str
    """Name of the part in its module."""
    checked: str
    """What its test hands to the check of its kind."""
    use: str
    """Command that uses it; ``{part}`` stands for its name on the command line."""
    words: str = ""
    """What it is called in sentences; ``""`` for the kind itself."""


SKELETONS: Mapping[SkeletonKind, Skeleton] = {
    "judge": Skeleton(
        part="{class_name}", checked="{class_name}()", use='judgetree ask "…" -c COLLECTION --judge {part}'
    ),
    "retriever": Skeleton(
        part="{class_name}",
        checked='{class_name}(), query="Which oil does KS-1 need?"',
        use='judgetree ask "…" --retriever {part}',
    ),
    "metric": Skeleton(part="{name}", checked="{name}", use="judgetree eval score RUN --metric {part}"),
    "policy": Skeleton(
        part="{class_name}", checked="{class_name}()", use='judgetree ask "…" -c COLLECTION --policy {part}'
    ),
    "system": Skeleton(part="build", checked="build", use='judgetree ask "…" -c COLLECTION --system {part}'),
    "dataset": Skeleton(
        part="load",
        checked="load",
        use="judgetree eval run --dataset {part} --systems naive,judge --out runs/first",
        words="data set",
    ),
}


def folder_of(name: str) -> str:
    """Return the folder and project name of a part: with hyphens, so that Python takes no folder for its module.

    >>> folder_of("long_chunks")
    'judgetree-long-chunks'
    """
    return f"judgetree-{name.replace('_', '-')}"


def part_name(kind: SkeletonKind, name: str) -> str:
    """Return the name of the part in its module.

    >>> part_name("judge", "long_chunks")
    'LongChunks'
    """
    return SKELETONS[kind].part.format(name=name, class_name=_class_name(name))


def files_of(kind: SkeletonKind, name: str) -> dict[str, str]:
    """Return the texts of the package by file name.

    >>> list(files_of("judge", "long_chunks"))
    ['long_chunks.py', 'test_long_chunks.py', 'pyproject.toml']
    """
    from ....modules.parts import entry_point_group

    words = {
        "name": name,
        "class_name": _class_name(name),
        "kind": SKELETONS[kind].words or kind,
        "part": part_name(kind, name),
        "check": f"check_{kind}",
        "checked": SKELETONS[kind].checked.format(name=name, class_name=_class_name(name)),
        "project": folder_of(name),
        "group": entry_point_group(kind),
    }
    templates = {f"{name}.py": kind, f"test_{name}.py": "test", "pyproject.toml": "pyproject"}
    return {file: _template(template).substitute(words) for file, template in templates.items()}


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _template(name: str) -> Template:
    return Template(Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8"))
