"""``judgetree eval record``: records what any policy could ask, for replays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....graphs.threads.depth import MAX_REC_DEPTH
from ....modules.errors import needs_extra
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, counting_bar, progress_bar, say, write_json
from ..options import (
    Columns,
    Corpus,
    Encoding,
    FailAfter,
    Json,
    JudgeKind,
    JudgeLlm,
    Llm,
    Questions,
    Separator,
    SkipBadRows,
    TopK,
    question_keys,
)

if TYPE_CHECKING:
    from ....evaluation.replay.recorder import Coverage


def record(  # noqa: PLR0913 - one parameter an option
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the recording; the same one resumes it.")],
    *,
    dataset: Annotated[str | None, typer.Option(metavar="NAME:PATH", help="Questions, as for eval run.")] = None,
    questions: Questions = None,
    columns: Columns = None,
    separator: Separator = None,
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = False,
    corpus: Corpus = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML of an experiment, for the rest.")] = None,
    depth: Annotated[int, typer.Option(min=0, max=MAX_REC_DEPTH, metavar="N", help="Levels of sub-questions.")] = 1,
    tries: Annotated[int, typer.Option(min=1, metavar="N", help="Sub-questions of each chunk.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions; the corpus stays.")] = None,
    max_llm_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most calls of a question.")] = None,
    llm: Llm = None,
    judge_llm: JudgeLlm = None,
    judge: JudgeKind = None,
    fail_after: FailAfter = None,
    topk: TopK = None,
    as_json: Json = False,
) -> None:
    """Search and judge whatever could be asked on: every chunk asks, whatever its verdict."""
    with busy("starting"), needs_extra("eval"):
        from ....evaluation.record_and_replay import record as record_experiment
        from ....evaluation.runs.experiment import load_experiment

    keys: dict[str, object] = {
        "dataset": dataset,
        **question_keys(
            questions=questions,
            columns=columns,
            separator=separator,
            encoding=encoding,
            skip_bad_rows=skip_bad_rows,
        ),
        "corpus": corpus,
        "limit": limit,
        "max_llm_calls": max_llm_calls,
        "llm": llm,
        "judge_llm": judge_llm,
        "judge": judge,
        "topk": topk,
        "fail_after": fail_after,
        "systems": ["judge"],
    }
    with progress_bar() as on_setup, counting_bar("questions") as show:
        coverage = record_experiment(
            load_experiment(config, **keys),
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
