"""``judgetree calls``: the model calls of an earlier question, with what was sent and what came."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....modules.errors import SettingsError, UnknownThread
from ...terminal.terminal import busy, say, width, write_json, write_result
from ..options import Json

if TYPE_CHECKING:
    from ....graphs.rag.model_calls import ModelCall, ModelCalls
    from ....graphs.rag.search_tree import SearchTree


def calls(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A thread; with --run also a question's id.")],
    *,
    node: Annotated[
        str | None,
        typer.Option(metavar="N[.M]", help="Show the texts of query N's calls, or of its M-th call alone."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show the texts of all calls.")] = False,
    run: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Run directory that has the thread.")] = None,
    as_json: Json = False,
) -> None:
    """Show the model calls of a thread: a table, or the prompts and replies.

    Examples:
        judgetree calls THREAD_ID
        judgetree calls THREAD_ID --node 2
    """
    with busy():
        from ....modules.settings import load_settings
        from ...terminal.saved import read_saved_tree

    query_number, number = _numbers(node)
    trees = _trees_of(run, thread_id) if run else {"": read_saved_tree(load_settings(), thread_id)}
    chosen = {name: tree.calls() for name, tree in trees.items()}
    if query_number is not None:
        known = max((call.query_number for each in chosen.values() for call in each), default=0)
        chosen = {name: each.of_query(query_number, number) for name, each in chosen.items()}
        if not any(chosen.values()):
            raise SettingsError(f"--node {node}: there is no such call. Queries with calls: 1 to {known}.")
    if as_json:
        write_json([{"tree": name, **call.to_document()} for name, each in chosen.items() for call in each])
    else:
        full = full or node is not None
        write_result("\n\n".join(_shown(name, each, full=full) for name, each in chosen.items()))
        if not full:
            _say_how_to_see_more([call for each in chosen.values() for call in each], thread_id, run)


_MOST_DIGITS = 10


def _numbers(node: str | None) -> tuple[int | None, int | None]:
    if node is None:
        return None, None
    query_number, dot, number = node.partition(".")
    if not all(part.isdecimal() and len(part) < _MOST_DIGITS for part in (query_number, number if dot else "0")):
        raise SettingsError(f"--node {node!r} is no number. Allowed: that of a query, such as 2, or of a call, 2.1.")
    return int(query_number), int(number) if dot else None


def _trees_of(run: Path, name: str) -> Mapping[str, SearchTree]:
    """Return the trees of a thread of a run, or of all answers to a question, by their names for the user."""
    from ....evaluation.rows.store import RunStore
    from ....evaluation.rows.trees import TreeStore

    rows = RunStore(run).read_rows()
    if not rows:
        raise SettingsError(f"{run} holds no rows. Name a run directory: the --out of `judgetree eval run`.")
    chosen = [row for row in rows if name in (row.thread_id, row.question_id)]
    if not chosen:
        some = ", ".join(list(dict.fromkeys(row.question_id for row in rows))[:5])
        raise UnknownThread(f"{run} has neither a thread nor a question {name!r}. Ids of its questions: {some}, …")
    trees = [(row, TreeStore(run).read(row.thread_id)) for row in chosen]
    found = {f"{row.system}, repeat {row.repeat}, {row.thread_id}": tree for row, tree in trees if tree}
    if not found:
        raise UnknownThread(f"The question {name!r} has no tree: it failed at once, or nothing was searched.")
    return found


def _shown(name: str, calls: ModelCalls, *, full: bool) -> str:
    text = calls.to_text(full=full, width=width())
    return f"{name}\n{text}" if name else text


def _say_how_to_see_more(calls: list[ModelCall], thread_id: str, run: Path | None) -> None:
    recorded = sum(call.transcript is not None for call in calls)
    chats = sum(call.record["kind"] == "chat" for call in calls)
    if chats and not recorded:
        say(
            "What these calls were sent was not kept: they were made with --record none. --record full keeps it, or "
            "JUDGETREE_RECORD=full, also in conversations.",
            style="yellow",
        )
    elif recorded:
        place = f" --run {run}" if run else ""
        say(
            f"{recorded} of {chats} recorded. In full: judgetree calls {thread_id}{place} --node 1, or --full",
            style="dim",
        )
