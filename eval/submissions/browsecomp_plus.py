"""A run over BrowseComp-Plus as its evaluation script and its leaderboard take it.

The forms are those of github.com/texttron/BrowseComp-Plus (README, "Evaluation") and of the leaderboard's page on
submitting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from ...modules.errors import LoadingError, SettingsError
from ...modules.settings import Settings
from ...modules.storage.atomic import write_atomic
from ..datasets.browsecomp_plus import FORMAT
from ..datasets.questions import EvalQuestion
from ..metrics.confidence import calibration_error, stated_confidence
from ..metrics.retrieval import supporting_recall
from ..reports.loaded_run import LoadedRun, load_run
from ..rows.store import RunRow, part_of
from ..scoring.llm_correctness import LLM_CORRECTNESS
from ..scoring.own_metric import MetricStore
from ..scoring.scores import current_scores, row_key

SUMMARY = "submission.json"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """The answers of a run, and its figures over all questions."""

    llm: str
    retriever: str
    answers: tuple[SubmittedAnswer, ...]
    """In the order of the data set."""

    @property
    def is_judged(self) -> bool:
        """Whether every answer is known to be right or wrong."""
        return all(each.is_right is not None for each in self.answers)

    @property
    def accuracy(self) -> float:
        """Share of right answers in percent; an answer that was not judged counts as wrong."""
        return 100 * fmean(bool(each.is_right) for each in self.answers)

    @property
    def recall(self) -> float:
        """Mean share, in percent, of a question's evidence among all pages that were found for it."""
        return fmean(each.recall for each in self.answers)

    @property
    def search_calls(self) -> float:
        """Mean searches of a question."""
        return fmean(each.searches for each in self.answers)

    @property
    def calibration_error(self) -> float | None:
        """Calibration error of the completed answers that were judged, in percent; None for fewer than 100."""
        judged = [each for each in self.answers if each.is_completed and each.is_right is not None]
        return calibration_error(
            [stated_confidence(each.text) for each in judged], [bool(each.is_right) for each in judged]
        )

    def to_document(self, *, link: str = "") -> dict[str, object]:
        """Return the leaderboard's form; figures have two decimals."""
        error = self.calibration_error
        return {
            "LLM": self.llm,
            "Retriever": self.retriever,
            "Accuracy (%)": round(self.accuracy, 2),
            "Recall (%)": round(self.recall, 2),
            "Search Calls": round(self.search_calls, 2),
            "Calibration Error (%)": None if error is None else round(error, 2),
            "Link": link,
            "Evaluation Date": datetime.now(UTC).date().isoformat(),
            "per_query_metrics": [
                {"query_id": each.query_id, "correct": bool(each.is_right), "recall": round(each.recall, 2)}
                for each in self.answers
            ],
        }


@dataclass(frozen=True, kw_only=True)
class SubmittedAnswer:
    """The answer to one question, with what was found for it."""

    query_id: str
    text: str
    is_completed: bool
    """False where the question failed."""
    found: tuple[str, ...]
    """Ids of all pages that any search of the question found, sorted."""
    searches: int
    recall: float
    """Share of the question's evidence in ``found``, in percent."""
    is_right: bool | None
    """Whether the metric llm_correctness finds the answer right; False for a failed question, None without a score."""

    def to_document(self, model: str) -> dict[str, object]:
        """Return the form that the benchmark's evaluation script reads."""
        return {
            "query_id": self.query_id,
            "metadata": {"model": model},
            "tool_call_counts": {"search": self.searches},
            "status": "completed" if self.is_completed else "failed",
            "retrieved_docids": list(self.found),
            "result": [{"type": "output_text", "output": self.text}],
        }


