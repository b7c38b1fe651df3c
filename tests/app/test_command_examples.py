"""The examples in ``--help``: every command has some, and takes the options and arguments that they give."""

from __future__ import annotations

import shlex

from tests.app.conftest import every_command

COMMANDS = {words: command for words, command in every_command().items() if not hasattr(command, "commands")}
COLUMNS = 78
"""Room for an example in a terminal of 80."""


def test_every_command_has_an_example_of_its_own() -> None:
    assert [words for words, each in COMMANDS.items() if f"\njudgetree {words}" not in (each.epilog or "")] == []


def test_commands_take_what_their_examples_give() -> None:
    lines = [line for each in COMMANDS.values() for line in (each.epilog or "").splitlines()[1:]]
    for line in lines:
        assert len(line) <= COLUMNS
        program, *given = shlex.split(line)
        words = next(words for words in (" ".join(given[:2]), given[0]) if words in COMMANDS)
        assert program == "judgetree"
        COMMANDS[words].make_context(words, given[len(words.split()) :])
