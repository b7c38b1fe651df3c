"""What experiments keep of runs: a row for each question and system, without a text of the data set."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from judgetree import evaluation

_COLUMNS = {
    "question_id": "id",
    "type": "type",
    "system": "system",
    "evidence": "evidence",
    "tree_all": "found",
    "llm_calls": "calls",
    "prompt_tokens": "tokens",
}


def question_rows(run: Path) -> pd.DataFrame:
    """Return id, type, system, calls and prompt tokens, a row an answer.

    ``evidence`` is 1 where the readers saw all needed documents, ``found`` where the search found them, whatever the
    judge said of them.
    """
    rows = evaluation.load_report(run).questions
    return (
        rows[[*_COLUMNS]].rename(columns=_COLUMNS).astype({"evidence": int, "found": int, "calls": int, "tokens": int})
    )
