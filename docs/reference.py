"""Directives that write the reference pages from the code: ``settings``, ``commands`` and the public names."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Literal, get_args, get_origin

import typer
from docutils import nodes
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from typer.core import TyperCommand, TyperGroup

import judgetree
from judgetree.app.cli import all_commands
from judgetree.app.commands.config import keys_of
from judgetree.evaluation import Experiment
from judgetree.evaluation.metrics.dictionary import all_columns
from judgetree.modules import errors
from judgetree.modules.addresses import Address
from judgetree.modules.settings import HOME_NAME, Settings

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


def _cell(text: str) -> str:
    """Text for a cell of a Markdown table: on one line, bars and angle brackets without a meaning."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)) + "\n"


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


def _commands(words: str, command: Command) -> Iterator[tuple[str, Command]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(f"{words} {name}", inner)


def _parameter_rows(words: str, command: Command) -> Iterator[tuple[str, str]]:
    context = typer.Context(command, info_name=words)
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            yield f"`{_cell(record[0])}`", _cell(record[1])


def command_sections() -> str:
    """Every command with its arguments and options, as Markdown."""
    parts = []
    for words, command in _commands("judgetree", all_commands()):
        parts.append(f"## {words}\n\n{_cell(inspect.cleandoc(command.help or ''))}\n")
        if rows := list(_parameter_rows(words, command)):
            parts.append(_table(("argument or option", "meaning"), iter(rows)))
    return "\n".join(parts)


# --- public names ---


def autodoc_of(home: str, name: str) -> str:
    """The directive of autodoc for a name of the module ``home``, in reStructuredText."""
    value = getattr(importlib.import_module(home), name)
    path = f"{home}.{name}"
    if inspect.isclass(value):
        return f".. autoclass:: {path}\n   :members:\n   :exclude-members: model_config\n\n"
    if inspect.isfunction(value):
        return f".. autofunction:: {path}\n\n"
    described = f"A mapping of {', '.join(map(repr, value))}." if isinstance(value, Mapping) else f"``{value}``"
    return f".. py:data:: {path}\n\n   {described}\n\n"


def public_names(package: str) -> str:
    """What ``package.__all__`` names, in reStructuredText."""
    names = importlib.import_module(package).__all__
    return "".join(autodoc_of(package, name) for name in sorted(names) if not name.startswith("__"))


def _within_markdown(directives: str) -> str:
    return f"```{{eval-rst}}\n{directives}\n```\n"


class _Markdown(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(self._text(), allow_section_headings=True)

    def _text(self) -> str:
        raise NotImplementedError


class SettingsTable(_Markdown):
    """``{settings}``: the table of all settings."""

    def _text(self) -> str:
        return settings_table()


class KeysTable(_Markdown):
    """``{keys}``: the tables of all keys of a configuration."""

    def _text(self) -> str:
        return keys_table()


class ColumnsTable(_Markdown):
    """``{columns}``: the table of all columns of a run."""

    def _text(self) -> str:
        return columns_table()


class CommandSections(_Markdown):
    """``{commands}``: a section a command."""

    def _text(self) -> str:
        return command_sections()


class PublicNames(_Markdown):
    """``{public-names} PACKAGE``: the docstrings of everything that the package exports."""

    required_arguments = 1

    def _text(self) -> str:
        return _within_markdown(public_names(self.arguments[0]))


class Errors(_Markdown):
    """``{errors}``: the docstrings of the errors that ``judgetree`` does not export itself."""

    def _text(self) -> str:
        home = errors.__name__
        names = [name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == home]
        return _within_markdown("".join(autodoc_of(home, name) for name in names if name not in judgetree.__all__))


class NamedTypes(_Markdown):
    """``{named-types}``: the docstrings of what the content lists, a dotted path a line."""

    has_content = True

    def _text(self) -> str:
        return _within_markdown("".join(autodoc_of(*path.rsplit(".", 1)) for path in self.content))


class Mermaid(SphinxDirective):
    """``mermaid``: the source of a diagram, which GitHub draws."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The source as a literal block."""
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="text")]


def _leave_out_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files outside of ``docs/``, which GitHub follows, become their text."""
    out = re.escape("../" * (name.count("/") + 1))
    source[0] = re.sub(rf"\[([^\]]+)\]\({out}[^)]+\)", r"\1", source[0])


def _resolve_error(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element) -> nodes.Element | None:
    """``Raises: SettingsError`` leads to the class in ``judgetree.modules.errors``."""
    if node.get("reftype") != "exc" or not hasattr(errors, node["reftarget"]):
        return None
    path = f"{errors.__name__}.{node['reftarget']}"
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "exc", path, node, text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives, with all public names imported: autodoc reloads pydantic, which breaks later imports."""
    for package in map(importlib.import_module, ("judgetree", "judgetree.evaluation", "judgetree.testing")):
        for name in package.__all__:
            getattr(package, name)
    app.add_directive("settings", SettingsTable)
    app.add_directive("keys", KeysTable)
    app.add_directive("columns", ColumnsTable)
    app.add_directive("commands", CommandSections)
    app.add_directive("public-names", PublicNames)
    app.add_directive("errors", Errors)
    app.add_directive("named-types", NamedTypes)
    app.add_directive("mermaid", Mermaid)
    app.connect("missing-reference", _resolve_error)
    app.connect("source-read", _leave_out_links)
    return {"parallel_read_safe": True}
