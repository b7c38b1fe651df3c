"""The readable data set formats: what a spec such as ``hotpotqa:dev.json`` means, with licence and homepage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
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
from .quac import load_quac
from .questions import Dataset
from .rows import select_questions
from .standards import load_standards

SplitLoader = Callable[[Path, str | None], Dataset]
"""Loader of a path and a split; None for the split takes the format's default."""


@dataclass(frozen=True, kw_only=True)
class DatasetFormat:
    """One data set format: its loader, licence and homepage."""

    load: SplitLoader
    licence: str
    homepage: str
    """Page where the data can be downloaded."""
    download: str = ""
    """Address of a file that needs neither a form nor a choice; ``""`` without one."""


def _one_file(load: Callable[[Path], Dataset]) -> SplitLoader:
    def loaded(path: Path, split: str | None) -> Dataset:
        if split is not None:
            raise SettingsError(
                f"split={split!r} is not allowed: this format has one file per split. Leave it out and name the file."
            )
        return load(path)

    return loaded


DATASETS: Mapping[str, DatasetFormat] = {
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
        load=lambda path, split: load_beir(path, split=split),
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
        load=lambda path, split: load_mtrag(path, domain=split),
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
    spec: str, *, split: str | None = None, limit: int | None = None, ids: Collection[str] | None = None
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

    Returns:
        The data set with its digests; ``malformed`` lists the rows that were left out, with reasons.

    Raises:
        SettingsError: The spec, split, limit or ids are invalid; the message says what is allowed.
        LoadingError: PATH cannot be read, or has no valid row in the format NAME.
    """
    name, path = _parse(spec)
    dataset = DATASETS[name].load(path, split)
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
