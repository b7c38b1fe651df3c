"""Experiments: the questions, systems and options of a run, from a YAML file or keyword arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from ...graphs.conversation.turn.context import ConversationOptions, FromHistory
from ...graphs.search.expansion_rule import expansion_rule
from ...graphs.search.policies.registry import check_policy
from ...graphs.search.sharing_rule import sharing_rule
from ...graphs.search.stop import create_stop
from ...graphs.systems.registry import SYSTEMS, find_system
from ...modules.addresses import Address, with_addresses
from ...modules.calls.prompts import Prompts
from ...modules.errors import SettingsError, did_you_mean, faults_of
from ...modules.judge.factory import is_own_judge
from ...modules.llm.cache import CacheMode
from ...modules.parts import check_name, remembered, remembered_as
from ...modules.prebuilt.files import is_prebuilt
from ...modules.prompts.reading import GivenPrompts, load_prompts
from ...modules.reader.evidence_choice import EvidenceKind
from ...modules.reader.evidence_selection import EvidenceRanker
from ...modules.reader.strategies import AnswerStrategy
from ...modules.reading.yaml_files import read_yaml
from ...modules.settings import Record, without_secrets
from ...modules.structure.building import check_kind
from ...modules.tools.factory import check_tools
from ..datasets.own_questions import check_separator
from ..datasets.questions import Dataset
from ..datasets.registry import OWN_QUESTIONS
from ..datasets.rows import with_digests
from ..question_files.file_rows import check_encoding

SearchType = Literal["hybrid", "dense", "sparse"]
RankerType = Literal["rrf", "weighted", "model", "mmr", "facility_location", "log_det"]
HistoryKind = Literal["own", "given"]
"""Source of the earlier answers of a dialogue: the system itself, or the data set."""
_Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ConversationSwitches(BaseModel):
    """The options of conversations that are plain data; see ``ConversationOptions``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer_from_history: FromHistory = Field(
        default="assessed",
        description="When earlier turns may answer: assessed (the judge confirms their evidence), never or trust.",
    )
    answer_without_evidence: bool = Field(
        default=False, description="Answer from general knowledge where the evidence does not."
    )
    summary_memory: bool = Field(default=False, description="Fold old turns into a running summary.")
    rephrase_question: bool = Field(default=True, description="Let the reader answer the stand-alone question.")
    direct_answer: bool = Field(default=False, description="Ask first whether a message is small talk.")

    def to_options(self) -> ConversationOptions:
        """Convert to the options of conversations."""
        return ConversationOptions(**self.model_dump())


OF_BUILT_IN_SEARCH = ("search_type", "ranker_type", "ranker_params", "search_graph")
"""Keys that a retriever of one's own does not take."""


