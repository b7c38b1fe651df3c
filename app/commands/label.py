"""``judgetree label``: labels passages of a run by hand, on a page or in the terminal."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.config.typed_values import names_in
from ...modules.errors import SettingsError, needs_extra
from ..terminal.terminal import busy, say, write_json, write_result
from .options import Json, RunFolder

if TYPE_CHECKING:
    from ...evaluation.labels.labelling import Labelling


def label(  # noqa: PLR0913 - one parameter an option
    folder: RunFolder,
    *,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the person who labels; default: the system's user.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Passages to draw, as many of each verdict.")] = 100,
    overlap: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Passages that every annotator labels; each other one goes to one of them. Default: all.",
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Systems whose passages are labelled; default: those with verdicts."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw; the same for all annotators.")] = 0,
    terminal: Annotated[bool, typer.Option("--terminal", help="Label in this terminal, without a page.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port of the page; 0 takes a free one.")] = 0,
    summary: Annotated[
        bool, typer.Option("--summary", help="Say what was labelled and how far annotators agree; label nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Label passages of a run by hand: 2 answers the query alone, 1 holds a needed fact, 0 does not help.

    Labels go to labels.jsonl in the run directory as they are made; the same command continues.

    Examples:
        judgetree label runs/first
        judgetree label runs/first --annotator ada --count 50 --terminal
    """
    if as_json and not summary:
        raise SettingsError("--json is for --summary.")
    if summary:
        _summarise(folder, as_json=as_json)
        return
    with busy("reading the run"):
        from ...evaluation.labels.labelling import Labelling, LabelPlan

        plan = LabelPlan(count=count, seed=seed, systems=names_in(systems), overlap=overlap)
        work = Labelling(folder, _system_user() if annotator is None else annotator, plan)
    _label_typed(work) if terminal else _label_on_page(work, port)
    left = len(work.due())
    say(f"{work.annotator} has labelled {len(work.mine())} of {len(work.passages)} passages; {left} are left.")
    say(f"Next: judgetree label {folder} --summary")


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:
        raise SettingsError("The system does not name its user. Say who labels with --annotator NAME.") from error


def _label_typed(work: Labelling) -> None:
    from ..labelling.typed import TypedLabelling
    from ..terminal.typed_lines import TypedLines

    TypedLabelling(work, TypedLines()).run()


def _label_on_page(work: Labelling, port: int) -> None:
    from ..labelling.server import LabelServer

    with LabelServer(work, port=port) as server:
        say(f"Label at {server.url}")
        say("Every label is saved at once; Ctrl-C ends.", style="dim")
        server.wait()


def _summarise(folder: Path, *, as_json: bool) -> None:
    with busy(), needs_extra("eval"):
        from ...evaluation.labels.agreement import agreements, counts_by_annotator
        from ...evaluation.labels.judgements import judgements_of
        from ...evaluation.labels.store import LabelStore
        from ...evaluation.labels.summary import summary_lines

    labels = LabelStore(folder).read()
    if as_json:
        settled = judgements_of(labels)
        document = {
            "labels": counts_by_annotator(labels),
            "agreement": [asdict(each) for each in agreements(labels)],
            "settled": len(settled.settled),
            "disputed": [asdict(passage) for passage in settled.disputed],
            "undecided": [asdict(passage) for passage in settled.undecided],
        }
        write_json(document)
    else:
        write_result("\n".join(summary_lines(labels)))
