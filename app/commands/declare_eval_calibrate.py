"""``judgetree eval calibrate``: its declaration; what it does is imported only when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def calibrate(
    *,
    dataset: Annotated[str, typer.Option(metavar="NAME:PATH", help="Such as hotpotqa:hotpot_train_v1.1.json.")],
    judge_llm: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Model to calibrate; else JUDGETREE_JUDGE_LLM.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions; all.")] = None,
    split: Annotated[
        str | None, typer.Option(metavar="train", help="Where the file's name does not say that it is for training.")
    ] = None,
    disjoint_from: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Run directory whose questions must not be among them; may come again."),
    ] = None,
    target_recall: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of needed passages that the judge must keep; 0.93.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fit the logprob judge's thresholds on training questions, and keep them where every later run finds them."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .eval_calibrate import run_calibrate

    raise typer.Exit(
        run_calibrate(
            dataset,
            judge_llm=judge_llm,
            limit=limit,
            split=split,
            disjoint_from=tuple(disjoint_from or ()),
            target_recall=target_recall,
            as_json=as_json,
        )
    )