class Experiment(BaseModel):
    """Everything that decides what a run measures; models, embeddings and temperature default to the settings'.

    >>> Experiment(dataset="hotpotqa:dev.json", systems=("naive", "judge"), sample=100).systems
    ('naive', 'judge')
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    dataset: str = Field(
        description="NAME:PATH, such as hotpotqa:hotpot_dev_distractor_v1.json; questions:my.csv, or the key questions "
        "with the path alone, for questions of one's own; or module:name of a function that loads a data set."
    )
    columns: Mapping[str, str] | None = Field(
        default=None,
        description="Columns of a questions file with names of their own, such as {question: Frage, answer: Antwort}.",
    )
    separator: str | None = Field(
        default=None,
        description="What stands between several answers in one text of a questions file, such as ;, or none; | in "
        "cells of tables.",
    )
    encoding: str | None = Field(default=None, description="Encoding of a questions file; it is found.")
    skip_bad_rows: bool = Field(
        default=False, description="Leave bad rows of a questions file out, in place of refusing it."
    )
    split: str | None = Field(default=None, description="Split, for data sets that have several in one place.")
    limit: int | None = Field(default=None, ge=1, description="First so many questions; the corpus stays whole.")
    sample: int | None = Field(default=None, ge=1, description="So many questions, drawn by seed, in place of limit.")
    ids: tuple[str, ...] | None = Field(default=None, description="Only these questions.")
    systems: tuple[str, ...] = Field(
        default=("llm", "naive", "judge"),
        min_length=1,
        description="What is compared; one of your own as module:name of the function that builds its graph.",
    )
    repeats: int = Field(default=1, ge=1, description="How often each question is asked, with answers of its own.")

    corpus: str | None = Field(
        default=None,
        min_length=1,
        description="What is searched in place of the data set's own documents: the name of a collection, or a folder, "
        "written with a slash, such as ./docs.",
    )
    llm: Address | None = Field(
        default=None, description="Model that answers, as in JUDGETREE_LLM; one of your own as module:name."
    )
    judge_llm: Address | None = Field(default=None, description="Model that judges, as in JUDGETREE_JUDGE_LLM.")
    embeddings: Address | None = Field(default=None, description="Embedder, as in JUDGETREE_EMBEDDINGS.")
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        allow_inf_nan=False,
        description="Of the model that answers, as in JUDGETREE_TEMPERATURE; above 0, repeats differ.",
    )
    thinking: bool | None = Field(
        default=None, description="Whether the model that answers thinks first, as in JUDGETREE_THINKING."
    )

    topk: int = Field(default=3, ge=1, description="Chunks that each query retrieves.")
    search_type: SearchType = Field(default="hybrid", description="hybrid, dense or sparse.")
    ranker_type: RankerType = Field(
        default="rrf",
        description="What orders or chooses hits: rrf, weighted, model, mmr, facility_location or log_det.",
    )
    ranker_params: Mapping[str, JsonValue] | None = Field(
        default=None, description="Its parameters, as a Retriever takes them, such as {weights: [0.3, 0.7]}."
    )
    search_graph: str | None = Field(
        default=None,
        description="A graph whose ranking is one more list of the search: entities, of shared names (extra graph).",
    )
    strategy: AnswerStrategy = Field(
        default="stuff", description="How the reader takes in its evidence: stuff, map_reduce, refine or map_rerank."
    )
    retriever: str | None = Field(
        default=None,
        description="What is searched in place of corpus: prebuilt:PATH, an index that others have built; or a "
        "retriever of your own, as module:name, in place of search_type and ranker_type too.",
    )
    judge: str = Field(default="auto", description="auto, generated or logprob; one of your own as module:name.")
    policy: str = Field(
        default="breadth",
        description="Chooses the chunks that ask their sub-questions: breadth, best_first, value_cost, wider, mcts or "
        "random, with parameters such as mcts:c=1.4; one of your own as module:name.",
    )
    stop: str = Field(
        default="set",
        description="Closes a query whose verdicts suffice: set, any, confidence:p=0.9 or never.",
    )
    evidence: EvidenceKind = Field(
        default="useful", description="What the judge's reader sees: useful, sufficient (2s if any) or all chunks."
    )
    evidence_tokens: int | None = Field(default=None, ge=1, description="Most tokens of the passages that it sees.")
    evidence_ranker: EvidenceRanker | None = Field(
        default=None, description="Fills these with passages that repeat each other little."
    )
    width: int | None = Field(default=None, ge=1, description="Most sub-questions that a round of the search grants.")
    prompts: Prompts | None = Field(
        default=None,
        description="Prompts of your own: a file that judgetree prompts copy wrote, or its keys in place; else as in "
        "JUDGETREE_PROMPTS.",
    )
    tools: tuple[str, ...] = Field(
        default=(),
        description="Tools of the agent react, and of systems of your own: calculator, web, or a tool of LangChain as "
        "module:name.",
    )
    max_rec_depth: int = Field(default=3, ge=0, description="Levels below the root, or rounds after the first.")
    max_llm_calls: int = Field(default=60, ge=1, description="Model calls of one question's whole tree.")
    max_sub_runs: int | None = Field(default=None, ge=0, description="Sub-runs of one question's whole tree.")
    sharing: str = Field(
        default="off",
        description="equal links a sub-question that its tree has asked already, similar:at=0.95 one like it too.",
    )
    expansion: str = Field(
        default="sub_question",
        description="How useful chunks widen the search: sub_question, link (by judgetree index --graph links) or "
        "both:neighbours=3.",
    )
    max_tree_tokens: int | None = Field(default=None, ge=1, description="Tokens of one question's whole tree.")
    max_tree_cost_usd: _Amount | None = Field(default=None, description="US dollars of one question's whole tree.")
    max_tree_seconds: _Amount | None = Field(default=None, description="Seconds of one question's search.")
    judge_leaves: bool = Field(default=True, description="Judge the chunks of the deepest level too.")

    history: HistoryKind = Field(
        default="own",
        description="Of dialogues: own leads a conversation turn by turn; given asks each turn alone, after the data "
        "set's turns.",
    )
    conversation: ConversationSwitches = Field(
        default=ConversationSwitches(), description="How conversations are led, such as {summary_memory: true}."
    )

    cache: CacheMode = Field(default="write", description="off, read, write, refresh or replay.")
    fail_after: PositiveInt | Annotated[float, Field(gt=0, lt=1)] = Field(
        default=10,
        description="Stop once so many questions in a row, or from ten on such a share, find an endpoint unusable.",
    )
    record: Record | None = Field(
        default=None,
        description="Texts of model calls that the run keeps, as in JUDGETREE_RECORD: full, prompts or none; full.",
    )
    concurrency: int = Field(default=8, ge=1, description="Questions, or dialogues, at once.")
    max_calls: int | None = Field(default=None, ge=1, description="Stop cleanly once the run has paid so many calls.")
    max_tokens: int | None = Field(default=None, ge=1, description="Stop cleanly once it has paid so many tokens.")
    max_cost: _Amount | None = Field(default=None, description="Stop cleanly once it has paid so many US dollars.")

    seed: int = Field(default=0, ge=0, description="Of the sample, and of the intervals of a report's means.")
    baseline: str | None = Field(
        default=None, description="System that the report compares the others with; all for every pair; naive."
    )
    metrics: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Columns that the report shows, such as em, f1, all@3; its own choice."
    )

    # Pydantic runs the last validator first: by now objects have names.
    @field_validator("systems", "tools", "ids", "metrics", mode="before")
    @classmethod
    def _refuse_single(cls, given: object) -> object:
        if isinstance(given, str | int | float):
            raise ValueError(f"{given!r:.80} is no list. Give one, such as [{given!s:.80}]")
        return given

    @field_validator("dataset", "systems", "llm", "judge_llm", "retriever", "judge", "policy", "tools", mode="before")
    @classmethod
    def _name_objects(cls, given: object) -> object:
        if isinstance(given, Dataset):
            return remembered(with_digests(given))
        if not isinstance(given, list | tuple):
            return given if given is None or isinstance(given, str) else remembered(given)
        names = [each if isinstance(each, str) else remembered(each) for each in given]
        for name, each in zip(names, given, strict=True):
            if not isinstance(each, str) and remembered_as(name) is not each:
                raise ValueError(f"two parts are both named {name}, so that nothing tells them apart: name one of them")
        return names

    @field_validator("systems", "judge", "tools", "policy", "stop", "sharing", "expansion")
    @classmethod
    def _check_names(cls, given: str | tuple[str, ...], info: ValidationInfo) -> str | tuple[str, ...]:
        try:
            if info.field_name == "policy":
                check_policy(str(given))
            elif info.field_name == "stop":
                create_stop(str(given))
            elif info.field_name == "sharing":
                sharing_rule(str(given))
            elif info.field_name == "expansion":
                expansion_rule(str(given))
            elif isinstance(given, str):
                is_own_judge(given)
            elif info.field_name == "tools":
                check_tools(given)
                if given and not any(find_system(system).uses_tools for system in info.data.get("systems", ())):
                    raise SettingsError("no system uses tools: add react to systems, or leave tools out")
            else:
                for name in given:
                    check_name("system", name, SYSTEMS)
                given = tuple(dict.fromkeys(given))
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return given

    @field_validator("separator", "encoding")
    @classmethod
    def _check_reading(cls, given: str | None, info: ValidationInfo) -> str | None:
        try:
            if given is not None and info.field_name == "separator":
                return check_separator(given)
            if given is not None:
                check_encoding(given)
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return given

    @field_validator("search_graph")
    @classmethod
    def _check_graph(cls, given: str | None) -> str | None:
        try:
            if given is not None:
                check_kind(given)
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
        rest = {name: value for name, value in keys.items() if name not in ("questions", "dataset")}
        return {**rest, "dataset": f"{OWN_QUESTIONS}:{keys['questions']}"}

    @property
    def corpus_folder(self) -> Path | None:
        """The folder that is searched; None for a collection, or the data set's own documents."""
        if self.corpus is None or not (set(self.corpus) & set("/\\") or self.corpus.startswith((".", "~"))):
            return None
        return Path(self.corpus).expanduser()

    @field_validator("sample")
    @classmethod
    def _refuse_two_choices(cls, sample: int | None, given: ValidationInfo) -> int | None:
        if sample is not None and given.data.get("limit") is not None:
            raise ValueError("leave out either sample or limit, since each of them chooses the questions")
        return sample

    @field_validator("evidence_ranker")
    @classmethod
    def _refuse_no_limit(cls, ranker: EvidenceRanker | None, given: ValidationInfo) -> EvidenceRanker | None:
        if ranker is not None and given.data.get("evidence_tokens") is None:
            raise ValueError("give evidence_tokens too, the limit within which it chooses")
        return ranker

    def refuse_unused_search(self) -> None:
        """Check that no key of the built-in search stands beside a retriever of one's own. Older runs may have both.

        Raises:
            SettingsError: One does.
        """
        fields = type(self).model_fields
        unused = [name for name in OF_BUILT_IN_SEARCH if getattr(self, name) != fields[name].default]
        if self.retriever is not None and not is_prebuilt(self.retriever) and unused:
            raise SettingsError(
                f"{', '.join(unused)} of the built-in search cannot be set beside the retriever {self.retriever!r}: "
                f"leave {'it' if len(unused) == 1 else 'them'} out, or give functools.partial(MyRetriever, …)."
            )

    @field_validator("ranker_params")
    @classmethod
    def _part_from_secrets(cls, params: Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue] | None:
        return None if params is None else with_addresses(params)

    @field_validator("prompts", mode="before")
    @classmethod
    def _read_prompts(cls, given: GivenPrompts) -> Prompts | None:
        try:
            return None if given is None else load_prompts(given)
        except SettingsError as error:
            raise ValueError(str(error)) from error

    @field_serializer("prompts")
    def _serialize_prompts(self, prompts: Prompts | None) -> dict[str, dict[str, object]] | None:
        return None if prompts is None else prompts.to_document()

    @field_serializer("llm", "judge_llm", "embeddings")
    def _serialize_model(self, spec: str | None) -> str | None:
        return None if spec is None else without_secrets(spec)

    def identity(self) -> dict[str, object]:
        """Return what all rows of a run directory share: everything but the choice of questions and systems, and the
        options that change no result.
        """
        return self.model_dump(mode="json", exclude=set(_MAY_CHANGE))


