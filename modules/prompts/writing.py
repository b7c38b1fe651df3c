"""Prompts as YAML text, and the differences between two sets of prompts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import yaml

from ..calls.prompts import Prompt, Prompts
from ..storage.formats import FORMAT_KEY, format_of
from .table import PROMPTS


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def to_yaml(prompts: Iterable[Prompt]) -> str:
    """Write whole prompts as the text of a file that ``load_prompts`` reads; a comment above each says what it asks."""
    return "\n".join([f"{FORMAT_KEY}: {format_of('prompts')}\n{_HINTS}", *map(_part, prompts)])


_HINTS = """\
# {word} in `user` is a placeholder, {{word}} the text itself. Few-shot examples stand below `examples`, as a list of
# `user` and `assistant`; under `max_prompt_tokens: N` only the first that fit into so many tokens are sent.
# What you delete stays judgetree's.
"""


def _part(prompt: Prompt) -> str:
    texts = {key: value for key, value in prompt.to_document().items() if value != []}
    text = yaml.dump({prompt.name: texts}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)
    return f"# {prompt.about}\n{text}"


def changed_names(one: Prompts, other: Prompts) -> list[str]:
    """Return the names of the prompts that differ, in the order of the table."""
    return [name for name, prompt in PROMPTS.items() if one.get(name, prompt) != other.get(name, prompt)]


def diff_of(one: Prompts, other: Prompts, *, names: tuple[str, str] = ("judgetree", "own")) -> str:
    """Return the unified difference between the prompts in force, as YAML text; ``""`` without one."""
    lines: list[str] = []
    for name in changed_names(one, other):
        before, after = (_part(each.get(name, PROMPTS[name])).splitlines() for each in (one, other))
        lines += difflib.unified_diff(before, after, f"{names[0]}: {name}", f"{names[1]}: {name}", lineterm="")
    return "\n".join(lines)
