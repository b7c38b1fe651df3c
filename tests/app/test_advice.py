"""Advice in messages names options that the command has in which the message is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from judgetree.app.cli import all_commands
from tests.app.commands.test_question_options import commands

REPO = Path(__file__).parents[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OF_OTHERS = frozenset(
    {
        "--ctx-size",
        "--max-model-len",
        "--head",
        "--force-reinstall",
        "--data-dir",
        "--host",
        "--port",
        "--debug",
        "--help",
    }
)
"""Options of other programs, and those before every command."""
QUESTIONS = ("eval run", "eval record")
READ_IN = {
    "eval/calibration/calibrate.py": ("eval calibrate",),
    "eval/calibration/data.py": ("eval calibrate",),
    "eval/datasets/own_questions.py": QUESTIONS,
    "eval/labels/labelling.py": ("label",),
    "eval/labels/store.py": ("eval calibrate",),
    "eval/question_files/file_rows.py": QUESTIONS,
    "eval/ragas/metrics.py": ("eval ragas",),
    "eval/reports/compare.py": ("eval compare",),
    "eval/reports/contenders.py": ("eval compare",),
    "eval/reports/loaded_run.py": ("export", "eval ragas", "eval score"),
    "eval/rows/cautions.py": ("eval run",),
    "eval/rows/code_version.py": ("eval run",),
    "eval/reports/failures.py": ("eval compare",),
    "eval/record_and_replay.py": ("replay",),
    "eval/run_diff.py": ("diff",),
    "eval/runs/batch_run.py": ("eval run",),
    "eval/runs/job_workers.py": ("eval run",),
    "eval/runs/limits.py": ("eval run",),
    "eval/runs/manifest.py": ("eval run",),
    "eval/runs/pilot.py": ("eval run",),
    "eval/runs/rerun.py": ("eval run",),
    "eval/runs/services.py": QUESTIONS,
    "eval/runs/workers.py": ("eval run",),
    "eval/score_with_metric.py": ("eval score",),
    "eval/submissions/browsecomp_plus.py": ("eval submission",),
    "eval/sweeps/run_sweep.py": ("eval run",),
    "eval/training/export.py": ("export",),
    "graphs/conversation/branches.py": ("chat",),
    "graphs/drawing/calls.py": ("ask", "chat", "fork", "eval run"),
    "graphs/drawing/words.py": ("ask", "chat"),
    "graphs/forks/change.py": ("fork",),
    "graphs/threads/named_failures.py": ("ask",),
    "graphs/threads/mismatch.py": ("ask", "chat", "fork", "eval run"),
    "modules/caveats/kinds.py": ("ask", "chat", "fork", "eval run"),
    "modules/cluster.py": ("index", "eval run"),
    "modules/embedding/ray_embedder.py": ("index",),
    "modules/index/writer_lock.py": ("index",),
    "modules/llm/cache.py": ("eval run", "eval ragas", "eval score", "replay"),
    "modules/llm/request_params.py": ("ask", "chat", "fork", "eval run"),
    "modules/reading/json_rows.py": QUESTIONS,
    "modules/structure/graph_files.py": ("index",),
    "app/server/knowledge/model_choice.py": ("serve",),
    "app/server/safety/hosts.py": ("serve",),
    "app/server/safety/start.py": ("serve",),
    "app/terminal/collection_update.py": ("index",),
    "app/terminal/files.py": ("ask", "tree", "fork"),
    "app/terminal/graph_making.py": ("index",),
    "app/terminal/scoring.py": ("eval ragas", "eval score"),
    "app/terminal/terminal.py": ("index", "keys revoke", "conversations delete", "conversations expire", "replay"),
}
"""By file, the commands in which its advice is read; none where each text names its command (`judgetree index …`)."""


@cache
def options() -> dict[str, frozenset[str]]:
    found = commands(all_commands())
    return {
        name: frozenset(each for one in command.params for each in one.opts + one.secondary_opts)
        for name, command in found
    }


def texts(tree: ast.AST) -> Iterator[str]:
    """Texts of a file, with … for what a format string puts in; neither docstrings nor definitions of options."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        is_doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_option = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            (".Option", ".Argument", ".add_argument", "Key")
        )
        if is_doc or is_option:
            skipped.update(map(id, ast.walk(node)))
        elif id(node) not in skipped and isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif id(node) not in skipped and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def command_in(text: str, start: int) -> str | None:
    """The command that the words before an option name, such as `judgetree eval run --out` or `ask --resume`."""
    before = re.split(r"[.;:(]\s|`[^`]*` ", text[:start])[-1]
    named = [name for name in options() if re.search(rf"(?:judgetree |`|^|: ){re.escape(name)}\b[^`]*$", before)]
    return max(named, key=len, default=None)


def advice() -> Iterator[tuple[str, str, str | None]]:
    for room in ("eval", "graphs", "modules", "app"):
        for path in sorted((REPO / room).rglob("*.py")):
            file = path.relative_to(REPO).as_posix()
            if file.startswith(("app/commands/", "app/scripted/", "app/cli.py")):
                continue
            for text in texts(ast.parse(path.read_text("utf-8"))):
                for found in OPTION.finditer(text):
                    if found[0] not in OF_OTHERS:
                        yield file, found[0], command_in(text, found.start())


def test_an_option_that_advice_names_is_one_of_its_command() -> None:
    wrong = []
    for file, option, named in advice():
        read_in = (named,) if named else READ_IN.get(file, ("(not in READ_IN)",))
        wrong += [(file, option, each) for each in read_in if option not in options().get(each, ())]
    assert wrong == []


def test_no_file_is_listed_without_advice() -> None:
    assert set(READ_IN) == {file for file, _, named in advice() if not named}


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_command_that_takes_questions_takes_a_corpus(command: str) -> None:
    assert {"--questions", "--corpus", "--columns", "--encoding", "--separator", "--skip-bad-rows"} <= options()[
        command
    ]
