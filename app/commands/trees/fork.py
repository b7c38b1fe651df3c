"""``judgetree fork``: answers a question again with one change of its search tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....graphs.config.rag_config import RagConfig
from ....modules.config.models import Models
from ....modules.errors import SettingsError
from ...terminal.caveats import say_caveats
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, progress_bar, say, width, write_json, write_result
from ..ask import SearchChoice
from ..config_options import takes
from ..options import Json, Record

if TYPE_CHECKING:
    from ....graphs.rag.result import RagResult
    from ....graphs.session import RagSession
    from ....modules.settings import Settings


@takes(RagConfig, only=tuple(Models.model_fields), pairs=False)
def fork(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A finished question, or a fork.")],
    *,
    node: Annotated[
        str | None,
        typer.Option(metavar="N", help="What is changed: query 2, or its chunk 2#1. Without it, all nodes are shown."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help='Of a chunk score=0|1|2, next_query="…", drop; of a query topk=N, llm=MODEL. May be repeated.',
        ),
    ] = None,
    record: Record = None,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the new tree as SVG.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the new tree as an HTML page.")] = None,
    as_json: Json = False,
    config: RagConfig,
) -> None:
    """Answer a question again with one change of its tree; what the change does not touch is linked and costs nothing.

    Name the models and prompts that the question was asked with. The same fork again costs nothing.

    Examples:
        judgetree tree THREAD_ID --numbers
        judgetree fork THREAD_ID --node 2#1 --set score=0
    """
    with busy():
        from ....graphs.forks.change import parsed_change
        from ....modules.settings import load_settings
        from ...terminal.files import TreeFiles
        from ...terminal.saved import read_saved_tree

    settings = load_settings().with_models(record=record)
    if node is None:
        write_result(read_saved_tree(settings, thread_id).to_text(width=width(), numbers=True))
        say("Name what is changed: --node 2 for a query, --node 2#1 for a chunk of it.")
        return
    files = TreeFiles.named(svg=svg, html=html)
    files.check(stdout_is_free=False)
    wanted = parsed_change(_pairs(change or []))
    with session_of_thread(thread_id, config, settings) as session, busy("answering"):
        result = session.fork(thread_id, node, **vars(wanted))
    if as_json:
        origin = result.tree.fork
        document = {"fork": asdict(origin) if origin else None, "saved": result.tree.saved, **result.to_document()}
        write_json(document)
    else:
        write_result(result.answer)
    _say_outcome(result, thread_id)
    files.write(result.tree)
    if result.judging_failed:
        raise typer.Exit(FAILED)


@contextmanager
def session_of_thread(
    thread_id: str, models: RagConfig, settings: Settings, *, of_judges: Mapping[str, Any] | None = None
) -> Iterator[RagSession]:
    """Open a session with the collection, system and keys of a saved thread, and with these models.

    ``of_judges`` are keys in place of the thread's, if its system judges.
    """
    from ....graphs.systems.registry import find_system

    choice = SearchChoice(config=models).of_thread(settings, thread_id)
    if of_judges and find_system(choice.system or "judge").judges:
        choice = replace(choice, config=choice.config.changed(**of_judges))
    with progress_bar() as on_progress, choice.open_session(settings, on_progress) as session:
        yield session


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    for name, equals, _ in pairs:
        if not equals and name != "drop":
            raise SettingsError(f"--set {name} has no value. Give NAME=VALUE, such as score=2, or drop.")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise SettingsError("--set names one setting twice. Give each once.")
    return {name: value for name, _, value in pairs}


def _say_outcome(result: RagResult, origin: str) -> None:
    from ....graphs.drawing.words import format_failed_verdict, format_usage

    if failed := format_failed_verdict(result.tree.root):
        say(failed, style="red" if result.judging_failed else "yellow")
    cost = f"{result.status} · {format_usage(result.usage_this_run)} · saved: {format_usage(result.tree.saved)}"
    say(f"{cost} · {result.wall_s:.1f} s in all", style="dim")
    say_caveats(result.tree.caveats)
    say(f"tree:   judgetree tree {result.thread_id} · diff: judgetree diff {origin} {result.thread_id}", style="dim")
