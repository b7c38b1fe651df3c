"""``judgetree eval calibrate``: thresholds of the ``logprob`` judge."""

from __future__ import annotations

from pathlib import Path

from ...modules.errors import needs_extra
from ...modules.settings import load_settings
from ..terminal.exit_status import FAILED, INTERRUPTED, OK
from ..terminal.terminal import progress_bar, say, write_json, write_result


def run_calibrate(
    dataset: str,
    *,
    judge_llm: str | None,
    limit: int | None,
    split: str | None,
    disjoint_from: tuple[Path, ...],
    target_recall: float | None,
    as_json: bool,
) -> int:
    """Calibrate, and tell what was fitted. 1 if the model does not discriminate, so that nothing was written.

    Raises:
        UserError: Something to mend; calls that were paid are kept.
    """
    with needs_extra("eval"):
        from ...evaluation.calibration.calibrate import CalibrationPlan, calibrate
        from ...evaluation.calibration.fit import TARGET_RECALL
    plan = CalibrationPlan(
        dataset=dataset,
        split=split,
        limit=limit,
        disjoint_from=disjoint_from,
        target_recall=TARGET_RECALL if target_recall is None else target_recall,
    )
    try:
        with progress_bar() as on_progress:
            outcome = calibrate(plan, settings=load_settings(judge_llm=judge_llm), on_progress=on_progress)
    except KeyboardInterrupt:
        say("Stopped. What was asked is kept; the same command goes on.")
        return INTERRUPTED
    if as_json:
        write_json(outcome.to_document())
    else:
        write_result(outcome.to_text())
    return OK if outcome.file else FAILED
