"""``judgetree export``: the trees of a run as training data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ...modules.config.typed_values import names_in
from ...modules.errors import needs_extra
from ..terminal.terminal import busy, say, write_result
from .options import RunFolder, SomeSystems

# Copied, as in ``options``.
WhatName = Literal["judge", "sub_question", "reader", "preference"]
TrainingFormatName = Literal["messages", "jsonl"]


def export(
    folder: RunFolder,
    *,
    what: Annotated[
        WhatName,
        typer.Option(
            help="judge: verdicts on chunks; sub_question: supplementary questions that led to gold; reader: evidence "
            "with the gold answer; preference: supplementary questions that led to gold, with ones that did not."
        ),
    ],
    format: Annotated[
        TrainingFormatName, typer.Option(help="Chats, or prompt and reply as texts with further fields.")
    ] = "messages",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; else standard output.")] = None,
    systems: SomeSystems = None,
    any_split: Annotated[
        bool, typer.Option("--any-split", help="Also questions that are not known to be for training.")
    ] = False,
) -> None:
    """Export the trees of a run as training data, one JSON line an example, in the formats of TRL.

    What is right is known by the data set's supporting facts and answers, and by labels (`judgetree label`).

    Examples:
        judgetree export runs/first --what judge --out judge.jsonl
    """
    with busy("reading the run"), needs_extra("eval"):
        from ...evaluation.training.export import export as export_run
        from ..terminal.files import check_writable

        if out is not None:
            check_writable(out, option="--out")
        data = export_run(folder, what, format, out=out, systems=names_in(systems), any_split=any_split)
    if out is None and data.records:
        write_result(data.to_jsonl())
    say(f"{len(data.records):,} examples{'' if out is None else f': {out}'}")
    for reason, count in data.left_out.items():
        say(f"left out: {count:,} ({reason})", style="dim")
