"""Options and arguments of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ...modules.errors import SettingsError
from ...modules.recorded_texts import Record as RecordName

# A copy, since the module that defines it takes seconds to import; a test compares them.
DirectionName = Literal["right", "down"]


Questions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Questions of your own, in place of --dataset: CSV, TSV, Excel, JSON or JSON Lines."
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Collection = Annotated[str | None, typer.Option("--collection", "-c", metavar="NAME", help="Collection to ask.")]

CondenseLlm = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model that rewrites follow-up questions; default: the one that answers."),
]

RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="ADDRESS", help="Ray cluster of the workers, such as auto; default: one on this machine."
    ),
]

Spreadsheet = Annotated[
    bool,
    typer.Option("--spreadsheet", help="Also write CSV for a spreadsheet, in which no text runs as a formula."),
]

System = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="judge: recursive; naive: retrieve and answer; llm: closed book; ircot, iter_retgen, self_ask, react, "
        "search_r1, crag: baselines that search in rounds; or module:name of your own. Default judge.",
    ),
]

Prompts = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prompts of your own, in YAML; `judgetree prompts copy` writes a file to edit."),
]

PromptsThinking = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prompts of turns with thinking on; they replace those of the same names."),
]

PromptsNoThinking = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prompts of turns with thinking off; they replace those of the same names."),
]

Record = Annotated[
    RecordName | None,
    typer.Option(
        hidden=True, help="Keep what each model call is sent and what it replies, the prompts alone, or neither."
    ),
]

SvgFile = Annotated[str | None, typer.Option(metavar="FILE", help="Picture; - is standard output.")]

JsonFile = Annotated[str | None, typer.Option(metavar="FILE", help="All data of the tree, as JSON.")]

DotFile = Annotated[str | None, typer.Option(metavar="FILE", help="Text for Graphviz.")]

RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")]

SomeSystems = Annotated[str | None, typer.Option(metavar="NAME,…", help="Some of the run's systems; default: all.")]


def ray_address(workers: int | None, given: str | None) -> str:
    """Return the address of the Ray on which workers run: the given one, else one of this machine.

    Raises:
        SettingsError: There is an address, and no number of workers.
    """
    from ...modules.cluster import HERE

    if given is not None and workers is None:
        raise SettingsError("--ray needs the number of worker processes: add --workers N.")
    return HERE if given is None else given
