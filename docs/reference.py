"""Writes what is generated of the pages in ``reference/``: ``python docs/reference.py``.

A page is written by hand but for what stands between its two marks. The body comes from the code: settings, keys,
columns, commands, prompts and public names.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Literal, get_args, get_origin

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from python_page import python_names
from typer.core import TyperCommand, TyperGroup

from judgetree.app.cli import all_commands
from judgetree.app.commands.config import keys_of
from judgetree.evaluation import Experiment
from judgetree.evaluation.metrics.dictionary import all_columns
from judgetree.modules.addresses import Address
from judgetree.modules.prompts.table import USED_BY
from judgetree.modules.prompts.writing import to_yaml
from judgetree.modules.settings import HOME_NAME, Settings

FOLDER = Path(__file__).parent / "reference"
BEGIN = "<!-- begin: python docs/reference.py writes this part -->\n"
END = "<!-- end -->\n"
TYPE_NAMES = {
    Address: "address",
    SecretStr: "secret",
    dict: "JSON object",
    int: "integer",
    float: "number",
    str: "text",
}
Command = TyperCommand | TyperGroup
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def _in_cell(text: str) -> str:
    """Text for a cell of a Markdown table, on one line and without bars."""
    return " ".join(text.split()).replace("|", "\\|")


def _cell(text: str) -> str:
    return _in_cell(text).replace("<", "&lt;").replace("*", "\\*")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)) + "\n"


def _link(name: str, heading: str) -> str:
    return f"[`{name}`](#{heading.replace(' ', '-')})"


# --- settings ---


def _type_of(field: FieldInfo) -> str:
    arguments = [one for one in get_args(field.annotation) if one is not NoneType]
    if len(arguments) == 1 and get_origin(arguments[0]) is Literal:  # a choice that may be left open
        arguments = list(get_args(arguments[0]))
    if arguments and all(isinstance(one, str) for one in arguments):
        return ", ".join(f"`{one}`" for one in arguments)
    annotation, metadata = field.annotation, list(field.metadata)
    if NoneType in get_args(annotation):
        annotation = get_args(arguments[0])[0] if get_args(arguments[0]) else arguments[0]
        metadata += [bound for extra in get_args(arguments[0])[1:] for bound in extra.metadata]
    name = TYPE_NAMES.get(getattr(annotation, "__origin__", annotation), getattr(annotation, "__name__", ""))
    bounds = [f"{sign} {getattr(one, key):g}" for one in metadata for key, sign in BOUNDS.items() if hasattr(one, key)]
    return " ".join([name, ", ".join(bounds)]).strip()


def _default_of(name: str, field: FieldInfo) -> str:
    if name == "home":
        return f"the nearest `{HOME_NAME}`"
    default = field.get_default(call_default_factory=True)
    empty = default is None or isinstance(default, SecretStr) or default in ("", {})
    return "" if empty else f"`{default}`"


def settings_table() -> str:
    """Every field of ``Settings`` as a Markdown table, in the order of the class."""
    rows = (
        (f"`JUDGETREE_{name.upper()}`", _type_of(field), _default_of(name, field), _cell(field.description or ""))
        for name, field in Settings.model_fields.items()
    )
    return _table(("variable", "type", "default", "description"), rows)


# --- keys ---


def keys_table() -> str:
    """The keys of questions and runs with default, scope and meaning, group by group, as Markdown."""
    parts = []
    for group, keys in itertools.groupby(keys_of(Experiment), key=lambda key: key.group):
        rows = (
            (f"`{key.name}`", _cell(key.default), "yes" if key.per_question else "", _cell(key.meaning)) for key in keys
        )
        parts.append(f"## {group}\n\n{_table(('key', 'default', 'by question', 'meaning'), rows)}")
    return "\n".join(parts)


# --- columns ---


def columns_table() -> str:
    """The columns of results.csv and of reports, as a Markdown table."""
    rows = (
        (f"`{name}`", column.unit, column.better, _cell(column.meaning), _cell(column.source))
        for name, column in all_columns().items()
    )
    return _table(("column", "unit", "better", "meaning", "source"), rows)


# --- commands ---


def _parameter_rows(words: str, command: Command) -> Iterator[tuple[str, str]]:
    context = typer.Context(command, info_name=words)
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            yield f"`{_in_cell(record[0])}`", _cell(record[1])


def _command_parts(words: str, command: Command, level: int) -> Iterator[str]:
    yield f"{'#' * level} {words}\n\n{_cell(inspect.cleandoc(command.help or ''))}\n"
    if rows := list(_parameter_rows(words, command)):
        yield _table(("argument or option", "meaning"), iter(rows))
    inner: Mapping[str, Command] = getattr(command, "commands", {})
    if inner:
        yield " · ".join(_link(name, f"{words} {name}") for name in inner) + "\n"
    for name, each in inner.items():
        yield from _command_parts(f"{words} {name}", each, level + 1)


def command_sections() -> str:
    """Every command with its arguments and options, below the command or group that it belongs to, as Markdown."""
    every: Mapping[str, Command] = all_commands().commands
    parts = [" · ".join(_link(name, f"judgetree {name}") for name in every) + "\n"]
    parts.append(
        "## Before every command\n\n" + _table(("option", "meaning"), _parameter_rows("judgetree", all_commands()))
    )
    for name, command in every.items():
        parts += _command_parts(f"judgetree {name}", command, 2)
    return "\n".join(parts)


# --- prompts ---


def prompt_sections() -> str:
    """Every prompt with its placeholders and texts, by what uses it first, as Markdown."""
    parts = []
    for user, prompts in USED_BY.items():
        # "Used by": a heading "Judge" would take the anchor of the prompt ``judge``.
        parts.append(f"## Used by: {user}\n\n{' · '.join(_link(each.name, each.name) for each in prompts)}\n")
        for prompt in prompts:
            placeholders = ", ".join(f"`{{{word}}}`" for word in prompt.placeholders) or "none"
            text = to_yaml([prompt]).partition("\n\n")[2]
            parts.append(f"### {prompt.name}\n\nPlaceholders: {placeholders}.\n\n```yaml\n{text}```\n")
    return "\n".join(parts)


# --- pages ---

BODIES: Mapping[str, Callable[[], str]] = {
    "columns.md": columns_table,
    "commands.md": command_sections,
    "keys.md": keys_table,
    "prompts.md": prompt_sections,
    "python.md": python_names,
    "settings.md": settings_table,
}
"""What each generated page has between its marks."""


def written(page: Path) -> str:
    """Return a page as it should be: the text of its file, with the body that the code has now.

    Raises:
        ValueError: The file lacks a mark.
    """
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, foot = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} needs two lines, one before its generated part and one after it:\n{BEGIN}{END}")
    return f"{head}{BEGIN}\n{BODIES[page.name]()}\n{END}{foot}"


def main() -> None:
    """Write all pages, and name those that change."""
    for page in (FOLDER / name for name in BODIES):
        text = written(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            sys.stderr.write(f"{page} has changed.\n")


if __name__ == "__main__":
    main()
