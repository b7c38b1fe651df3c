"""Export of a run as training data: its trees, what is known to be right in them, one JSON line an example."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ...modules.calls.prompts import DEFAULT_PROMPTS
from ...modules.errors import SettingsError
from ...modules.judge.contract import Score
from ...modules.settings import Settings
from ...modules.storage.atomic import write_atomic
from ..calibration.data import check_not_held_back
from ..datasets.registry import DATASETS
from ..labels.judgements import read_judgements
from ..reports.loaded_run import LoadedRun, load_run
from ..runs.experiment import Experiment
from .examples import Example, LeftOut, TrainingFormat
from .gold import GoldTree
from .kinds import KINDS, ExampleSource, What


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The training data of a run."""

    records: tuple[dict[str, object], ...]
    """Columns of TRL's data set formats, and run, thread and node; ``datasets.Dataset.from_list`` takes them."""
    left_out: Mapping[LeftOut, int]
    """How many things of the trees gave no example, by the reason."""

    def to_jsonl(self) -> str:
        """Return one JSON line a record."""
        return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)


def export(
    run: Path | str,
    what: What,
    format: TrainingFormat = "messages",
    *,
    out: Path | str | None = None,
    systems: Sequence[str] | None = None,
    any_split: bool = False,
    settings: Settings | None = None,
) -> TrainingData:
    """Collect training data from the trees of a run; calls no model.

    ::

        data = export("runs/train", "judge")
        datasets.Dataset.from_list(list(data.records))

    Args:
        run: A run directory.
        what: judge: verdicts on chunks. sub_question: supplementary questions that led to gold. reader: evidence with
            the gold answer. preference: supplementary questions that led to gold, with ones that did not.
        format: messages: chats. jsonl: prompt and reply as texts, with the fields of each kind.
        out: A file to write, one JSON line an example; None writes none.
        systems: Systems whose trees are taken; None for all.
        any_split: Take questions that are not known to be for training too.
        settings: None reads environment and ``.env``.

    Raises:
        SettingsError: The questions are not known to be for training, or an argument is not allowed.
        LoadingError: The run, its data set, a tree or its labels cannot be read.
        WritingError: The file cannot be written; it is unchanged.
    """
    for name, given, allowed in (("what", what, get_args(What)), ("format", format, get_args(TrainingFormat))):
        if given not in allowed:
            raise SettingsError(f"{name}={given!r} is not allowed. Allowed: {', '.join(allowed)}.")
    loaded = load_run(Path(run), settings)
    teaching = ExampleSource(
        run=str(loaded.manifest.get("run_id", "")),
        split=_split_of(loaded.experiment, any_split=any_split),
        judge_kind=_judge_kind(loaded),
        prompts=loaded.experiment.prompts or DEFAULT_PROMPTS,
    )
    examples: dict[tuple[object, ...], Example] = {}
    left_out: Counter[LeftOut] = Counter()
    for golds, missing in _trees_by_question(loaded, systems):
        left_out["tree missing"] += missing
        for found in KINDS[what](golds, teaching):
            if not isinstance(found, Example):
                left_out[found] += 1
            elif examples.setdefault(found.content, found) is not found:
                left_out["the same again"] += 1
    data = TrainingData(records=tuple(each.to_document(format) for each in examples.values()), left_out=+left_out)
    if out is not None:
        write_atomic(Path(out), data.to_jsonl())
    return data


def _trees_by_question(run: LoadedRun, systems: Sequence[str] | None) -> Iterator[tuple[list[GoldTree], int]]:
    """Yield the trees of each question that has some, question after question, and how many of its rows lack theirs."""
    there = dict.fromkeys(row.system for row in run.rows)
    if unknown := sorted(set(systems or ()) - set(there)):
        raise SettingsError(f"The run has no system {', '.join(unknown)}. It has: {', '.join(there)}.")
    labels: dict[str, Score] = {each.passage.id: each.score for each in read_judgements(run.folder).settled}
    questions = run.questions
    wanted = [row for row in run.rows if row.question_id in questions and (systems is None or row.system in systems)]
    for question_id, rows in itertools.groupby(wanted, key=lambda row: row.question_id):
        question = questions[question_id]
        trees = [(row, run.trees.read(row.thread_id)) for row in rows if row.status != "failed"]
        golds = [GoldTree(row=row, question=question, tree=tree, labels=labels) for row, tree in trees if tree]
        yield golds, len(trees) - len(golds)


def _split_of(experiment: Experiment, *, any_split: bool) -> str:
    """Return the split of an experiment's questions, by the name of their data set.

    Raises:
        SettingsError: They are not known to be for training, and ``any_split`` is False.
    """
    name, _, path = experiment.dataset.partition(":")
    split = experiment.split or ("test" if name == "beir" else None)
    try:
        check_not_held_back(Path(path).name if name in DATASETS else experiment.dataset, split)
    except SettingsError as error:
        if any_split:
            return "unknown"
        raise SettingsError(
            f"{experiment.dataset!r} is not known to hold training questions: only a name with the word train says so. "
            "What is trained on it must not be measured on it. To export it all the same, give --any-split."
        ) from error
    return "train"


def _judge_kind(run: LoadedRun) -> str:
    judge = run.manifest.get("judge")
    return str(judge.get("kind", "")) if isinstance(judge, Mapping) else ""
