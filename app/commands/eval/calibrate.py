"""``judgetree eval calibrate``: fits a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ....modules.errors import needs_extra
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, progress_bar, resumable, write_json, write_result
from ..options import Json, Prompts

FittedName = Literal["generated", "batched", "logprob", "embedding", "cascade", "fused"]
# A copy, since the module that defines it takes a second to import; a test compares them.


def calibrate(  # noqa: PLR0913 - one parameter an option
    *,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME:PATH", help="Such as hotpotqa:hotpot_train_v1.1.json.")
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Run directory labelled by hand, in place of a data set; may be repeated."),
    ] = None,
    judge: Annotated[
        FittedName,
        typer.Option(help="Judge to fit: its thresholds, weights, and curve of probabilities."),
    ] = "logprob",
    judge_llm: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Model to calibrate; else JUDGETREE_JUDGE_LLM.")
    ] = None,
    prompts: Prompts = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions; default: all.")] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="train", help="Say train where the file's name does not show that it is for training."),
    ] = None,
    disjoint_from: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Run directory whose questions must not be among them; may be repeated."),
    ] = None,
    target_recall: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of needed passages that the judge must keep; default: 0.93."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a judge on training questions or labels by hand, and save the fit for all later runs.

    Examples:
        judgetree eval calibrate --dataset hotpotqa:hotpot_train_v1.1.json --limit 200
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.calibration.calibrate import CalibrationPlan
        from ....evaluation.calibration.calibrate import calibrate as fit_thresholds
        from ....evaluation.calibration.fit import TARGET_RECALL
        from ....modules.settings import load_settings

    plan = CalibrationPlan(
        dataset=dataset or "",
        labels=tuple(labels or ()),
        judge=judge,
        split=split,
        limit=limit,
        disjoint_from=tuple(disjoint_from or ()),
        target_recall=TARGET_RECALL if target_recall is None else target_recall,
    )
    with resumable(lambda: "Verdicts so far are kept"), progress_bar() as on_progress:
        outcome = fit_thresholds(
            plan, settings=load_settings(judge_llm=judge_llm, prompts=prompts), on_progress=on_progress
        )
    if as_json:
        write_json(outcome.to_document())
    else:
        write_result(outcome.to_text())
    if not outcome.file:  # the model does not discriminate
        raise typer.Exit(FAILED)
