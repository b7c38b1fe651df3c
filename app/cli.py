"""The command line: its commands, its global options and the log.

Files of commands import heavy modules inside their functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import atexit
import functools
import gc
import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.core import TyperGroup

from .command_group import ListedCommand, command_line, of_function, of_group
from .commands.ask import ask
from .commands.chat import chat
from .commands.collections import collections
from .commands.config import config
from .commands.conversations import conversations_app
from .commands.demo import demo
from .commands.doctor import doctor
from .commands.export import export
from .commands.graph import graph_app
from .commands.index import index
from .commands.keys import keys_app
from .commands.label import label
from .commands.new.new import new
from .commands.prompts import prompts_app
from .commands.replay import replay
from .commands.serve import serve
from .commands.settings import settings
from .commands.trees.calls import calls
from .commands.trees.diff import diff
from .commands.trees.explain import explain
from .commands.trees.fork import fork
from .commands.trees.threads import threads
from .commands.trees.tree import tree
from .commands.trust import trust
from .terminal.exit_status import report
from .terminal.log_lines import LogLines
from .terminal.terminal import prepare_streams, say

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _eval_app() -> typer.Typer:
    from .commands.eval.app import eval_app

    return eval_app


def _functions(*functions: Callable[..., None]) -> dict[str, ListedCommand]:
    return {function.__name__: of_function(function) for function in functions}


PANELS: Mapping[str, Mapping[str, ListedCommand]] = {
    "Ask": _functions(index, ask, chat, demo),
    "Look": {
        **_functions(tree, calls, threads),
        "conversations": of_group(lambda: conversations_app, help="Look at conversations, draw them, clear them away."),
        "graph": of_group(lambda: graph_app, help="Look at the graphs of collections."),
        **_functions(fork, diff, explain),
    },
    "Measure": {
        "eval": of_group(_eval_app, help="Measure systems over question-answer data sets."),
        **_functions(label, replay, export),
    },
    "Serve": {
        **_functions(serve),
        "keys": of_group(lambda: keys_app, help="Make, list and revoke the keys that clients of the server send."),
    },
    "Keep": {
        **_functions(collections, config, settings, trust, doctor),
        "prompts": of_group(lambda: prompts_app, help="Show prompts, copy them to a file of your own, compare them."),
        **_functions(new),
    },
}
"""The commands by name, in the panels of ``--help``."""


@functools.cache
def all_commands() -> TyperGroup:
    """Return the command line, whose commands are built when they are looked up."""
    return command_line(app, PANELS)


@dataclass(kw_only=True)
class Invocation:
    """State of one call of the command line."""

    debug: bool = False


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from .. import __version__

        print(f"judgetree {__version__}")
        raise typer.Exit


@app.callback()
def judgetree(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="JUDGETREE_DEBUG", help="Show tracebacks and the log.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Recursive RAG with a judge: index documents, ask questions, look at the search trees.

    Alone, it says what to do next in this folder.
    """
    context.ensure_object(Invocation).debug = debug
    _set_up_logging(sys.argv[1:], debug=debug)
    if context.invoked_subcommand is None:
        from .next_step import say_next_step

        say_next_step()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status (0, 1, 2 or 130).

    Args:
        arguments: Command and options without the program's name; None takes those of the process.
    """
    invocation = Invocation()
    prepare_streams()
    _collect_rarely()
    try:
        all_commands().main(args=arguments, prog_name="judgetree", obj=invocation)
    except BaseException as error:  # noqa: BLE001 - the one place where every command ends
        given = sys.argv[1:] if arguments is None else arguments
        return report(error, debug=invocation.debug, secrets_of=lambda: _secrets(given))
    return 0


@functools.cache
def _collect_rarely() -> None:
    """Search the process for garbage less often, and not at its end.

    Otherwise the searches take a quarter of the CPU time before the first call of a model, since they go through the
    libraries while these are loaded, and the one at the end a CPU second.
    """
    gc.set_threshold(10_000, 20, 50)
    atexit.register(gc.freeze)


def _secrets(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the secrets of the settings, and of addresses among the arguments."""
    from ..modules.addresses import Address
    from ..modules.errors import SettingsError
    from ..modules.settings import load_settings

    texts = (text for argument in arguments for text in (argument, argument.partition("=")[2]))
    given = tuple(secret for text in texts for secret in Address(text).secrets())
    try:
        return given + load_settings().secrets()
    except SettingsError:
        return given


