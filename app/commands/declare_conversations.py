"""The commands below ``judgetree conversations``, declared here and imported only when they are run."""

from __future__ import annotations

from typing import Annotated

import typer

conversations_app = typer.Typer(no_args_is_help=True, help="Look at conversations, draw them, clear them away.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a conversation.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count only, and change nothing.")]


@conversations_app.command("list")
def list_(as_json: Json = False) -> None:
    """List the conversations, the one that was last spoken in first."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .conversations import run_list

    raise typer.Exit(run_list(as_json=as_json))


@conversations_app.command()
def show(
    name: Name,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the one last spoken in.")] = None,
    as_json: Json = False,
) -> None:
    """Show the turns of a conversation."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .conversations import run_show

    raise typer.Exit(run_show(name, branch=branch, as_json=as_json))


@conversations_app.command()
def draw(
    name: Name,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Picture; - is standard output.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Searchable page with all search trees.")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Everything, as data.")] = None,
    dot: Annotated[str | None, typer.Option(metavar="FILE", help="Graphviz text.")] = None,
) -> None:
    """Show all branches of a conversation: as text, or in files."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from ..terminal.files import TreeFiles
        from .conversations import run_draw

    raise typer.Exit(run_draw(name, files=TreeFiles.named(svg=svg, html=html, json=json, dot=dot)))


@conversations_app.command()
def delete(
    name: Name,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="This branch only.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a conversation with its search trees."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .conversations import run_delete

    raise typer.Exit(run_delete(name, branch=branch, is_sure=yes))


@conversations_app.command()
def expire(
    days: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Age in days; default: JUDGETREE_CONVERSATION_EXPIRE_DAYS, which is 30."),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete the conversations that nobody has spoken in for long."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .conversations_upkeep import run_expire

    raise typer.Exit(run_expire(days=days, dry_run=dry_run, as_json=as_json))


@conversations_app.command()
def backfill(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: all.")] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Put turns that another program wrote into the memory in a line, each after the one before it."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .conversations_upkeep import run_backfill

    raise typer.Exit(run_backfill(name, dry_run=dry_run, as_json=as_json))