def write_submission(
    run: Path | str,
    out: Path | str,
    *,
    system: str | None = None,
    link: str = "",
    settings: Settings | None = None,
) -> Submission:
    """Write a run over BrowseComp-Plus for its evaluation script, and for its leaderboard if its answers are judged.

    ``out`` gets ``runs/run_0001.json`` and so on, one file a question, which ``evaluate_run.py --input_dir`` takes. It
    gets ``submission.json`` where every answer has a score by ``judgetree eval score RUN --metric llm_correctness``.
    That prompt and model are not the benchmark's, whose script asks Qwen3-32B: say which one a figure is by.

    ::

        submission = evaluation.write_submission("runs/browsecomp", "submission", system="judge")
        print(submission.recall, submission.search_calls)

    Args:
        run: A run directory.
        out: A folder, made if it is missing; files of these names are replaced.
        system: The system whose answers are taken; None where the run has one.
        link: Address of a paper or page about the system, for the leaderboard.
        settings: None reads environment and ``.env``.

    Raises:
        SettingsError: The run is of another data set, has several systems or repeats, or not this system.
        LoadingError: The run, its data set or a tree cannot be read, or a tree is gone.
        WritingError: A file cannot be written.
    """
    loaded = load_run(Path(run), settings)
    rows = _rows_of(loaded, system)
    judged = current_scores(MetricStore(loaded.folder).read()).get(LLM_CORRECTNESS, {})
    values = {key: score.value for key, score in judged.items()}
    questions = loaded.questions
    answers = tuple(_answer(row, questions[row.question_id], loaded, values.get(row_key(row))) for row in rows)
    submission = Submission(llm=_named(loaded, "llm"), retriever=_retriever(loaded, rows[0].system), answers=answers)
    folder = Path(out)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    for number, answer in enumerate(answers, start=1):
        _write(folder / "runs" / f"run_{number:04}.json", answer.to_document(submission.llm))
    (folder / SUMMARY).unlink(missing_ok=True)  # it may be that of an earlier run
    if submission.is_judged:
        _write(folder / SUMMARY, submission.to_document(link=link))
    return submission


def _rows_of(run: LoadedRun, system: str | None) -> Sequence[RunRow]:
    name = run.experiment.dataset.partition(":")[0]
    if name != FORMAT:
        raise SettingsError(f"The run is over {name!r}, and this form is that of {FORMAT}.")
    there = list(dict.fromkeys(row.system for row in run.rows))
    if system not in there and (system is not None or len(there) > 1):
        given = "name one" if system is None else f"it has no {system!r}"
        raise SettingsError(f"The run has the systems {', '.join(there)}: {given} (--system).")
    if run.experiment.repeats > 1:
        raise SettingsError(f"The run has {run.experiment.repeats} answers to each question, and this form takes one.")
    return [row for row in run.rows if row.system == (system or there[0])]


def _answer(row: RunRow, question: EvalQuestion, run: LoadedRun, value: float | None) -> SubmittedAnswer:
    tree = run.trees.read(row.thread_id) if row.tree is not None else None
    if tree is None and row.tree is not None:
        raise LoadingError(f"{run.folder} has lost the tree of {row.question_id!r}, so that its searches are unknown.")
    found = {key for chunk in row.chunks for key in chunk.keys}
    is_completed = row.completeness != "failed"
    return SubmittedAnswer(
        query_id=row.question_id,
        text=row.prediction,
        is_completed=is_completed,
        found=tuple(sorted(found)),
        searches=sum(len(query.searches) for query in tree.query_nodes()) if tree else 0,
        recall=100 * supporting_recall(found, question.supporting) if question.supporting else 0.0,
        is_right=False if not is_completed else None if value is None else value >= 1,
    )


def _named(run: LoadedRun, name: str) -> str:
    return str(part_of(run.manifest, "identity").get(name) or "unknown")


def _retriever(run: LoadedRun, system: str) -> str:
    """Say how the system searched: its name, the kind of search, the embedding model and top-k."""
    experiment = run.experiment
    embeds = "" if experiment.search_type == "sparse" else f" by {_named(run, 'embeddings')}"
    return f"judgetree {system}: {experiment.search_type}{embeds}, top-k {experiment.topk}"


def _write(file: Path, document: Mapping[str, object]) -> None:
    write_atomic(file, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
