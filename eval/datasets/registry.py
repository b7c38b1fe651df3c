"""The readable data set formats: what a spec such as ``hotpotqa:dev.json`` means, with licence and homepage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...modules.errors import SettingsError
from .beir import load_beir
from .canard import load_canard
from .cast import load_cast
from .dialogue_turns import with_parents
from .dialogues import load_dialogue_questions
from .flashrag import load_flashrag
from .hotpotqa import load_2wiki, load_hotpotqa
from .mtrag import load_mtrag
from .musique import load_musique
from .own_questions import load_own_questions
from .quac import load_quac
from .questions import Dataset
from .rows import select_questions, with_digests
from .standards import load_standards


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What a loader is given besides the path; None takes the format's default."""

    split: str | None = None
    columns: Mapping[str, str] | None = None
    folder: Path | None = None


Loader = Callable[[Path, ReadingOptions], Dataset]
"""Loader of a path."""


@dataclass(frozen=True, kw_only=True)
class DatasetFormat:
    """One data set format: its loader, licence and homepage."""

    load: Loader
    licence: str
    homepage: str
    """Page where the data can be downloaded."""
    download: str = ""
    """Address of a file that needs neither a form nor a choice; ``""`` without one."""
    has_splits: bool = False
    """Whether one path holds several splits, or domains."""


def _one_file(load: Callable[[Path], Dataset]) -> Loader:
    return lambda path, options: load(path)


def _own(path: Path, options: ReadingOptions) -> Dataset:
    return load_own_questions(path, columns=options.columns, folder=options.folder)


OWN_QUESTIONS = "questions"
"""The format of question files of one's own."""

DATASETS: Mapping[str, DatasetFormat] = {
    OWN_QUESTIONS: DatasetFormat(load=_own, licence="Your own.", homepage='README, "Your own questions"'),
    "hotpotqa": DatasetFormat(
        load=_one_file(load_hotpotqa),
        licence="CC BY-SA 4.0",
        homepage="https://hotpotqa.github.io",
        download="https://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json",
    ),
    "2wiki": DatasetFormat(
        load=_one_file(load_2wiki),
        licence="Apache-2.0",
        homepage="https://github.com/Alab-NII/2wikimultihop",
        download="https://www.dropbox.com/s/ms2m13252h6xubs/data_ids_april7.zip?dl=1",
    ),
    "musique": DatasetFormat(
        load=_one_file(load_musique),
        licence="CC BY 4.0",
        homepage="https://github.com/StonyBrookNLP/musique",
    ),
    "beir": DatasetFormat(
        load=lambda path, options: load_beir(path, split=options.split),
        has_splits=True,
        licence="Each set has its own; the page names them.",
        homepage="https://github.com/beir-cellar/beir",
    ),
    "flashrag": DatasetFormat(
        load=_one_file(load_flashrag),
        licence="CC BY-SA 4.0 for the collection; each set has its own besides.",
        homepage="https://huggingface.co/datasets/RUC-NLPIR/FlashRAG_datasets",
    ),
    "standards": DatasetFormat(
        load=_one_file(load_standards),
        licence="Apache-2.0",
        homepage="data/standards_qa.jsonl in judgetree's own source",
    ),
    "cast": DatasetFormat(
        load=_one_file(load_cast),
        licence="MIT",
        homepage="https://github.com/daltonj/treccastweb",
    ),
    "canard": DatasetFormat(
        load=_one_file(load_canard),
        licence="CC BY-SA 4.0",
        homepage="https://sites.google.com/view/qanta/projects/canard",
    ),
    "mtrag": DatasetFormat(
        load=lambda path, options: load_mtrag(path, domain=options.split),
        has_splits=True,
        licence="Its README names none; see the repository, and for its corpora those of ClapNQ and FiQA.",
        homepage="https://github.com/IBM/mt-rag-benchmark",
    ),
    "quac": DatasetFormat(
        load=_one_file(load_quac),
        licence="CC BY-SA 4.0",
        homepage="https://quac.ai",
        download="https://s3.amazonaws.com/my89public/quac/val_v0.2.json",
    ),
    "dialogues": DatasetFormat(
        load=_one_file(load_dialogue_questions),
        licence="Apache-2.0",
        homepage="data/standards_dialogues.jsonl in judgetree's own source",
    ),
}
"""By the name before the colon of a spec."""


def load_dataset(
    spec: str,
    *,
    split: str | None = None,
    limit: int | None = None,
    ids: Collection[str] | None = None,
    columns: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Dataset:
    """Read a data set.

    ``limit`` and ``ids`` select questions, never documents: a corpus that shrank with the questions would make
    retrieval look better.

    ::

        dataset = load_dataset("hotpotqa:hotpot_dev_distractor_v1.json", limit=100)

    Args:
        spec: ``NAME:PATH`` with a NAME of ``DATASETS``. PATH is a file; a folder for ``beir``; either for ``cast`` and
            ``mtrag``. ``~`` is the home directory.
        split: Split of a ``beir`` folder, None for "test"; domain of an ``mtrag`` set, None for all. Other formats have
            one file per split.
        limit: Number of questions to keep, in file order, after the choice of ``ids``; None for all.
        ids: Ids of the questions to keep, in file order; turns bring the earlier turns of their path. None for all.
        columns: Names of columns of a ``questions`` file that are called otherwise: ``{"question": "Frage"}``.
        folder: Folder of documents to search in place of the data set's own; gold documents are named by their paths.

    Returns:
        The data set with its digests; ``malformed`` lists the rows that were left out, with reasons.

    Raises:
        SettingsError: The spec, split, limit or ids are invalid; the message says what is allowed.
        LoadingError: PATH cannot be read, or has no valid row in the format NAME.
    """
    name, path = _parse(spec)
    if split is not None and not DATASETS[name].has_splits:
        raise SettingsError(
            f"split={split!r} is not allowed: this format has one file per split. Leave it out and name the file."
        )
    if columns is not None and name != OWN_QUESTIONS:
        raise SettingsError(f"columns are not allowed: {name} has its own. Use {OWN_QUESTIONS}:PATH for other files.")
    dataset = DATASETS[name].load(path, ReadingOptions(split=split, columns=columns, folder=folder))
    if folder is not None and dataset.folder != folder:
        dataset = with_digests(replace(dataset, documents=(), folder=folder, key_field="source"))
    if ids is not None:
        dataset = with_parents(dataset, {ids} if isinstance(ids, str) else ids)
    return select_questions(dataset, limit=limit)


def _parse(spec: str) -> tuple[str, Path]:
    name, _, path = spec.partition(":")
    if name not in DATASETS or not path.strip():
        raise SettingsError(
            f"{spec!r} is not a data set. Write NAME:PATH, such as hotpotqa:hotpot_dev_distractor_v1.json. "
            f"Allowed names: {', '.join(DATASETS)}."
        )
    return name, Path(path).expanduser()