_KEYS = (*Experiment.model_fields, "questions")
_MOST_SHOWN = 80
_MAY_CHANGE = (
    "skip_bad_rows",  # the digest tells whether the questions are the same
    "prompts",  # compared one by one: see ``manifest``
    "limit",
    "sample",
    "ids",
    "systems",
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
    "metrics",
)


def load_experiment(path: Path | None = None, **overrides: object) -> Experiment:
    """Read an experiment from a YAML file; keyword arguments that are not None win.

    >>> load_experiment(dataset="hotpotqa:dev.json", systems=("naive",), limit=10).limit
    10

    Raises:
        SettingsError: The file cannot be read or is not a mapping, or a key or value is not allowed; the message names
            each fault and lists the allowed keys.
    """
    try:
        return Experiment.model_validate(experiment_keys(path, **overrides))
    except ValidationError as error:
        faults = "; ".join(faults_of(error, shown=_shown))
        raise SettingsError(f"{_named(path)} is not usable: {faults}. Keys: {', '.join(_KEYS)}.") from error


def _named(path: Path | None) -> str:
    return f"The experiment {path}" if path else "The experiment"


def _shown(value: object) -> str:
    return without_secrets(repr(value))[:_MOST_SHOWN]


def experiment_keys(path: Path | None = None, **overrides: object) -> dict[str, object]:
    """Return the keys of a YAML file as they stand there; keyword arguments that are not None win.

    Raises:
        SettingsError: The file cannot be read or is not a mapping.
    """
    return {**(_mapping_in(path) if path else {}), **{k: v for k, v in overrides.items() if v is not None}}


def refuse_unknown_key(keys: Iterable[str], path: Path | None = None) -> None:
    """Check that an experiment has all keys.

    Raises:
        SettingsError: It has not; the message names the first that it lacks, and the one that may be meant.
    """
    unknown = next((key for key in keys if key not in _KEYS), None)
    if unknown is not None:
        near = did_you_mean(unknown, _KEYS)
        raise SettingsError(f"{_named(path)} has no key {unknown!r}.{near} Keys: {', '.join(_KEYS)}.")


def _mapping_in(path: Path) -> Mapping[str, object]:
    content = read_yaml(path, what="experiment")
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise SettingsError(f"The experiment {path} is not a mapping. Write one `key: value` a line.")
    return content
