"""``judgetree eval record``: records what any policy could ask, for replays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....evaluation.runs.experiment import Experiment
from ....graphs.search.depth import MAX_REC_DEPTH
from ....modules.errors import needs_extra
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, counting_bar, progress_bar, say, write_json
from ..config_options import check_no_lists, takes
from ..options import Json, Questions

if TYPE_CHECKING:
    from ....evaluation.replay.recorder import Coverage


@takes(Experiment, without=("conversation", "systems", "history", "match_budget", "primary"), apart=True)
def record(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the recording; the same one resumes it.")],
    *,
    questions: Questions = None,
    depth: Annotated[int, typer.Option(min=0, max=MAX_REC_DEPTH, metavar="N", help="Levels of sub-questions.")] = 1,
    tries: Annotated[int, typer.Option(min=1, metavar="N", help="Sub-questions of each chunk.")] = 1,
    as_json: Json = False,
    config: dict[str, object],
    config_file: Path | None,
) -> None:
    """Record searches for `judgetree replay`: every chunk asks its sub-question, whatever its verdict.

    Examples:
        judgetree eval record runs/recording --questions my.csv --corpus handbook
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.record_and_replay import record as record_experiment
        from ....evaluation.runs.experiment import experiment_keys, load_experiment

    config |= {"questions": questions} if questions is not None else {}
    check_no_lists(Experiment, experiment_keys(config_file, **config))
    with progress_bar() as on_setup, counting_bar("questions") as show:
        coverage = record_experiment(
            load_experiment(config_file, **config, systems=["judge"]),
            out=out,
            depth=depth,
            width=tries,
            on_setup=on_setup,
            on_progress=lambda done, total: show(done, total, ""),
        )
    if as_json:
        write_json(vars(coverage))
    else:
        say(_summary_text(coverage))
    if coverage.failed:
        raise typer.Exit(FAILED)


def _summary_text(coverage: Coverage) -> str:
    lines = [
        f"{coverage.questions} questions · {coverage.queries} distinct queries · {coverage.calls} model calls · "
        f"{len(coverage.cut_off)} questions cut off by the budget · {len(coverage.failed)} failed"
    ]
    if coverage.failed:
        lines.append(f"The first that failed: {coverage.failure}")
    if coverage.unknown or coverage.unwritten:
        lines.append(
            f"{coverage.unknown} verdicts are unknown, and {coverage.unwritten} chunks miss further questions, since "
            "calls failed."
        )
    if coverage.failed or coverage.unknown or coverage.unwritten or coverage.cut_off:
        lines.append("The same command asks for what is missing.")
    return "\n".join(lines)
