"""Every module that warns is shown by the command line, or has a reason here why it need not be."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from judgetree.app.cli import _SAID

REPO = Path(__file__).parents[2]
ROOMS = ("modules", "graphs", "eval", "app")
_WARNS = frozenset({"warning", "warn", "error", "exception", "critical"})
_VERDICT = "the tree, and what is said below an answer, have the verdict or the sub-run that failed"
EXCUSED: Mapping[str, str] = {
    "modules.index.index": "its progress shows that it waits",
    "modules.index.lite_folder": "it tries again, and a search that finds no server says so",
    "modules.index.parser_process": "the files are parsed all the same",
    "modules.index.plan": "index lists the files that it skipped",
    "modules.locks.locks": "the error that ended the question is shown, and the lock ends by itself",
    "modules.retriever.web": "an observation of the answer's steps says that nothing was found",
    "graphs.conversation.expiry": "its report names those that it could not read",
    "graphs.conversation.history_aware": "a part of other people's chains, whose programs have a log",
    "graphs.conversation.turn.calls": "the turn's records have the error",
    "graphs.conversation.turn.nodes": "the refusal, which stays, is shown",
    "graphs.conversation.turn_runner": "nothing is lost: the next question deletes it",
    "graphs.systems.asking_on": _VERDICT,
    "graphs.systems.judging": _VERDICT,
    "graphs.systems.nodes": "the answer's records have the error of the call",
    "evaluation.replay.query_recorder": "its outcome counts the chunks without further questions",
    "evaluation.replay.readers": "its outcome counts the questions without an answer",
    "evaluation.replay.recorder": "its outcome counts the questions that failed",
    "evaluation.runs.asking": "the question's row has the error",
    "evaluation.scoring.run_scorer": "the answer's score has the error",
    "modules.reader.formed": "the error that follows says what to leave out",
    "app.scripted.http": "the scripted server is for tests and the demo",
    **dict.fromkeys(
        (
            "app.server.application",
            "app.server.keys.book",
            "app.server.safety.descriptors",
            "app.server.safety.key_watch",
            "app.server.serving.errors",
            "app.server.serving.expiry",
            "app.server.serving.running",
            "app.server.serving.served",
        ),
        "the server's log has it",
    ),
}


def _loggers_in(tree: ast.Module) -> set[str]:
    """Names to which a module assigns its loggers."""
    made = (each for each in ast.walk(tree) if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call))
    return {
        target.id
        for each in made
        if ast.unparse(each.value).startswith(("logging.getLogger(", "getLogger("))
        for target in each.targets
        if isinstance(target, ast.Name)
    } | {"logging"}


def warning_modules() -> Iterator[str]:
    for room in ROOMS:
        for file in sorted((REPO / room).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            loggers = _loggers_in(tree)
            if any(
                isinstance(each, ast.Attribute)
                and each.attr in _WARNS
                and isinstance(each.value, ast.Name)
                and each.value.id in loggers
                for each in ast.walk(tree)
            ):
                name = file.relative_to(REPO).with_suffix("").as_posix().replace("/", ".")
                yield name.replace("eval.", "evaluation.", 1) if room == "eval" else name


def test_every_module_that_warns_is_shown_or_excused() -> None:
    assert set(warning_modules()) == {*_SAID, *EXCUSED}
    assert not {*_SAID} & EXCUSED.keys()


@pytest.mark.parametrize("name", EXCUSED)
def test_an_excuse_has_a_reason(name: str) -> None:
    assert len(EXCUSED[name].split()) >= 3
