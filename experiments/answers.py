"""Asks a real model the questions of stage B by six ways to search, five questions at a time, and keeps the answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgetree import evaluation
from judgetree.evaluation.calibration.calibrate import CalibrationPlan, calibrate
from judgetree.evaluation.runs.experiment import experiment_keys
from judgetree.modules.judge.fits import fits_file
from judgetree.modules.llm.local import start_local_model, stop_local_models
from judgetree.modules.llm.model_files import ensure_model_file, find_own_model_file
from judgetree.modules.settings import Settings, load_settings
from judgetree.modules.storage.atomic import write_atomic

from .batches import HERE, batches, kept_file, kept_folder, with_bar
from .evidence import JUDGE, MATCHED, as_many_tokens
from .kept import read_kept
from .outcomes import outcomes
from .record import STAGE_A

logger = logging.getLogger(__name__)

STAGE_B = ("stage_b_hotpotqa", "stage_b_2wiki")
CONFIG = HERE / "answers.yaml"
CONTEXT_TOKENS = 6_400
"""Of a model that this process runs: the usual 4,096 hold too few passages, and more let it repeat itself for long."""
MOST_CHARACTERS = 200
"""Of an answer that is kept: a model may recite a passage."""
NAMES = ("naive, 3 passages", "three passages and a link", JUDGE, "ircot, 3 rounds", "self-ask, 3 rounds")
"""The systems of ``answers.yaml``, in words."""
_COLUMNS = {
    "question_id": "id",
    "type": "type",
    "system": "system",
    "status": "status",
    "prediction": "answer",
    "em": "em",
    "f1": "f1",
    "cover_em": "cover_em",
    "evidence": "evidence",
    "llm_calls": "calls",
    "prompt_tokens": "tokens",
    "completion_tokens": "written",
    "seconds": "seconds",
    "unusable_verdicts": "unusable",
    "cut_off_replies": "cut_off",
}


def kept_answers(model: str) -> Path:
    """Return the file that keeps the answers of a model."""
    return kept_folder(model) / "answers.csv"


def read_answers(file: Path) -> pd.DataFrame:
    """Read the rows of a file; there is none if the file is missing."""
    if not file.exists():
        return pd.DataFrame(columns=["part", *_COLUMNS.values()])
    return pd.read_csv(file, keep_default_na=False)


def systems_of(topk: int) -> Mapping[str, object]:
    """Return what is compared, by its name on the page: plain retrieval of ``topk`` passages beside the file's."""
    listed = dict(zip(NAMES, experiment_keys(CONFIG)["systems"], strict=True))
    return {NAMES[0]: listed.pop(NAMES[0]), MATCHED: {"naive": {"topk": topk}}, **listed}


def passages_of(model: str) -> Mapping[str, int]:
    """Return with how many passages plain retrieval takes as many tokens as the judge, by part of stage B."""
    questions = [each for name in STAGE_A for each in read_kept(kept_file(name, model))]
    found = as_many_tokens(outcomes(questions))
    return {name: found[of] for name, of in zip(STAGE_B, STAGE_A, strict=True)}


def answer(folder: Path, *, work: Path, model: str, most: int) -> None:
    """Ask what is not yet kept of stage B, with a bar of progress; stage A must be whole."""
    file = kept_answers(model)
    known = set(read_answers(file)["id"])
    if not (waiting := list(batches(dict.fromkeys(STAGE_B, known), most=most))):
        return
    settings = load_settings(home=work / "home", embeddings=str(experiment_keys(CONFIG)["embeddings"]), llm=model)
    if not fits_file(settings).exists():  # no model is called for that
        data = f"experiments.questions:training:{folder}"
        calibrate(CalibrationPlan(judge="embedding", dataset=data, split="train"), settings=settings)
    start_with_room(settings)
    passages = passages_of(model)
    for name, ids in with_bar(", ".join(STAGE_B), iter(waiting)):
        rows = _asked(name, ids, folder, work, settings, systems_of(passages[name]))
        if failed := (rows["status"] == "failed").sum():
            logger.warning("%s of %s answers of %s failed, see %s", failed, len(rows), name, work / f"{name}_{ids[0]}")
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        write_atomic(file, before + rows.to_csv(header=not before, index=False, lineterminator="\n"))


def start_with_room(settings: Settings) -> None:
    """Start a model that this process runs with room for all passages; one that stage A has started has less."""
    if settings.llm.startswith("local:"):
        path = settings.llm.removeprefix("local:")
        file = find_own_model_file(path) if path else ensure_model_file(settings.home)
        stop_local_models()
        start_local_model(file, context_tokens=CONTEXT_TOKENS)


def _asked(
    name: str, ids: Sequence[str], folder: Path, work: Path, settings: Settings, systems: Mapping[str, object]
) -> pd.DataFrame:
    """Ask all systems some questions of a part, and return a row an answer.

    A batch that was stopped goes on where it was, as its run directory is named by its first question.
    """
    experiment = evaluation.load_experiment(
        CONFIG,
        dataset=f"experiments.questions:{name}:{folder}",
        ids=tuple(ids),
        llm=settings.llm,
        systems=list(systems.values()),
    )
    report = evaluation.run(experiment, out=work / f"{name}_{ids[0]}", settings=settings)
    words = dict(zip(experiment.systems, systems, strict=True))
    rows = report.questions[[*_COLUMNS]].rename(columns=_COLUMNS)
    answers = rows["answer"].map(lambda each: " ".join(str(each).split())[:MOST_CHARACTERS])
    systems_in_words = [words[each] for each in rows["system"]]
    return rows.assign(part=name, system=systems_in_words, answer=answers)[["part", *_COLUMNS.values()]]
