"""Experiments: the questions, systems and options of a run, from a YAML file or keyword arguments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, ValidationInfo, field_serializer, field_validator, model_validator

from ...graphs.config.conversing import ConversationSwitches
from ...graphs.config.rag_config import RagConfig
from ...graphs.config.variants import read_variant, system_name, variant_of
from ...modules.addresses import Address
from ...modules.config.config import Key, Trait, after, as_fault, whole
from ...modules.config.effects import has_effect, words_without_effect
from ...modules.config.models import CacheMode
from ...modules.errors import SettingsError, did_you_mean
from ...modules.parts import check_name, register_object, registered_object
from ...modules.recorded_texts import Record
from ..metrics.outcomes import PRIMARY

logger = logging.getLogger(__name__)

HistoryKind = Literal["own", "given"]
"""Source of the earlier answers of a dialogue: the system itself, or the data set."""
_Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _path_of_dataset(named: str) -> str:
    """Return the path of NAME:PATH; ``""`` for module:name."""
    from ..datasets.registry import DATASETS

    name, _, path = named.partition(":")
    return path if name in DATASETS else ""


def _folder_in(corpus: str) -> str:
    """Return the folder that a corpus names; ``""`` for a collection."""
    return corpus if set(corpus) & set("/\\") or corpus.startswith((".", "~")) else ""


class Experiment(RagConfig):
    """Everything that decides what a run measures; models, embeddings and temperature default to the settings'.

    >>> Experiment(dataset="hotpotqa:dev.json", systems=("naive", "judge"), sample=100).systems
    ('naive', 'judge')
    """

    dataset: Annotated[str, Key(common=True, path_in=_path_of_dataset, metavar="NAME:PATH")]
    """NAME:PATH, such as hotpotqa:hotpot_dev_distractor_v1.json; questions:my.csv, or the key questions with the path
    alone, for questions of one's own; or module:name of a function that loads a data set."""
    columns: Annotated[Mapping[str, str] | None, Key(metavar="question=Frage,answer=Antwort")] = None
    """Columns of a questions file with names of their own, such as {question: Frage, answer: Antwort}."""
    separator: Annotated[str | None, Key(metavar="TEXT")] = None
    """Separator of several answers in one text of a questions file, such as ;. Default: | in cells of tables; none: a
    text is one answer."""
    encoding: Annotated[str | None, Key(metavar="NAME")] = None
    """Encoding of a questions file; default: found from its content."""
    skip_bad_rows: bool = False
    """Leave bad rows of a questions file out, in place of refusing it."""
    split: Annotated[str | None, Key(metavar="NAME")] = None
    """Split to take, for data sets that have several in one place."""
    limit: Annotated[int | None, Field(ge=1), Key(metavar="N")] = None
    """Number of questions from the start of the file, which may differ from the rest; sample draws instead."""
    sample: Annotated[int | None, Field(ge=1), Key(common=True, metavar="N")] = None
    """Number of questions to draw by the seed, of each kind its share; the corpus stays whole."""
    ids: Annotated[tuple[str, ...] | None, Key(metavar="ID,ID")] = None
    """Only these questions."""
    systems: Annotated[tuple[str, ...], Field(min_length=1), Key(common=True, metavar="llm,naive,judge")] = (
        "llm",
        "naive",
        "judge",
    )
    """What is compared; one with options of its own as naive(topk=10; search_type=dense), in files as
    {naive: {topk: 10}}; one of your own as module:name of the function that builds its graph."""
    match_budget: Annotated[str | None, Key(common=True, metavar="SYSTEM")] = None
    """Also ask naive with as many prompt tokens, and ircot with as many calls, as this system takes on a pilot. It is
    then the baseline."""
    repeats: Annotated[int, Field(ge=1), Key(older_flag="--repeat", metavar="K")] = 1
    """How often each question is asked, with answers of its own."""

    corpus: Annotated[
        str | None,
        Field(min_length=1),
        Key(needs=("retriever",), common=True, path_in=_folder_in, metavar="NAME|./FOLDER"),
    ] = None
    """What is searched in place of the data set's own documents: the name of a collection, or a folder, written with a
    slash, such as ./docs."""
    embeddings: Annotated[Address | None, Key(needs=("retriever",), path_in=after("local:"), metavar="MODEL")] = None
    """Embedder, as in JUDGETREE_EMBEDDINGS."""

    history: Annotated[HistoryKind, Key(needs=("dialogues",))] = "own"
    """Of dialogues: own leads a conversation turn by turn; given asks each turn alone, after the data set's turns."""
    conversation: Annotated[ConversationSwitches, Key(needs=("dialogues",))] = ConversationSwitches()
    """How conversations are led, such as {summary_memory: true}."""

    cache: CacheMode = "write"
    """How model calls use the cache: off; read; write, read and keep new replies; refresh, ask again and keep; or
    replay, the cache alone."""
    fail_after: Annotated[PositiveInt | Annotated[float, Field(gt=0, lt=1)], Key(metavar="N")] = 10
    """Stop once this many questions in a row fail, or, below 1, this share of at least ten."""
    record: Record | None = None
    """Texts of model calls that the run keeps, as in JUDGETREE_RECORD: full, prompts or none; default: full."""
    concurrency: Annotated[int, Field(ge=1), Key(metavar="N")] = 8
    """Questions, or dialogues, at once."""
    max_calls: Annotated[int | None, Field(ge=1), Key(common=True, metavar="N")] = None
    """Stop cleanly once the run has paid so many calls."""
    max_tokens: Annotated[int | None, Field(ge=1), Key(metavar="N")] = None
    """Stop cleanly once it has paid so many tokens."""
    max_cost: Annotated[_Amount | None, Key(common=True, metavar="USD")] = None
    """Stop cleanly once it has paid so many US dollars."""

    seed: Annotated[int, Field(ge=0), Key(metavar="N")] = 0
    """Seed of the sample, and of the intervals of a report's means."""
    baseline: Annotated[str | None, Key(metavar="NAME")] = None
    """System that the report compares the others with, or all for every pair; default: naive."""
    primary: Annotated[str, Key(metavar="NAME")] = PRIMARY
    """Primary outcome, by which systems are compared first: a column such as em, f1, evidence or llm_calls."""
    metrics: Annotated[tuple[str, ...] | None, Field(min_length=1), Key(metavar="NAME,NAME")] = None
    """Columns that the report shows, such as em, f1, all@3; default: its own choice."""

    # Pydantic runs the last validator first: by now objects have names.
    @field_validator("systems", "tools", "ids", "metrics", mode="before")
    @classmethod
    def _check_is_list(cls, given: object) -> object:
        if isinstance(given, str | int | float):
            raise ValueError(f"{given!r:.80} is no list. Give one, such as [{given!s:.80}]")
        return given

    @field_validator("dataset", "systems", "llm", "judge_llm", "retriever", "judge", "policy", "tools", mode="before")
    @classmethod
    def _name_objects(cls, given: object) -> object:
        from ..datasets.questions import Dataset
        from ..datasets.rows import with_digests

        if isinstance(given, Dataset):
            return register_object(with_digests(given))
        if not isinstance(given, list | tuple):
            return given if given is None or isinstance(given, str) else register_object(given)
        names = [_label(each) if isinstance(each, Mapping) else _name(each) for each in given]
        for name, each in zip(names, given, strict=True):
            if not isinstance(each, str | Mapping) and registered_object(name) is not each:
                raise ValueError(f"two parts are both named {name}, so that nothing tells them apart: name one of them")
        return names

    @field_validator("systems")
    @classmethod
    def _check_systems(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        from ...graphs.config.given_keys import GivenKeys
        from ...graphs.systems.registry import SYSTEMS, find_system

        with as_fault():
            variants = [read_variant(label) for label in given]
            for each in variants:
                check_name("system", each.system, SYSTEMS)
                GivenKeys(config=each.options).refuse_unused(each.system, find_system(each.system).has)
        return tuple(dict.fromkeys(each.label for each in variants))

    @model_validator(mode="after")
    def _check_tools_are_used(self) -> Self:
        from ...graphs.systems.registry import find_system

        if self.tools and not any(find_system(system_name(each)).uses_tools for each in self.systems):
            raise ValueError("no system uses tools: add react to systems, or leave tools out")
        return self

    @model_validator(mode="after")
    def _check_budget_is_spent(self) -> Self:
        if self.match_budget is not None and self.match_budget not in self.systems:
            raise ValueError(
                f"match_budget={self.match_budget!r} is none of the systems: {', '.join(self.systems)}. Name one"
            )
        return self

    @field_validator("primary")
    @classmethod
    def _check_primary(cls, given: str) -> str:
        from ..metrics.outcomes import check_primary

        with as_fault():
            if given != PRIMARY:
                check_primary(given)
        return given

    @field_validator("separator", "encoding")
    @classmethod
    def _check_reading(cls, given: str | None, info: ValidationInfo) -> str | None:
        from ..datasets.own_questions import check_separator
        from ..question_files.file_rows import check_encoding

        try:
            if given is not None and info.field_name == "separator":
                return check_separator(given)
            if given is not None:
                check_encoding(given)
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return given

    @model_validator(mode="before")
    @classmethod
    def _read_questions(cls, keys: object) -> object:
        if not isinstance(keys, Mapping) or "questions" not in keys:
            return keys
        if keys.get("dataset") is not None:
            raise ValueError("leave out either questions or dataset, since each of them names the questions")
        from ..datasets.registry import OWN_QUESTIONS

        rest = {name: value for name, value in keys.items() if name not in ("questions", "dataset")}
        return {**rest, "dataset": f"{OWN_QUESTIONS}:{keys['questions']}"}

    @property
    def corpus_folder(self) -> Path | None:
        """The folder that is searched; None for a collection, or the data set's own documents."""
        folder = _folder_in(self.corpus or "")
        return Path(folder).expanduser() if folder else None

    @property
    def collection(self) -> str | None:
        """The collection that is searched in place of the data set's own documents; None without one."""
        return self.corpus if self.corpus_folder is None else None

    @classmethod
    def path_part(cls, name: str) -> Callable[[str], str] | None:
        """Return the function that finds the path in a value of a key; None for a key without a path."""
        return whole if name == "questions" else super().path_part(name)

    @field_validator("sample")
    @classmethod
    def _check_one_choice(cls, sample: int | None, given: ValidationInfo) -> int | None:
        if sample is not None and given.data.get("limit") is not None:
            raise ValueError("leave out either sample or limit, since each of them chooses the questions")
        return sample

    @field_serializer("embeddings")
    def _serialize_model(self, spec: str | None) -> str | None:
        from ...modules.settings import without_secrets

        return None if spec is None else without_secrets(spec)

    def of_system(self, label: str) -> Experiment:
        """Return the experiment with the options that one of its systems has of its own.

        >>> Experiment(dataset=":", systems=("naive(topk=10)",), topk=5).of_system("naive(topk=10)").topk
        10
        """
        options = read_variant(label).options.given
        return self.model_copy(update=options) if options else self

    def identity(self) -> dict[str, object]:
        """Return what all rows of a run directory share: everything but the choice of questions and systems, and the
        options that change no result.
        """
        return self.model_dump(mode="json", exclude=set(_MAY_CHANGE))


_KEYS = (*Experiment.model_fields, "questions")
_MAY_CHANGE = (
    "skip_bad_rows",  # the digest tells whether the questions are the same
    "prompts",  # compared one by one: see ``manifest``
    "limit",
    "sample",
    "ids",
    "systems",
    "match_budget",
    "repeats",
    "cache",
    "concurrency",
    "fail_after",
    "record",
    "max_calls",
    "max_tokens",
    "max_cost",
    "seed",
    "baseline",
    "primary",
    "metrics",
)


def _name(given: object) -> str:
    return given if isinstance(given, str) else register_object(given)


def _label(given: Mapping[object, object]) -> str:
    """Return the label of a system whose options are a mapping, such as {naive: {topk: 10}}."""
    (system, options), *others = given.items() or [("", None)]
    if others or not isinstance(options, Mapping):
        raise ValueError(f"{given!r:.100} is no system. Give its name, or {{NAME: {{KEY: VALUE}}}}.")
    parts = RagConfig.keys_with(is_part=True)
    named = {key: _name(value) if key in parts and value is not None else value for key, value in options.items()}
    with as_fault():
        return variant_of(_name(system), named).label


def name_unused_keys(experiments: Sequence[Experiment], *, has_dialogues: bool) -> None:
    """Log a warning for each key that has no effect on any of the experiments, which share their questions."""
    from ...graphs.config.given_keys import described

    for name, field in Experiment.model_fields.items():
        given = [each for each in experiments if getattr(each, name) != field.default]
        if given and not any(_has_effect(each, name, has_dialogues=has_dialogues) for each in given):
            logger.warning(words_without_effect(Experiment, name, described(getattr(given[0], name))))


def _has_effect(experiment: Experiment, name: str, *, has_dialogues: bool) -> bool:
    from ...graphs.systems.registry import find_system

    has: set[Trait] = {"dialogues"} if has_dialogues else set()
    for system in experiment.systems:
        has |= find_system(system_name(system)).has
    return has_effect(Experiment, name, has, lambda key: getattr(experiment, key))


def load_experiment(path: Path | None = None, **overrides: object) -> Experiment:
    """Read an experiment from a YAML file; keyword arguments that are not None win.

    >>> load_experiment(dataset="hotpotqa:dev.json", systems=("naive",), sample=10).sample
    10

    Raises:
        SettingsError: The file cannot be read or is not a mapping, or a key or value is not allowed; the message names
            each fault and lists the allowed keys.
    """
    return Experiment.of(experiment_keys(path, **overrides), where=_named(path))


def _named(path: Path | None) -> str:
    return f"The experiment {path}" if path else "The experiment"


def experiment_keys(path: Path | None = None, **overrides: object) -> dict[str, object]:
    """Return the keys of a YAML file as they stand there; keyword arguments win, and None takes a key of the file out.

    Raises:
        SettingsError: The file cannot be read or is not a mapping.
    """
    keys = {**(Experiment.keys_in(path, what="experiment") if path else {}), **overrides}
    return {name: value for name, value in keys.items() if value is not None or name not in overrides}


def check_keys(keys: Iterable[str], path: Path | None = None) -> None:
    """Check that an experiment has all keys.

    Raises:
        SettingsError: It has not; the message names the first that it lacks, and the one that may be meant.
    """
    unknown = next((key for key in keys if key not in _KEYS), None)
    if unknown is not None:
        near = did_you_mean(unknown, _KEYS)
        raise SettingsError(f"{_named(path)} has no key {unknown!r}.{near} Keys: {', '.join(_KEYS)}.")
