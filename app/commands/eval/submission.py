"""``judgetree eval submission``: a run in the form that a benchmark takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....modules.errors import needs_extra
from ...terminal.terminal import busy, say
from ..options import RunFolder


def submission(
    folder: RunFolder,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files, which are replaced.")],
    system: Annotated[str | None, typer.Option(metavar="NAME", help="Whose answers, of several.")] = None,
    link: Annotated[str, typer.Option(metavar="URL", help="Paper or page about the system, for the leaderboard.")] = "",
) -> None:
    """Write a run over BrowseComp-Plus for its evaluation script, and for its leaderboard once answers are scored.

    The script reads FOLDER/runs. FOLDER/submission.json has accuracy, recall, search calls and calibration error; it is
    written where `judgetree eval score RUN --metric llm_correctness` has scored every answer.

    Examples:
        judgetree eval submission runs/browsecomp --out submission
    """
    with busy("reading the run"), needs_extra("eval"):
        from ....evaluation.submissions.browsecomp_plus import SUMMARY, write_submission

        written = write_submission(folder, out, system=system, link=link)
    say(f"{len(written.answers):,} answers: {out / 'runs'}")
    say(f"recall {written.recall:.2f} %, {written.search_calls:.2f} search calls")
    if written.is_judged:
        error = written.calibration_error
        shown = "unknown: fewer than 100 answers" if error is None else f"{error:.2f} %"
        say(f"accuracy {written.accuracy:.2f} %, calibration error {shown}: {out / SUMMARY}")
    else:
        say(f"No {SUMMARY}: score the answers first, by judgetree eval score {folder} --metric llm_correctness.")
