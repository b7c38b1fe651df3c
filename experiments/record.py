"""Records the searches of parts of the split, five questions at a time, and keeps them without text.

What stands in ``kept/`` is not asked again, also on another machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from judgetree import evaluation
from judgetree.evaluation.datasets.rows import select_questions
from judgetree.evaluation.replay.recording import FILE_NAME, SearchRecording
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.judge.embedding import EmbeddingJudge
from judgetree.modules.judge.thresholds import UNCALIBRATED
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

from .batches import HERE, batches, kept_file, with_bar
from .kept import KeptQuestion, append_kept, kept, read_kept

STAGE_A = ("stage_a_hotpotqa", "stage_a_2wiki")
DEPTH, TRIES = 1, 2


def _recorded(name: str, ids: Sequence[str], folder: Path, work: Path, model: str) -> Iterator[KeptQuestion]:
    """Record some questions of a part, and yield those that are finished."""
    experiment = evaluation.load_experiment(
        HERE / "evidence.yaml", dataset=f"experiments.questions:{name}:{folder}", ids=tuple(ids), llm=model
    )
    settings = load_settings(home=work / "home", embeddings=experiment.embeddings, checkpoints="memory:")
    evaluation.record(experiment, out=work / name, depth=DEPTH, width=TRIES, settings=settings)
    dataset = evaluation.load_dataset(experiment.dataset)
    with open_corpus(dataset, settings) as index:
        retriever = Retriever(index, topk=experiment.topk, search_type="hybrid")
        similarity = EmbeddingJudge(create_embeddings(settings.embeddings, settings), UNCALIBRATED)
        chosen = select_questions(dataset, ids=ids)
        yield from kept(name, chosen, SearchRecording(work / name / FILE_NAME), retriever, similarity)


def record(parts: Sequence[str], folder: Path, *, work: Path, model: str, most: int) -> None:
    """Record what is not yet kept of some parts, with a bar of progress."""
    done = {name: {each.id for each in read_kept(kept_file(name, model))} for name in parts}
    for name, ids in with_bar(", ".join(parts), batches(done, most=most)):
        for question in _recorded(name, ids, folder, work, model):
            append_kept(kept_file(name, model), question)
