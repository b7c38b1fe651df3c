"""The report of a run: a table to read, and its rows for other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ..modules.errors import LoadingError, SettingsError
from .dataset_registry import load_dataset
from .experiment import Experiment, load_experiment
from .frames import ANSWER_METRICS, COST_METRICS, RETRIEVAL_METRICS, question_frame, system_frame
from .run_store import Manifest, RunStore

_SHOWN = ("em", "f1", "cover_em", "all@3", "tree_all", "chat_calls", "cached_chat_calls", "sub_runs", "seconds")
_SHARES = frozenset((*ANSWER_METRICS, *RETRIEVAL_METRICS))
_NAMES = {
    "em": "EM",
    "f1": "F1",
    "cover_em": "cover EM",
    "all@3": "all supporting @3",
    "tree_all": "all supporting in the tree",
    "chat_calls": "calls paid",
    "cached_chat_calls": "calls cached",
    "sub_runs": "sub-runs",
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run came to."""

    run: Path
    dataset: str
    questions: pd.DataFrame
    """See ``frames.question_frame``."""
    systems: pd.DataFrame
    """See ``frames.system_frame``."""
    files: tuple[Path, ...]
    """What was written."""

    def to_markdown(self) -> str:
        """The table of systems, with 95 % intervals; shares in per cent."""
        counts = self.questions.groupby("system", sort=False)["status"].value_counts().unstack(fill_value=0)
        head = ["system", "n", "failed", "refused", *(_NAMES.get(metric, metric) for metric in _SHOWN)]
        lines = [f"# {self.dataset}", "", _line(head), _line(["---"] * len(head))]
        for system, part in self.systems.groupby("system", sort=False):
            by_metric = part.set_index("metric")
            cells = [str(counts.loc[system].get(status, 0)) for status in ("failed", "refused")]
            shown = [_shown(metric, by_metric.loc[metric]) if metric in by_metric.index else "" for metric in _SHOWN]
            lines.append(_line([str(system), str(int(counts.loc[system].sum())), *cells, *shown]))
        lines += [
            "",
            "Means over questions; in brackets 95 % bootstrap intervals. EM, F1 and supporting shares in per cent; "
            "calls, sub-runs and seconds a question. A failed question scores 0, a refused unanswerable one 1.",
        ]
        return "\n".join(lines)

    def to_document(self) -> dict[str, object]:
        """Plain data that ``json.dumps`` takes."""
        records = self.systems.astype(object).where(self.systems.notna(), None).to_dict(orient="records")
        return {"run": str(self.run), "dataset": self.dataset, "systems": records}


def load_report(folder: Path) -> Report:
    """Score the rows of a run directory and draw the intervals of its means; writes nothing.

    Raises:
        UserError: See ``load_questions``.
    """
    dataset, questions = load_questions(folder)
    metrics = [name for name in (*ANSWER_METRICS, *RETRIEVAL_METRICS, *COST_METRICS) if name in questions]
    systems = system_frame(questions, metrics)
    return Report(run=folder, dataset=dataset, questions=questions, systems=systems, files=())


def load_questions(folder: Path) -> tuple[str, pd.DataFrame]:
    """The data set's spec, and the scored rows of a run directory (see ``frames.question_frame``).

    Raises:
        LoadingError: There is no run, it has no row, or its data set cannot be read.
        SettingsError: The data set is no longer what the run was asked of.
    """
    store = RunStore(folder)
    manifest = store.read_manifest()
    rows = store.read_rows()
    if manifest is None or not rows:
        raise LoadingError(f"{folder} holds no finished question. Run `judgetree eval run --out {folder} …` first.")
    experiment = _experiment_of(manifest)
    dataset = load_dataset(experiment.dataset, split=experiment.split)
    identity = manifest.get("identity")
    if isinstance(identity, dict) and identity.get("dataset_digest") != dataset.digest:
        raise SettingsError(
            f"{experiment.dataset} has changed since {folder} was run, so its gold answers are others. "
            "Bring back the file of that run, or run again with another --out."
        )
    return experiment.dataset, question_frame(rows, dataset.questions)


def write_report(folder: Path) -> Report:
    """``load_report``, and write report.md, results.csv and results.parquet into the run directory.

    Raises:
        UserError: See ``load_report``.
    """
    report = load_report(folder)
    files = tuple(folder / name for name in ("report.md", "results.csv", "results.parquet"))
    markdown, table, columns = files
    markdown.write_text(report.to_markdown() + "\n", encoding="utf-8")
    report.questions.to_csv(table, index=False)
    report.questions.to_parquet(columns, index=False)
    return replace(report, files=files)


def _experiment_of(manifest: Manifest) -> Experiment:
    kept = manifest.get("experiment")
    return load_experiment(None, **(kept if isinstance(kept, dict) else {}))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(metric: str, row: pd.Series) -> str:
    scale, digits = (100.0, 1) if metric in _SHARES else (1.0, 2)
    mean, low, high = (
        f"{value * scale:.{digits}f}" if pd.notna(value) else "" for value in row[["mean", "low", "high"]]
    )
    return f"{mean} ({low} to {high})" if low else mean
