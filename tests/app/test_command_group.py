"""The group of all commands, which are built when they are looked up."""

from __future__ import annotations

import pytest
import typer

from judgetree.app.command_group import ListedCommand, command_line, of_function, of_group

said: list[str] = []


def greet(name: str) -> None:
    """Greet somebody.

    Their name is said
    once.

    Examples:
        program greet Ada
        program greet "Ada L."
    """
    said.append(name)


def _never() -> typer.Typer:
    raise AssertionError("it was built")


def _app() -> typer.Typer:
    app = typer.Typer(rich_markup_mode="rich", add_completion=False)
    app.callback()(lambda: None)
    return app


def test_a_list_of_commands_builds_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    panels = {"Ask": {"greet": of_function(greet)}, "Measure": {"eval": of_group(_never, help="Measure systems.")}}
    command_line(_app(), panels)(["--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    parts = ("─ Ask ─", "Greet somebody.", "─ Measure ─", "Measure systems.")
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    assert "program greet" not in shown


def test_a_docstring_becomes_paragraphs_and_lines_of_examples() -> None:
    command = of_function(greet).build()
    assert command.help == "Greet somebody.\n\nTheir name is said once."
    assert command.epilog == 'Examples:\nprogram greet Ada\nprogram greet "Ada L."'


def test_a_command_is_built_once_and_no_other_is() -> None:
    built = []
    inner = of_function(greet)

    def build() -> object:
        built.append("greet")
        return inner.build()

    listed = {"greet": ListedCommand(help="", build=build), "eval": of_group(_never, help="")}  # type: ignore[arg-type]
    group = command_line(_app(), {"Ask": listed})
    for name in ("Ada", "Grace"):
        group(["greet", name], standalone_mode=False)
    assert said == ["Ada", "Grace"]
    assert built == ["greet"]


def test_a_mistyped_command_is_told_the_nearest() -> None:
    group = command_line(_app(), {"Ask": {"greet": of_function(greet)}})
    with pytest.raises(Exception, match="Did you mean 'greet'"):
        group(["gret", "Ada"], standalone_mode=False)
