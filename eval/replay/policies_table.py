"""The table of a replay, the same on its page and in the terminal: a row for each budget and policy."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ..rows.provenance import provenance_words
from ..tables.narrow import sections_narrow
from ..tables.table import Cell, Section, Table, estimate_cell
from .outcome import Replay
from .summary import is_shown

_PER_CENT = {"complete": "evidence complete", "recall": "gold recall", "area": "area", "em": "EM", "f1": "F1"}
EXPLAINED = (
    "Per cent, with 95 % intervals. Complete: all gold documents are among the chunks that some reader is shown; "
    "recall: the share of them; area: the mean recall over the calls from 0 to the budget. With each is its "
    "difference from the baseline on the same questions, p adjusted by Holm over all policies and budgets; a figure "
    "whose difference was shown is bold. Coverage: questions in which nothing was asked that is not recorded."
)


_COUNTED = ("without_gold", "unfinished", "unknown_verdicts", "unwritten")
"""Facts that are told where there are any."""


def replay_text(played: Replay, width: int) -> str:
    """Write the table and the words of a replay for lines of so many characters."""
    blocks = (policies_table(played.summary), EXPLAINED, _bulleted(played.words()), provenance_words(facts_of(played)))
    return sections_narrow([Section(title=f"Replay of {played.of['recording']}", blocks=blocks)], width)


def facts_of(played: Replay) -> dict[str, str]:
    """Return what a replay was made of and played with, by name; facts that it does not have are left out."""
    facts = {**played.of, "baseline": played.baseline}
    none = {name for name, value in facts.items() if value in (None, "") or (name in _COUNTED and value == 0)}
    return {name.replace("_", " "): str(value) for name, value in facts.items() if name not in none}


def _bulleted(words: list[str]) -> str:
    return "\n".join(f"- {each}" for each in words)


def policies_table(summary: pd.DataFrame) -> Table:
    """Return a table with a row for each budget and policy: scores in per cent, calls, and what was recorded."""
    scores = {score: name for score, name in _PER_CENT.items() if score in summary}
    head = ("policy", "budget", *scores.values(), "calls", "sub-questions", "coverage")
    return Table.of(head, (list(_cells(row, list(scores))) for _, row in summary.iterrows()))


def _cells(row: pd.Series[float], scores: list[str]) -> Iterator[Cell | str]:
    yield str(row["policy"])
    yield f"{row['budget']:,}"
    for score in scores:
        prefix = "" if score == "complete" else f"{score}_"
        low, high, difference = row[f"{prefix}low"], row[f"{prefix}high"], _difference(row, prefix)
        is_bold = bool(difference) and is_shown(row, score)
        yield estimate_cell(row[score], low, high, _per_cent, note=difference, is_bold=is_bold)
    yield f"{row['calls']:.1f}"
    yield f"{row['sub_runs']:.1f}"
    yield f"{100 * row['coverage']:.0f}"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}"


def _difference(row: pd.Series[float], prefix: str) -> str:
    gain, low, high, p = (row.get(f"{prefix}{end}") for end in ("gain", "gain_low", "gain_high", "p"))
    if gain is None or pd.isna(gain):
        return ""
    between = "" if pd.isna(low) else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{100 * gain:+.1f}{between}, p {p:.2g}"
