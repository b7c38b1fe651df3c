"""The readable data set formats: what a spec such as ``hotpotqa:dev.json`` means, with licence and homepage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...modules.errors import LoadingError, SettingsError
from ...modules.parts import Part, accepted_arguments, instantiate, needs_making, part_of, plug_ins
from .beir import load_beir
from .browsecomp_plus import load_browsecomp_plus
from .canard import load_canard
from .cast import load_cast
from .dialogue_turns import with_parents
from .flashrag import load_flashrag
from .hotpotqa import load_2wiki, load_hotpotqa
from .mtrag import load_mtrag
from .musique import load_musique
from .own_questions import load_own_questions, questions_in
from .quac import load_quac
from .questions import Dataset
from .rows import keyed_by_title, select_questions, with_digests
from .standards import load_dialogue_questions, load_standards


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What a loader is given besides the path; None takes the format's default."""

    split: str | None = None
    columns: Mapping[str, str] | None = None
    folder: Path | None = None
    by_title: bool = False
    separator: str | None = None
    encoding: str | None = None
    skip_bad_rows: bool = False

    def own_reading(self) -> dict[str, object]:
        """Return those that only a file of one's own takes, where they are given."""
        given = {
            "columns": self.columns,
            "separator": self.separator,
            "encoding": self.encoding,
            "skip_bad_rows": self.skip_bad_rows,
        }
        return {name: value for name, value in given.items() if value not in (None, False)}


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
    has_corpus_ids: bool = False
    """Whether gold documents are named by the ids of the corpus that belongs to the set, whoever has indexed it."""


def _by_path(load: Callable[[Path], Dataset], *, licence: str, homepage: str, download: str = "") -> DatasetFormat:
    """Return a format whose loader takes the path alone."""
    return DatasetFormat(load=lambda path, _: load(path), licence=licence, homepage=homepage, download=download)


OWN_QUESTIONS = "questions"
"""The format of question files of one's own."""

DATASETS: Mapping[str, DatasetFormat] = {
    OWN_QUESTIONS: DatasetFormat(
        load=lambda path, options: load_own_questions(
            path,
            columns=options.columns,
            folder=options.folder,
            separator=options.separator,
            encoding=options.encoding,
            skip_bad_rows=options.skip_bad_rows,
        ),
        licence="Your own.",
        homepage='README, "Your own questions"',
    ),
    "hotpotqa": _by_path(
        load_hotpotqa,
        licence="CC BY-SA 4.0",
        homepage="https://hotpotqa.github.io",
        download="https://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json",
    ),
    "2wiki": _by_path(
        load_2wiki,
        licence="Apache-2.0",
        homepage="https://github.com/Alab-NII/2wikimultihop",
        download="https://www.dropbox.com/s/ms2m13252h6xubs/data_ids_april7.zip?dl=1",
    ),
    "musique": _by_path(load_musique, licence="CC BY 4.0", homepage="https://github.com/StonyBrookNLP/musique"),
    "beir": DatasetFormat(
        load=lambda path, options: load_beir(path, split=options.split),
        has_splits=True,
        has_corpus_ids=True,
        licence="Each set has its own; the page names them.",
        homepage="https://github.com/beir-cellar/beir",
    ),
    "flashrag": DatasetFormat(
        load=lambda path, options: load_flashrag(path, by_title=options.by_title),
        licence="CC BY-SA 4.0 for the collection; each set has its own besides.",
        homepage="https://huggingface.co/datasets/RUC-NLPIR/FlashRAG_datasets",
    ),
    "standards": _by_path(
        load_standards, licence="Apache-2.0", homepage="data/standards_qa.jsonl in judgetree's own source"
    ),
    "cast": _by_path(load_cast, licence="MIT", homepage="https://github.com/daltonj/treccastweb"),
    "canard": _by_path(
        load_canard, licence="CC BY-SA 4.0", homepage="https://sites.google.com/view/qanta/projects/canard"
    ),
    "mtrag": DatasetFormat(
        load=lambda path, options: load_mtrag(path, domain=options.split),
        has_splits=True,
        has_corpus_ids=True,
        licence="Its README names none; see the repository, and for its corpora those of ClapNQ and FiQA.",
        homepage="https://github.com/IBM/mt-rag-benchmark",
    ),
    "quac": _by_path(
        load_quac,
        licence="CC BY-SA 4.0",
        homepage="https://quac.ai",
        download="https://s3.amazonaws.com/my89public/quac/val_v0.2.json",
    ),
    "browsecomp_plus": DatasetFormat(
        load=lambda path, _: load_browsecomp_plus(path),
        has_corpus_ids=True,
        licence="Its page names it; no question or answer may appear online in plain text.",
        homepage="https://github.com/texttron/BrowseComp-Plus",
    ),
    "dialogues": _by_path(
        load_dialogue_questions,
        licence="Apache-2.0",
        homepage="data/standards_dialogues.jsonl in judgetree's own source",
    ),
}
"""By the name before the colon of a spec."""