class _RedactingFormatter(logging.Formatter):
    def __init__(self, form: str, *, secrets: Sequence[str]) -> None:
        super().__init__(form)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        from ..modules.redaction import starred

        return starred(super().format(record), self._secrets)


class _Remarks(logging.Handler):
    """Prints warnings as remarks on standard error, without secrets."""

    arguments: Sequence[str] = ()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning; a closed standard error drops it."""
        from ..modules.redaction import starred

        with suppress(OSError):  # standard error may be closed; what warns goes on
            say(starred(record.getMessage(), _secrets(self.arguments)), style="yellow")


class _Lines(logging.Handler):
    """Prints what was read on standard error, without secrets, a line once each command."""

    arguments: Sequence[str] = ()

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line, unless it was; a sweep reads its questions many times."""
        from ..modules.redaction import starred

        line = starred(record.getMessage(), _secrets(self.arguments))
        if record.levelno < logging.WARNING and line not in self.said:
            self.said.add(line)
            with suppress(OSError):
                say(line)


_REMARKS = _Remarks(logging.WARNING)
_LINES = _Lines(logging.INFO)
_READ = "judgetree.evaluation.datasets.own_questions"
"""The logger of the line that says what was read of a file of questions."""
_SAID = (
    "evaluation.datasets.hotpotqa",
    "evaluation.datasets.own_questions",
    "evaluation.datasets.rows",
    "evaluation.papers.files",
    "evaluation.rows.two_copies",
    "evaluation.runs.experiment",
    "evaluation.runs.gold",
    "evaluation.runs.job_workers",
    "evaluation.runs.turn_evidence",
    "graphs.conversation.qa_log",
    "graphs.conversation.tree",
    "graphs.conversation.turn.history",
    "graphs.conversation.turn.saving",
    "graphs.conversation.turn.store",
    "graphs.conversation.turn_tracing",
    "graphs.rag.telemetry",
    "graphs.rag.thread_runs",
    "graphs.search.sharing",
    "graphs.session",
    "graphs.tree.history",
    "modules.calls.journaled",
    "modules.calls.transcript_writer",
    "modules.cluster",
    "modules.embedding.cache",
    "modules.embedding.refusals",
    "modules.embedding.worker_pool",
    "modules.extraction.cache",
    "modules.index.factory",
    "modules.judge.logprob",
    "modules.judge.thresholds",
    "modules.llm.cache",
    "modules.llm.rate_limit",
    "modules.llm.wire.adaptations",
    "modules.retriever.reordering",
    "modules.retriever.rerank",
    "modules.storage.redis",
    "modules.storage.sqlite_cache",
    "modules.trust.variables",
)
"""Modules whose warnings no command reports: something that was asked for is left out, not used, not kept, or waits."""


def _set_up_logging(arguments: Sequence[str], *, debug: bool) -> None:
    """Log to standard error under ``debug``; otherwise only the warnings that no command reports."""
    _REMARKS.arguments = _LINES.arguments = arguments
    _LINES.said.clear()
    logging.getLogger(_READ).removeHandler(_LINES)
    if not debug:
        logging.getLogger(_READ).addHandler(_LINES)
        logging.getLogger(_READ).setLevel(logging.INFO)
    for name in _SAID:
        logger = logging.getLogger(f"judgetree.{name}")
        logger.removeHandler(_REMARKS)
        if not debug:
            logger.addHandler(_REMARKS)
    if debug:
        handler = LogLines()
        handler.setFormatter(_RedactingFormatter("%(levelname)s %(name)s: %(message)s", secrets=_secrets(arguments)))
        logging.basicConfig(handlers=[handler])
        logging.getLogger("judgetree").setLevel(logging.DEBUG)
        return
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    # jieba adds a handler of its own and sets its level at import.
    logging.getLogger("jieba").addFilter(lambda record: record.levelno >= logging.WARNING)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
