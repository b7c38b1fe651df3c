"""Every door by which a model may be asked stands in the table of docs/reference/limits.md, with its limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from judgetree.app.cli import all_commands
from judgetree.app.server.application import create_app
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings

ROOT = Path(__file__).parents[1]
LAYERS = ("modules", "graphs", "eval", "app")
LIMITS = re.compile(r"--max-(?:llm-calls|tree-[a-z-]+|calls|tokens|cost|passages)\b")

ASK_NO_MODEL = {
    "eval submission",
    "tree",
    "calls",
    "diff",
    "label",
    "export",
    "new",
    "threads",
    "collections",
    "config",
    "settings",
    "trust",
    "conversations list",
    "conversations show",
    "conversations draw",
    "conversations delete",
    "conversations expire",
    "conversations backfill",
    "eval fetch",
    "eval report",
    "eval compare",
    "eval metrics",
    "eval plan",
    "graph show",
    "keys add",
    "keys list",
    "keys revoke",
    "prompts show",
    "prompts copy",
    "prompts diff",
}
"""Commands that ask no chat model."""
ROUTES_WITHOUT_A_MODEL = {
    "/v1/collections/{name}/documents",
    "/v1/conversations/{name}/branch",
    "/v1/conversations/{name}/undo",
    "/v1/conversations/{name}/questions/stop",
}
"""Paths of the server's requests with a body that ask no chat model."""

METERS = {
    "app/commands/doctor.py": "none: one call a model",
    "app/server/chat/fast.py": "question and key",
    "app/server/collections/library.py": "none: a search",
    "eval/calibration/rating.py": "none: a number of questions",
    "eval/contracts.py": "none: a check of one's own parts",
    "eval/replay/readers.py": "run",
    "eval/replay/recorder.py": "question and run",
    "eval/replay/simulated.py": "none: no model",
    "eval/runs/turn_evidence.py": "none: a search",
    "eval/score_with_ragas.py": "run",
    "eval/scoring/run_scorer.py": "run",
    "graphs/contracts.py": "none: a check of one's own parts",
    "graphs/conversation/history_aware.py": "none: a part of the caller's chain",
    "graphs/conversation/turn/context.py": "question, and who pays",
    "graphs/forks/changed_query.py": "none: a search",
    "graphs/systems/asking_on.py": "question, and who pays",
    "graphs/systems/judging.py": "question, and who pays",
    "graphs/systems/nodes.py": "question, and who pays",
    "graphs/systems/rounds.py": "question, and who pays",
    "graphs/systems/shown_evidence.py": "question, and who pays",
    "modules/calls/journaled.py": "the place itself",
    "modules/extraction/extraction.py": "run",
    "modules/llm/own.py": "the requests of a call that is booked as one",
    "modules/retriever/retriever.py": "none: a search",
}
"""Files that make meters of model calls, and which limits hold for these; a new file needs a line, and a limit."""
RESERVING = {"modules/calls/journaled.py", "modules/llm/cache.py"}
"""The only files that reserve calls: those that are made, and those that the cache answers."""


@cache
def rows() -> dict[str, str]:
    """Rows of the table of doors, by their first cell."""
    table = (ROOT / "docs/reference/limits.md").read_text(encoding="utf-8").partition("## Doors")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return {line.split(" | ")[0]: line for line in lines}


def row_of(door: str) -> str:
    found = [line for first, line in rows().items() if f"`{door}`" in first]
    assert len(found) == 1, f"{door} has {len(found)} rows in docs/reference/limits.md"
    return found[0]


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def asking_commands() -> dict[str, click.Command]:
    """Commands that ask a chat model."""
    return {name: each for name, each in commands(all_commands()) if name not in ASK_NO_MODEL}


def options_of(command: click.Command) -> Iterator[str]:
    """The options of a command, without the older names that some have."""
    for param in command.params:
        if not (param.name or "").endswith("_older"):
            yield from param.opts


def test_every_command_that_asks_a_model_has_its_limits_in_the_table() -> None:
    found = dict(commands(all_commands()))
    assert set(found) >= ASK_NO_MODEL
    for name, command in found.items():
        options = {option for option in options_of(command) if LIMITS.fullmatch(option)}
        if name in ASK_NO_MODEL:
            assert options == set(), f"{name} has limits, so that it asks a model"
        elif name != "serve":
            assert set(LIMITS.findall(row_of(f"judgetree {name}"))) == options, name


def test_every_route_that_asks_a_model_has_its_limits_in_the_table(tmp_path: Path) -> None:
    paths = create_app(Settings(home=tmp_path), ServerOptions()).openapi()["paths"]
    posts = {path for path, methods in paths.items() if "post" in methods or "put" in methods}
    assert posts >= ROUTES_WITHOUT_A_MODEL
    for path in posts - ROUTES_WITHOUT_A_MODEL:
        named = [first for first in rows() if f"`POST {path}`" in first]
        assert len(named) == 1, path


def calls_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "id", getattr(node.func, "attr", ""))


def test_every_meter_of_model_calls_has_a_limit_or_a_reason() -> None:
    files = [file for layer in LAYERS for file in (ROOT / layer).rglob("*.py")]
    calls = {str(file.relative_to(ROOT)): set(calls_in(file)) for file in files}
    assert {file for file, names in calls.items() if "CallMeter" in names} == set(METERS)
    assert {file for file, names in calls.items() if "reserve_amount" in names} == RESERVING
