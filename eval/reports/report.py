"""The report of a run: a table to read, and its rows for other programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.calls.prices import Cost
from ...modules.errors import SettingsError
from ..calibration.judge_figures import JudgeFigures, judges_of
from ..rows.code_version import code_versions_in, mixed_versions
from .conversation import conversation_frame, conversation_lines
from .failures import FailureKind, completeness_counts, damage_lines, failure_kind
from .frames import (
    ANSWER_METRICS,
    COST_METRICS,
    common_frame,
    failure_frame,
    ks_of,
    records_of,
    retrieval_metrics,
    system_frame,
)
from .judge import judge_documents, judge_section
from .loaded_run import LoadedRun, load_run, missing_answers, paid_by_system, score_rows
from .means import noise_frame, noise_lines, split_frame
from .ragas import missing_counts, ragas_columns_in, ragas_lines
from .system_table import common_lines, count_lines, system_table

SPLIT_METRICS = ("em", "f1")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run came to."""

    run: Path
    dataset: str
    questions: pd.DataFrame
    """See ``frames.question_frame``."""
    systems: pd.DataFrame
    """See ``frames.system_frame``; each mean is over the system's own questions."""
    common: pd.DataFrame
    """See ``frames.common_frame``; means that can be compared where those of ``systems`` cannot."""
    splits: pd.DataFrame
    """See ``splits.split_frame``."""
    failures: pd.DataFrame
    """See ``frames.failure_frame``."""
    noise: pd.DataFrame
    """See ``noise.noise_frame``; empty unless questions were repeated."""
    judges: Mapping[str, JudgeFigures]
    """By system, of those that judge; see ``metrics.judge``."""
    paid: Mapping[str, Cost]
    """By system, what its answers have cost, those that were asked again included."""
    asked_again: int = 0
    """Answers that a later attempt has replaced."""
    missing: int = 0
    """Answers that the run is to have and has not yet."""
    files: tuple[Path, ...]
    """What was written."""
    conversation: pd.DataFrame
    """See ``conversation.conversation_frame``; empty unless turns of dialogues were asked."""
    conversation_lines: tuple[str, ...] = ()
    """The same in Markdown."""
    version_lines: tuple[str, ...] = ()
    """What is said of rows that several versions of the code have made, in Markdown."""
    baseline: str | None = None
    """What the systems are compared with on the page; see ``compare.compare_runs``."""
    shown: tuple[str, ...]
    """Metrics of ``systems`` that the table shows, in its order."""

    def to_markdown(self) -> str:
        """The table of systems, with 95 % intervals; shares in per cent; and a section for all else that there is."""
        lines = [f"# {self.dataset}", "", *system_table(self.questions, self.systems, self.shown)]
        lines += [
            *count_lines(self.questions, self.missing),
            *common_lines(self.questions, self.common, self.shown),
            "",
            "Means over n questions; in brackets 95 % intervals (Wilson's for shares, else the bootstrap's), and n "
            "where it is another. EM, F1 and supporting shares in per cent; calls, cost, sub-runs and seconds a "
            "question. A failed question scores 0, a refused unanswerable one 1.",
            *damage_lines(self.questions),
            *self.version_lines,
            "Calls, cost and seconds are those of all calls, as if none had come out of the cache. "
            f"Paid in all: {_paid_in_all(self.paid, self.asked_again)}; {_cached_in_all(self.questions)}.",
            *noise_lines(self.noise),
            *ragas_lines(self.questions, self.systems, self.common),
            *self.conversation_lines,
            *(line for system, figures in self.judges.items() for line in ("", *judge_section(system, figures))),
        ]
        return "\n".join(lines)

    def to_document(self) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes."""
        missing = missing_counts(self.questions)
        return {
            "run": str(self.run),
            "dataset": self.dataset,
            "systems": records_of(self.systems),
            "completeness": completeness_counts(self.questions),
            "missing": self.missing,
            "paid": {
                name: {"cost_usd": cost.usd, "cost_known_usd": cost.known_usd} for name, cost in self.paid.items()
            },
            "common": records_of(self.common),
            "splits": records_of(self.splits),
            "failures": records_of(self.failures),
            "noise": records_of(self.noise),
            "conversation": records_of(self.conversation),
            "ragas_missing": missing,
            "judges": judge_documents(self.judges),
        }


def load_report(folder: Path, *, baseline: str | None = None) -> Report:
    """Score the rows of a run directory and draw the intervals of its means; writes nothing.

    Raises:
        UserError: See ``load_run``; or the tree of a wrong answer is damaged.
    """
    return report_of(load_run(folder), baseline=baseline)


def report_of(run: LoadedRun, *, baseline: str | None = None) -> Report:
    """The report of a run that has been read; writes nothing. 500 questions of three systems take some seconds.

    Raises:
        LoadingError: The tree of a wrong answer is damaged.
    """
    questions, seed = score_rows(run), run.experiment.seed
    questions["failure"] = _failures(run)
    ks = ks_of(run.experiment.topk)
    metrics = [name for name in (*ANSWER_METRICS, *retrieval_metrics(ks), *COST_METRICS) if name in questions]
    metrics += ragas_columns_in(questions)
    conversation = conversation_frame(questions, ks=ks, seed=seed)
    return Report(
        run=run.folder,
        dataset=run.experiment.dataset,
        questions=questions,
        systems=system_frame(questions, metrics, seed=seed),
        common=common_frame(questions, metrics, seed=seed),
        splits=split_frame(questions, SPLIT_METRICS, seed=seed),
        failures=failure_frame(questions),
        noise=noise_frame(questions),
        judges=judges_of(run.rows, run.dataset.questions, seed=seed),
        paid=paid_by_system(run),
        asked_again=len(run.replaced),
        missing=missing_answers(run),
        files=(),
        conversation=conversation,
        conversation_lines=tuple(conversation_lines(conversation, ks=ks, history=run.experiment.history)),
        version_lines=tuple(mixed_versions(code_versions_in(run.manifest), _rows_by_code(questions))),
        baseline=baseline or run.baseline,
        shown=_wanted(run.experiment.metrics, metrics, ks),
    )


def _rows_by_code(questions: pd.DataFrame) -> dict[str, int]:
    return {str(code): int(rows) for code, rows in questions["code"].value_counts().items()}


def _wanted(metrics: tuple[str, ...] | None, there: Collection[str], ks: Sequence[int]) -> tuple[str, ...]:
    unknown = [metric for metric in metrics or () if metric not in there]
    if unknown:
        raise SettingsError(
            f"The experiment's metrics name {', '.join(unknown)}, which this run has not. Allowed: {', '.join(there)}."
        )
    found = (f"all@{ks[0]}", "tree_all")
    costs = ("chat_calls", "paid_chat_calls", "cost_usd", "sub_runs", "seconds")
    return metrics or ("em", "f1", "cover_em", *found, *costs)


def _failures(run: LoadedRun) -> list[FailureKind | None]:
    """Of each row of ``frames.question_frame``, in its order."""
    by_id = run.questions
    known = [(row, by_id[row.question_id]) for row in run.rows if row.question_id in by_id]
    return [failure_kind(row, question, partial(run.trees.read, row.thread_id)) for row, question in known]


def _paid_in_all(paid: Mapping[str, Cost], asked_again: int) -> str:
    costs = ", ".join(f"{system} {cost}" for system, cost in paid.items())
    replaced = f" ({count_of(asked_again, 'answer')} that a later attempt replaced included)"
    return costs + (replaced if asked_again else "")


def _cached_in_all(questions: pd.DataFrame) -> str:
    """The share of calls that the cache answered, and that of calls whose tokens are estimates if there are any."""
    columns = [questions.get(name) for name in ("chat_calls", "cached_chat_calls", "estimated_chat_calls")]
    calls, cached, estimated = (0.0 if column is None else float(column.sum()) for column in columns)
    share = f"{cached / calls if calls else 0:.0%} of the calls came out of the cache"
    return f"{share}, and the tokens of {estimated / calls:.0%} are estimates" if estimated else share
