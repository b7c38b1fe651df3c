"""The command line. Commands are declared here and imported only when they are run, so that ``--help`` is quick."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from .commands.declare_conversations import conversations_app
from .commands.declare_eval import eval_app

# Spelled out again, since their homes take seconds to import; a test compares them.
SystemName = Literal["llm", "naive", "iter_retgen", "ircot", "self_ask", "react", "judge"]
SearchTypeName = Literal["hybrid", "dense", "sparse"]
JudgeName = Literal["auto", "generated", "logprob"]
StrategyName = Literal["stuff", "map_reduce", "refine", "map_rerank"]
FromHistoryName = Literal["assessed", "never", "trust"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(conversations_app, name="conversations")
app.add_typer(eval_app, name="eval")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@dataclass(kw_only=True)
class Invocation:
    """What holds for one call of the command line, whatever the command."""

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
    """Recursive RAG with a judge: index documents, ask questions, look at the search trees."""
    context.ensure_object(Invocation).debug = debug
    _set_up_logging(sys.argv[1:], debug=debug)


@app.command()
def index(  # noqa: PLR0913 - one parameter an option
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Files or folders."),
    ] = None,
    *,
    collection: Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection to fill.")],
    types: Annotated[str | None, typer.Option("--type", metavar="pdf,md", help="File types; default: all.")] = None,
    chunk_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Characters in a chunk; default: as before, at first 700.")
    ] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Characters shared; default: as before, at first 50.")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Take out files that are gone.")] = False,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE", help="Take a file out of the collection; repeatable.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that leave the folder, too.")
    ] = False,
    max_file_mb: Annotated[
        float, typer.Option(min=0, metavar="MB", help="Skip files that are larger, or that hold more text.")
    ] = 200.0,
    max_file_s: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Skip files that take longer to be read.")
    ] = 60.0,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What sources begin with; default: as the collection remembers.")
    ] = None,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for another writer.")
    ] = 600.0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a file was skipped.")] = False,
    as_json: Json = False,
) -> None:
    """Bring files into a collection; only what changed costs anything."""
    from .terminal.terminal import busy

    with busy("starting"):
        from ..modules.index.file_parsers import LoadLimits
        from .commands.index import IndexOptions, run_index

    options = IndexOptions(
        paths=tuple(paths or ()),
        collection=collection,
        types=tuple(types.replace(",", " ").split()) if types is not None else None,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        prune=prune,
        remove=tuple(remove or ()),
        follow_links=follow_links,
        limits=LoadLimits(file_bytes=int(max_file_mb * 1e6), seconds=max_file_s),
        prefix=prefix,
        wait_s=wait_s,
        strict=strict,
    )
    raise typer.Exit(run_index(options, as_json=as_json))


@app.command()
def ask(  # noqa: PLR0913 - one parameter an option
    question: Annotated[str | None, typer.Argument(help="May be left out with --resume.")] = None,
    *,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", metavar="NAME", help="Collection to ask.")
    ] = None,
    system: Annotated[
        SystemName | None,
        typer.Option(
            help="judge: recursive; naive: retrieve and answer; llm: closed book; "
            "ircot, iter_retgen, self_ask, react: baselines that search in rounds. Default judge."
        ),
    ] = None,
    topk: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Chunks that each query retrieves; default 3.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Levels of questions, or further rounds; default 3.")
    ] = None,
    max_llm_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most model calls; default 60.")] = None,
    search_type: Annotated[SearchTypeName | None, typer.Option(help="Default hybrid.")] = None,
    judge: Annotated[JudgeName | None, typer.Option(help="How verdicts are got; default auto.")] = None,
    strategy: Annotated[
        StrategyName | None,
        typer.Option(
            help="How the reader takes in its evidence. stuff: at once; map_reduce: notes of each passage, then the "
            "answer; refine: passage by passage; map_rerank: the surest of the passages' answers. Default stuff."
        ),
    ] = None,
    thread_id: Annotated[str | None, typer.Option(metavar="ID", help="Name of the run; default: a new one.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the thread, with its question and options.")
    ] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the tree as SVG.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tree as an HTML page.")] = None,
    as_json: Json = False,
) -> None:
    """Ask a question; the answer goes to standard output, the growing tree to standard error."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.ask import AskOptions, run_ask
        from .terminal.files import TreeFiles

    options = AskOptions(
        collection=collection,
        system=system,
        topk=topk,
        max_depth=max_depth,
        max_llm_calls=max_llm_calls,
        search_type=search_type,
        judge=judge,
        strategy=strategy,
    )
    files = TreeFiles.named(svg=svg, html=html)
    raise typer.Exit(run_ask(question, options, thread_id=thread_id, resume=resume, files=files, as_json=as_json))


