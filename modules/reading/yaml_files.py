"""YAML files of users, such as prompts and experiments, read with care."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import yaml

from ..errors import SettingsError, reason_of
from .regular_files import read_regular

MAX_YAML_BYTES = 4_000_000
"""Most bytes of a YAML file; PyYAML takes a minute for some more."""
_MOST_VALUES = 1_000_000
_ADVICE = "Give a YAML file."
_COLON = "mapping values are not allowed here"
_IN_QUOTES = "A text that has a colon at its end or before a blank stands in quotes, such as 'local:'."
_LONGEST_VALUE = 1_000
"""Characters of a value that is typed."""


def read_yaml(file: Path, *, what: str) -> object:
    """Read a YAML file in UTF-8.

    A key that stands twice, of which YAML keeps the last, is refused, and so are aliases that make a small file huge.

    Args:
        file: The file.
        what: What messages call it, such as "experiment".

    Raises:
        SettingsError: The file cannot be read.
    """
    try:
        return yaml.load(read_regular(file, max_bytes=MAX_YAML_BYTES).decode("utf-8"), _Loader)
    except RecursionError as error:
        raise SettingsError(f"The {what} {file} cannot be read: it is nested too deep. {_ADVICE}") from error
    except yaml.MarkedYAMLError as error:
        raise SettingsError(f"The {what} {file} cannot be read: {_fault(error)}") from error
    except Exception as error:  # PyYAML raises ValueError, KeyError and others, as for !!timestamp 2020-13-45
        raise SettingsError(f"The {what} {file} cannot be read: {reason_of(error)}. {_ADVICE}") from error


def read_mapping(file: Path, *, what: str) -> Mapping[str, object]:
    """Read a YAML file of one ``key: value`` a line, see ``read_yaml``.

    Raises:
        SettingsError: The file cannot be read, or is no mapping.
    """
    content = read_yaml(file, what=what)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise SettingsError(f"The {what} {file} is not a mapping. Write one `key: value` a line.")
    return content


def parse_value(text: str) -> object:
    """Return the value of a short text as a YAML file has it: a number, a list, a mapping or a text.

    >>> parse_value("3"), parse_value("off"), parse_value("010"), parse_value("[a, b]")
    (3, 'off', 10, ['a', 'b'])

    Raises:
        ValueError: It is no YAML, or longer than a line of a file would be.
    """
    if len(text) > _LONGEST_VALUE:
        raise ValueError(f"it has more than {_LONGEST_VALUE:,} characters: write it into a file")
    try:
        return yaml.load(text, _Loader)
    except Exception as error:
        raise ValueError(" ".join(str(error).split())) from error


def _fault(error: yaml.MarkedYAMLError) -> str:
    """Say in one line what is wrong, where, and what to do."""
    mark = error.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    advice = _IN_QUOTES if error.problem == _COLON else _ADVICE
    return f"{where}{error.problem or reason_of(error)}. {advice}"


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _values_in(node, {}) > _MOST_VALUES:
            raise yaml.YAMLError(f"it holds more than {_MOST_VALUES:,} values, with those that its aliases repeat")
        return node

    # The stub takes the anchor for a mapping.
    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:  # type: ignore[override]
        node = super().compose_mapping_node(anchor)  # type: ignore[arg-type]
        names = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if twice := [name for name, count in names.items() if count > 1]:
            raise yaml.composer.ComposerError(None, None, f"the key {twice[0]!r} stands twice", node.start_mark)
        return node


def _whole_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0 if text.lstrip("+-").startswith(("0x", "0o")) else 10)


# Plain texts mean what they do in YAML 1.2: 010 is ten, and yes, on, 12:30 and 2026-11-27 are texts.
_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+(?:_[0-9]+)*|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def _values_in(node: yaml.Node, counted: dict[int, int]) -> int:
    """Count the values below a node, those of an alias at each of its places."""
    if id(node) not in counted:
        counted[id(node)] = 1  # while it is counted: it may hold itself
        if isinstance(node, yaml.CollectionNode):
            pairs = node.value if isinstance(node, yaml.MappingNode) else ((each,) for each in node.value)
            counted[id(node)] += sum(_values_in(each, counted) for pair in pairs for each in pair)
    return counted[id(node)]
