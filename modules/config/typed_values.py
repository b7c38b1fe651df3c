"""Values of keys as people type them: in an option, in ``KEY=VALUE``, in the name of a system with options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args, get_origin

from .config import Config, typed_as

_NAMES = re.compile(r"(?:[^,\s(]|\((?:[^()]++|\([^()]*+\))*+\)|\()++")


def names_in(text: str | None) -> tuple[str, ...] | None:
    """Split a list of names at commas or blanks that stand in no parentheses; None stays None.

    >>> names_in("llm, naive(topk=10; search_type=dense) judge")
    ('llm', 'naive(topk=10; search_type=dense)', 'judge')
    """
    return None if text is None else tuple(_NAMES.findall(text))


def typed_value(text: str, model: type[Config], name: str) -> object:
    """Return the value of a key as YAML has it, and a text as it is typed.

    Raises:
        ValueError: The value is no YAML.
    """
    from ..reading.yaml_files import parse_value

    return text.strip() if _is_as_typed(text.strip(), model, name) else parse_value(text)


def _is_as_typed(text: str, model: type[Config], name: str) -> bool:
    """Whether a value is the text of a key, such as 4.1, local: or a#b, and no list, quoted text or null of YAML."""
    if name not in model.model_fields or text.startswith(("[", "'", '"')) or text in ("", "~", "null"):
        return False
    annotation = model.model_fields[name].annotation
    return typed_as(annotation) is str and not any(get_origin(each) is Mapping for each in get_args(annotation))