@app.command()
def chat(  # noqa: PLR0913 - one parameter an option
    *,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", metavar="NAME", help="Collection to ask.")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Conversation to begin or to go on with; default: a new one.")
    ] = None,
    system: Annotated[SystemName | None, typer.Option(help="How documents are searched; default judge.")] = None,
    topk: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Chunks that each query retrieves; default 3.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Levels of questions, or further rounds; default 3.")
    ] = None,
    strategy: Annotated[StrategyName | None, typer.Option(help="As in ask. Default stuff.")] = None,
    answer_from_history: Annotated[
        FromHistoryName | None,
        typer.Option(help="Earlier turns answer once the judge confirms it, never, or on trust. Default assessed."),
    ] = None,
    direct_answer: Annotated[
        bool, typer.Option("--direct-answer", help="Answer small talk without a search; a call more a turn.")
    ] = False,
    web_or_rag: Annotated[
        bool, typer.Option("--web-or-rag", help="Let the model choose web or documents (JUDGETREE_SEARXNG_URL).")
    ] = False,
    answer_without_evidence: Annotated[
        bool,
        typer.Option("--answer-without-evidence", help="Where no document answers, answer from general knowledge."),
    ] = False,
    summary_memory: Annotated[
        bool, typer.Option("--summary-memory", help="Sum up turns that are too old for a prompt.")
    ] = False,
    switch_collection: Annotated[
        bool, typer.Option("--switch-collection", help="Go on in another collection, without the old one's evidence.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a JSON document on a line.")] = False,
) -> None:
    """Talk: questions that lean on each other. From a pipe, one question a line. /help lists what else can be said."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.chat import ChatOptions, run_chat

    options = ChatOptions(
        collection=collection,
        system=system,
        topk=topk,
        max_depth=max_depth,
        strategy=strategy,
        answer_from_history=answer_from_history,
        direct_answer=direct_answer,
        web_or_rag=web_or_rag,
        answer_without_evidence=answer_without_evidence,
        summary_memory=summary_memory,
        switch_collection=switch_collection,
    )
    raise typer.Exit(run_chat(options, name=conversation, as_json=as_json))


@app.command()
def tree(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A thread, or one of its sub-runs.")],
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Picture; - is standard output.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Searchable page.")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Everything, as data.")] = None,
    dot: Annotated[str | None, typer.Option(metavar="FILE", help="Graphviz text.")] = None,
    graphml: Annotated[str | None, typer.Option(metavar="FILE", help="For graph programs.")] = None,
) -> None:
    """Show the search tree of a thread: as text, or in files."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.threads import run_tree
        from .terminal.files import TreeFiles

    files = TreeFiles.named(svg=svg, html=html, json=json, dot=dot, graphml=graphml)
    raise typer.Exit(run_tree(thread_id, files=files))


@app.command()
def threads(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 20, as_json: Json = False
) -> None:
    """List the questions asked so far, newest first."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.threads import run_threads

    raise typer.Exit(run_threads(limit=limit, as_json=as_json))


@app.command()
def collections(as_json: Json = False) -> None:
    """List the collections that can be asked."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.collections import run_collections

    raise typer.Exit(run_collections(as_json=as_json))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Try everything that a question needs, with a tiny model call; say what to do about what fails."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.doctor import run_doctor

    raise typer.Exit(run_doctor(as_json=as_json))


@app.command()
def demo(
    scripted: Annotated[bool, typer.Option("--scripted", help="Play the model from a script: quick, no key.")] = False,
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the example corpus is.")] = Path("data"),
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where tree.svg and tree.html go.")] = Path(
        "judgetree-demo"
    ),
) -> None:
    """Index the example corpus and ask it a question that takes two steps."""
    from .terminal.terminal import busy

    with busy("starting"):
        from .commands.demo import run_demo

    raise typer.Exit(run_demo(scripted=scripted, data=data, out=out))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give back the exit status; see ``exit_status``.

    Args:
        arguments: Without the program's name; None takes those of the process.
    """
    from .terminal.exit_status import report
    from .terminal.terminal import prepare_streams

    invocation = Invocation()
    prepare_streams()
    try:
        typer.main.get_command(app).main(args=arguments, prog_name="judgetree", obj=invocation)
    except BaseException as error:  # noqa: BLE001 - the one place where every command ends
        return report(error, debug=invocation.debug, secrets=_secrets(sys.argv[1:] if arguments is None else arguments))
    return 0


def _secrets(arguments: Sequence[str]) -> tuple[str, ...]:
    """Those of the settings and of addresses among the command's options."""
    from ..modules.addresses import Address
    from ..modules.errors import SettingsError
    from ..modules.settings import load_settings

    given = tuple(secret for argument in arguments for secret in Address(argument.partition("=")[2]).secrets())
    given += tuple(secret for argument in arguments for secret in Address(argument).secrets())
    try:
        return given + load_settings().secrets()
    except SettingsError:
        return given


class _Starring(logging.Formatter):
    def __init__(self, form: str, *, secrets: Sequence[str]) -> None:
        super().__init__(form)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        from ..modules.redaction import starred

        return starred(super().format(record), self._secrets)


def _set_up_logging(arguments: Sequence[str], *, debug: bool) -> None:
    """Without ``debug``, what matters to the user is told by the commands; libraries stay silent."""
    if debug:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Starring("%(levelname)s %(name)s: %(message)s", secrets=_secrets(arguments)))
        logging.basicConfig(handlers=[handler])
        logging.getLogger("judgetree").setLevel(logging.DEBUG)
        return
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    # It brings a handler of its own and sets its level at import.
    logging.getLogger("jieba").addFilter(lambda record: record.levelno >= logging.WARNING)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
