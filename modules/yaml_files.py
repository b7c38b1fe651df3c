"""YAML files of users, such as prompts and experiments, read with care."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import yaml

from .errors import SettingsError
from .trust.owners import remedy_for, why_foreign

_MOST_VALUES = 1_000_000


def read_yaml(file: Path, *, what: str) -> object:
    """Read a YAML file in UTF-8.

    A key that stands twice, of which YAML keeps the last, is refused, and so are aliases that make a small file huge,
    and a file of another user, which may name code and addresses.

    Args:
        file: The file.
        what: What messages call it, such as "experiment".

    Raises:
        SettingsError: The file cannot be read.
    """
    if why := why_foreign(file):
        raise SettingsError(f"The {what} {file} is not read: {why}. Copy it, or: {remedy_for(file.absolute().parent)}.")
    try:
        return yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except Exception as error:  # PyYAML raises ValueError, KeyError and others for values such as 2020-13-45
        raise SettingsError(f"The {what} {file} cannot be read: {error}. Give a YAML file.") from error


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


# "off" and "on" are words, as in YAML 1.2: "cache: off" means what it says.
_Loader.yaml_implicit_resolvers = {
    first: resolvers for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items() if first not in ("o", "O")
}


def _values_in(node: yaml.Node, counted: dict[int, int]) -> int:
    """Count the values below a node, those of an alias at each of its places."""
    if id(node) not in counted:
        counted[id(node)] = 1  # while it is counted: it may hold itself
        if isinstance(node, yaml.CollectionNode):
            pairs = node.value if isinstance(node, yaml.MappingNode) else ((each,) for each in node.value)
            counted[id(node)] += sum(_values_in(each, counted) for pair in pairs for each in pair)
    return counted[id(node)]