def load_dataset(  # noqa: PLR0913 - a front door, where everything has a default that fits
    spec: str,
    *,
    split: str | None = None,
    limit: int | None = None,
    ids: Collection[str] | None = None,
    columns: Mapping[str, str] | None = None,
    folder: Path | None = None,
    by_title: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool = False,
) -> Dataset:
    """Read a data set.

    ``limit`` and ``ids`` select questions, never documents: a corpus that shrank with the questions would make
    retrieval look better.

    ::

        dataset = load_dataset("hotpotqa:hotpot_dev_distractor_v1.json", limit=100)

    Args:
        spec: ``NAME:PATH`` with a NAME of ``DATASETS``. PATH is a file; a folder for ``beir`` and ``browsecomp_plus``;
            either for ``cast`` and ``mtrag``. ``~`` is the home directory. Or a data set of one's own, as
            ``module:name``, ``module:name:PATH`` or a plug-in's name; see ``load_own``.
        split: Split of a ``beir`` folder, None for "test"; domain of an ``mtrag`` set, None for all. Other formats have
            one file per split.
        limit: Number of questions to keep, in file order, after the choice of ``ids``; None for all.
        ids: Ids of the questions to keep, in file order; turns bring the earlier turns of their path. None for all.
        columns: Names of columns of a ``questions`` file that are called otherwise: ``{"question": "Frage"}``.
        folder: Folder of documents to search in place of the data set's own; gold documents are named by their paths.
        by_title: Whether another corpus is searched, in which gold documents are known by their titles; those of
            ``beir`` and ``mtrag``, whose corpus it then is, by its ids.
        separator: What stands between several answers in one text of a ``questions`` file; see ``load_own_questions``.
        encoding: Encoding of a ``questions`` file; None finds it.
        skip_bad_rows: Leave bad rows of a ``questions`` file out, in place of refusing it.

    Returns:
        The data set with its digests; ``malformed`` lists the rows that were left out, with reasons.

    Raises:
        SettingsError: The spec, split, limit or ids are invalid; the message says what is allowed.
        LoadingError: PATH cannot be read, or has no valid row in the format NAME.
    """
    options = ReadingOptions(
        split=split,
        columns=columns,
        folder=folder,
        by_title=by_title,
        separator=separator,
        encoding=encoding,
        skip_bad_rows=skip_bad_rows,
    )
    name = spec.partition(":")[0]
    if name != OWN_QUESTIONS and (unused := [*options.own_reading()]):
        raise SettingsError(
            f"{unused[0]} is not allowed: {name} has a form of its own. Use {OWN_QUESTIONS}:PATH for other files."
        )
    dataset = _load_format(spec, options) if name in DATASETS else load_own(spec, options)
    if folder is not None and dataset.folder != folder:
        dataset = with_digests(replace(dataset, documents=(), folder=folder, key_field="source"))
    if by_title:
        has_ids = has_corpus_ids(spec)
        dataset = with_digests(replace(dataset, documents=())) if has_ids else keyed_by_title(dataset)
    if ids is not None:
        dataset = with_parents(dataset, {ids} if isinstance(ids, str) else ids)
    return select_questions(dataset, limit=limit)


def has_corpus_ids(spec: str) -> bool:
    """Whether a data set names gold documents by the ids of its corpus, which other indexes of that corpus have too."""
    name = spec.partition(":")[0]
    return name in DATASETS and DATASETS[name].has_corpus_ids


def load_own(spec: str, options: ReadingOptions) -> Dataset:
    """Read a data set of one's own: a ``Dataset``, or a function that returns one.

    A function is called with those of ``path``, ``split`` and ``folder`` that its signature names; ``path`` is what
    stands behind the second colon of the spec, or behind the first one of a plug-in. It may also return what
    ``evaluation.run(questions=…)`` takes: a DataFrame, or a list of mappings.

    Raises:
        SettingsError: There is no such data set, it cannot be imported, its function failed or gives something else.
        LoadingError: Two questions or documents have the same id, or there is no question.
    """
    part, path = _own_part(spec)
    wanted = accepted_arguments(part) if needs_making(part) else frozenset()
    if path and wanted is not None and "path" not in wanted:
        raise SettingsError(f"{part.name!r} takes no path: leave out {path!r}, or name an argument `path`.")
    given = {"path": Path(path).expanduser()} if path else {}
    loaded = instantiate(part, **given, split=options.split, folder=options.folder)
    if not isinstance(loaded, Dataset):
        short_name = part.name.rpartition(":")[2].partition("(")[0]
        loaded = replace(questions_in(loaded, name=part.name, folder=options.folder), name=short_name)
    for what, keys in (
        ("questions", [question.id for question in loaded.questions]),
        ("documents", [document.key for document in loaded.documents]),
    ):
        if repeated := next((key for key, count in Counter(keys).items() if count > 1), None):
            raise LoadingError(f"{part.name!r} gives two {what} of the id {repeated!r}. Give each its own.")
    if not loaded.questions:
        raise LoadingError(f"{part.name!r} gives no question.")
    return with_digests(loaded)


def _load_format(spec: str, options: ReadingOptions) -> Dataset:
    name, _, path = spec.partition(":")
    if not path.strip():
        raise _unknown(spec)
    if options.split is not None and not DATASETS[name].has_splits:
        raise SettingsError(
            f"split={options.split!r} is not allowed: this format has one file per split. Leave it out and name the "
            "file."
        )
    return DATASETS[name].load(Path(path).expanduser(), options)


def _own_part(spec: str) -> tuple[Part, str]:
    """Return a data set of one's own, and the path behind its name."""
    name, _, rest = spec.partition(":")
    if name in plug_ins("dataset"):
        return part_of("dataset", name), rest
    attribute, _, path = rest.partition(":")
    if not attribute or not all(each.isidentifier() for each in name.split(".")):
        raise _unknown(spec)
    try:
        return part_of("dataset", f"{name}:{attribute}"), path
    except SettingsError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):  # or a wrong name of a format
            raise _unknown(spec, f" ({error.__cause__})") from error
        raise


def _unknown(spec: str, reason: str = "") -> SettingsError:
    return SettingsError(
        f"{spec!r} is not a data set{reason}. Write NAME:PATH, such as hotpotqa:hotpot_dev_distractor_v1.json. Allowed "
        f"names: {', '.join([*DATASETS, *plug_ins('dataset')])}; or the import path of your own, such as "
        "my_package.data:load."
    )
