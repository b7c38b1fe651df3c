"""The group of all commands: each is built when it is looked up, and their list takes no more than their docstrings."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Command = TyperCommand | TyperGroup


@dataclass(frozen=True, kw_only=True)
class ListedCommand:
    """A command that is known by name and help, until it is built."""

    help: str
    build: Callable[[], Command]


def of_function(function: Callable[..., None]) -> ListedCommand:
    """Return the command of a function with Typer's annotations; its docstring may end in ``Examples:``."""

    def build() -> Command:
        single = typer.Typer(rich_markup_mode="rich", add_completion=False)
        single.command()(function)
        command = typer.main.get_command(single)
        assert isinstance(command, Command)
        return _with_examples(command)

    return ListedCommand(help=inspect.getdoc(function) or "", build=build)


def of_group(load: Callable[[], typer.Typer], *, help: str) -> ListedCommand:
    """Return a group of commands; ``load`` imports it."""

    def build() -> Command:
        group = typer.main.get_group(load())
        group.help = help
        return _with_examples(group)

    return ListedCommand(help=help, build=build)


def _with_examples(command: Command) -> Command:
    """Show the lines below ``Examples:`` in a docstring at the end of ``--help``; its other lines become paragraphs."""
    for inner in getattr(command, "commands", {}).values():
        _with_examples(inner)
    words, heading, examples = (command.help or "").partition("Examples:\n")
    command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in words.strip().split("\n\n"))
    if heading:
        command.epilog = "\n".join([heading.strip(), *(line.strip() for line in examples.splitlines())])
    return command


class _BuiltOnDemand(Mapping[str, Command]):
    """The commands by name, each built when its name is first looked up."""

    def __init__(self, listed: Mapping[str, ListedCommand]) -> None:
        self._listed = listed
        self._built: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._built:
            self._built[name] = self._listed[name].build()
            self._built[name].name = name
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def command_line(app: typer.Typer, panels: Mapping[str, Mapping[str, ListedCommand]]) -> TyperGroup:
    """Return the group of the commands in all panels, with the options of an application that has no commands itself.

    Its help has a box for each panel, in their order.
    """
    listed = {name: each for commands in panels.values() for name, each in commands.items()}

    class Group(TyperGroup):
        """The group; its help shows commands without building them."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**given | {"commands": _BuiltOnDemand(listed)})

        def format_help(self, ctx: Any, formatter: Any) -> None:
            shown = copy.copy(self)
            shown.commands = {
                name: TyperCommand(name, help=each.help, rich_help_panel=panel)
                for panel, commands in panels.items()
                for name, each in commands.items()
            }
            TyperGroup.format_help(shown, ctx, formatter)

    app.info.cls = Group
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group
