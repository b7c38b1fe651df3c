"""The manifest of a run: experiment, data, settings and versions as plain data beside the rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from ...graphs.config.variants import read_variant, system_name
from ...graphs.conversation.turn.context import TurnLimits
from ...graphs.search.policies.registry import POLICIES
from ...graphs.systems.registry import SYSTEMS, find_system
from ...modules.errors import SettingsError
from ...modules.index.index import Index
from ...modules.judge.factory import own_judge
from ...modules.judge.prompts import GENERATED_JUDGE_VERSION, LOGPROB_JUDGE_VERSION
from ...modules.llm.factory import source_of_llm
from ...modules.memory.prompts import CONVERSATION_VERSION
from ...modules.parts import find_part
from ...modules.prebuilt.files import is_prebuilt
from ...modules.reader.prompts import CLOSED_BOOK_VERSION, READER_VERSION, STRATEGY_VERSIONS
from ...modules.reader.step_prompts import STEP_VERSIONS, TOOL_PROMPTS
from ...modules.settings import Settings, without_secrets
from ...modules.specs import name_in
from ...modules.tools.factory import TOOLS, tool_part
from ..datasets.questions import Dataset
from ..datasets.registry import OWN_QUESTIONS
from ..question_files.cell_texts import LISTED
from ..rows.code_version import code_version
from ..rows.store import Manifest, part_of
from .experiment import Experiment, load_experiment

STRATEGY_PROMPTS: Mapping[str, str] = {f"{name}_prompt": version for name, version in STRATEGY_VERSIONS.items()}
"""Versions of prompts that only runs with that strategy record."""
PROMPTS: Mapping[str, str] = {
    "reader_prompt": READER_VERSION,
    "closed_book_prompt": CLOSED_BOOK_VERSION,
    "judge_prompt": GENERATED_JUDGE_VERSION,
    "logprob_judge_prompt": LOGPROB_JUDGE_VERSION,
    "conversation_prompt": CONVERSATION_VERSION,
    **{f"{system}_prompt": version for system, version in STEP_VERSIONS.items()},
    "tools_prompt": TOOL_PROMPTS.version,
    **STRATEGY_PROMPTS,
}
"""Versions of all prompts by their keys in a manifest, which holds those that its run uses."""
OPENED = ("index", "retriever", "search_graph", "links", "judge", "policy", "reader", "judge_model")
"""Parts of a manifest that describe opened services: index, graphs and judge, and others if they are of one's own."""
PROMPT_LIMITS = (
    "max_recent_turns",
    "max_relevant_turns",
    "llm_max_tokens",
    "max_rewrite_tokens",
    "max_summary_tokens",
    "max_thinking_tokens",
    "max_evidence_tokens",
    "max_kept_chunks",
)
"""Settings that decide how much of a conversation a prompt shows."""

_SETTINGS = ("llm_base_url", "milvus_uri", "checkpoints", "max_concurrency", "timeout_s", "retries", *PROMPT_LIMITS)
"""Recorded settings; models and embeddings are in the identity instead."""
_OLDER_READING: Mapping[str, object] = {"separator": LISTED, "skip_bad_rows": True}
OWN_PROMPT = "prompts."
"""Before the name of a prompt of one's own, the key of its version; it is never accepted as a change."""
_SOURCE = " source"
"""After the name of a system of one's own, or the key of a model, the key of its source; it counts as a prompt does."""
_DEFAULTS: Mapping[str, object] = Experiment(dataset=":").model_dump(mode="json", exclude={"dataset"})
SHARED = (
    "dataset_digest",
    "corpus_digest",
    "corpus",
    "embeddings",
    "topk",
    "search_type",
    "ranker_type",
    "ranker_params",
    "search_graph",
    "retriever",
    "retriever_source",
    "llm",
    "llm source",
    "temperature",
    "thinking",
    "strategy",
    "answer_form",
    *STRATEGY_PROMPTS,
    "history",
    "conversation",
    *PROMPT_LIMITS,
)
"""Keys of a run's identity that must agree for a difference to be due to the systems: data, retriever, reader."""
SHARED_PROMPTS = ("reader_prompt", "closed_book_prompt", "conversation_prompt")
"""Prompts that must agree if both runs have systems that use them."""
SHARED_FACTS: Mapping[str, tuple[str, ...]] = {
    "index": ("content_digest", "embedders", "analyzer", "chunk_size", "chunk_overlap"),
    "search_graph": (),
    "retriever": (),
    "reader": (),
}
"""What must agree, by part of the manifest, if both runs have taken it down; all of a part without names."""


def opened_part(part: str, label: str, *, is_own: bool) -> str:
    """Return the part of a manifest for the judge or policy of a system, which may be the system's own option."""
    return f"{part} of {label}" if is_own else part


def without_opened(manifest: Manifest) -> Manifest:
    """Return a manifest without what describes opened services."""
    return {name: fact for name, fact in manifest.items() if name.partition(" of ")[0] not in OPENED}


def manifest_of(experiment: Experiment, dataset: Dataset, settings: Settings) -> dict[str, object]:
    """Create the manifest of a new run with a new id; it contains no secrets."""
    return {
        "run_id": str(uuid.uuid4()),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment": experiment.model_dump(mode="json"),
        "identity": identity_of(experiment, dataset, settings),
        "settings": settings.model_dump(mode="json", include=set(_SETTINGS)),
        "malformed_rows": len(dataset.malformed),
        **({"questions_read": dataset.read.to_document()} if dataset.read else {}),
        "code": [dict(code_version())],
    }


def experiment_in(manifest: Manifest, **overrides: object) -> Experiment:
    """Return the experiment of a run; keyword arguments that are not None win.

    Runs of versions that left bad rows out without being asked, and split texts of JSON at "|", do so again.

    Raises:
        SettingsError: A key or value is not allowed.
    """
    kept = part_of(manifest, "experiment")
    is_older = bool(kept) and "skip_bad_rows" not in kept and str(kept.get("dataset")).startswith(f"{OWN_QUESTIONS}:")
    given = {name: value for name, value in overrides.items() if value is not None}
    return load_experiment(None, **{**(_OLDER_READING if is_older else {}), **kept, **given})


def identity_of(experiment: Experiment, dataset: Dataset, settings: Settings) -> dict[str, object]:
    """Collect what all rows of a run directory share, by key; ``dataset`` is the whole data set.

    It includes the prompts of the experiment's systems, those of one's own, the longest prompt if it was set, and all
    prompt limits if the data set has dialogues.
    """
    limits: dict[str, object] = {} if settings.llm_max_tokens is None else {"llm_max_tokens": settings.llm_max_tokens}
    if dataset.is_conversational:
        own = TurnLimits.from_settings(settings)
        limits = {**{name: getattr(settings, name) for name in PROMPT_LIMITS}, "llm_max_tokens": own.max_tokens}
    return {
        **experiment.identity(),
        "dataset_digest": dataset.digest,
        "corpus_digest": dataset.corpus_digest,
        "llm": without_secrets(settings.llm_spec),
        "judge_llm": without_secrets(settings.judge_spec),
        "embeddings": without_secrets(settings.embeddings),
        "temperature": settings.temperature,
        "thinking": settings.thinking,
        **limits,
        **{name: PROMPTS[name] for name in _prompts_of(experiment, dataset)},
        **{f"{OWN_PROMPT}{name}": prompt.version for name, prompt in (experiment.prompts or {}).items()},
        **dict(_sources_of(experiment, settings)),
    }


def has_own_parts(identity: Mapping[str, object]) -> bool:
    """Return whether a part of a run is of one's own, whose fields may change while its source stays."""
    return any(name.endswith((_SOURCE, "_source")) for name in identity)


def _sources_of(experiment: Experiment, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the sources of the parts of one's own, by key; rows of another judge or retriever are never accepted."""
    for key, spec in (("llm", settings.llm_spec), ("judge_llm", settings.judge_spec)):
        if source := source_of_llm(spec):
            yield f"{key}{_SOURCE}", source
    for label in experiment.systems:
        if (name := system_name(label)) not in SYSTEMS:
            yield f"{name}{_SOURCE}", find_part("system", name).source
        options = read_variant(label).options
        for key, source in _own_sources(options.judge, options.policy):
            yield f"{key} of {label}{_SOURCE}", source
    for key, source in _own_sources(experiment.judge, experiment.policy):
        yield f"{key}_source", source
    if experiment.retriever is not None and not is_prebuilt(experiment.retriever):
        yield "retriever_source", find_part("retriever", experiment.retriever).source
    if own := [name for name in experiment.tools if name not in TOOLS]:
        yield "tools_source", " ".join(tool_part(name).source for name in own)


def _own_sources(judge: str, policy: str) -> Iterator[tuple[str, str]]:
    if (own := own_judge(judge)) is not None:
        yield "judge", own.source
    if name_in(policy) not in POLICIES:
        yield "policy", find_part("policy", policy).source


def index_facts(index: Index) -> dict[str, object]:
    """Describe the searched collection as plain data: name, digest of its content, embedders, analyzer, chunk sizes.

    Raises:
        CollectionError: The collection does not exist.
    """
    info = index.info()
    return {
        "collection": index.vector_store_name,
        "content_digest": index.content_digest(),
        "embedders": dict(info.embedders),
        "analyzer": info.analyzer,
        "chunk_size": info.chunk_size,
        "chunk_overlap": info.chunk_overlap,
    }


def with_opened(manifest: Manifest, part: str, facts: Mapping[str, object], *, where: object) -> Manifest:
    """Add facts to a manifest that are known only once the services are open.

    Raises:
        SettingsError: The existing rows used another one.
    """
    known = manifest.get(part)
    if isinstance(known, Mapping):
        _check_same(known, facts, where=where)
    return {**manifest, part: dict(facts)}


def check_run(manifest: Manifest, wanted: Mapping[str, object], *, where: object, accept_changes: bool = False) -> None:
    """Check that a manifest belongs to the same run.

    A prompt is compared only if both have it, since systems may be added; none is if changes are accepted.

    Raises:
        SettingsError: The manifest belongs to another run; the message names each difference.
    """
    stored = stored_identity(manifest)
    optional = {*_DEFAULTS, *filter(_is_prompt, stored)} - wanted.keys()
    kept = {name: value for name, value in stored.items() if name not in optional}
    known = {name: value for name, value in wanted.items() if name in stored or not _is_prompt(name)}
    if accept_changes:
        kept, known = ({name: value for name, value in each.items() if not _is_prompt(name)} for each in (kept, known))
    _check_same(kept, known, where=where)


def with_prompts(manifest: Manifest, wanted: Mapping[str, object]) -> Manifest:
    """Add the prompts of ``wanted``, an identity, to a manifest: those of new systems and accepted changes."""
    known = part_of(manifest, "identity")
    new = {name: version for name, version in wanted.items() if _is_prompt(name) and known.get(name) != version}
    if not new:
        return manifest
    changed = [
        f"{name}: {known[name]} then, {new[name]} now" for name in new if name in known and name.endswith(_SOURCE)
    ]
    accepted = {"accepted": [*accepted_changes(manifest), *changed]} if changed else {}
    return {**manifest, "identity": {**known, **new}, **accepted}


def accepted_changes(manifest: Manifest) -> list[str]:
    """Return the changed sources of systems of one's own that the run accepted, oldest first, a phrase each."""
    kept = manifest.get("accepted")
    return list(map(str, kept)) if isinstance(kept, list) else []


def stored_identity(manifest: Manifest) -> Mapping[str, object]:
    """Return the identity of a run; empty if the manifest has none.

    Keys that are newer than the manifest have their defaults.
    """
    stored = part_of(manifest, "identity")
    return {**_DEFAULTS, **stored} if stored else {}


def differences_beside_systems(one: Manifest, two: Manifest) -> Iterator[str]:
    """Yield in words each difference of two runs, besides their systems, that may explain one in scores."""
    first, second = stored_identity(one), stored_identity(two)
    both = (name for name in SHARED_PROMPTS if name in first and name in second)
    yield from _unequal((*SHARED, *both), first, second)
    for part, names in SHARED_FACTS.items():
        facts, others = one.get(part), two.get(part)
        if isinstance(facts, Mapping) and isinstance(others, Mapping):
            found = _unequal(names or sorted(facts.keys() | others.keys()), facts, others)
            yield from (f"{part} {difference}" for difference in found)


def _unequal(names: Iterable[str], one: Mapping[str, object], two: Mapping[str, object]) -> Iterator[str]:
    return (f"{name}: {one.get(name)!r} and {two.get(name)!r}" for name in names if one.get(name) != two.get(name))


def _prompts_of(experiment: Experiment, dataset: Dataset) -> Iterator[str]:
    names = [system_name(label) for label in experiment.systems]
    systems = [find_system(name) for name in names]
    if any(system.retrieves for system in systems):
        yield "reader_prompt"
    if not all(system.retrieves for system in systems):
        yield "closed_book_prompt"
    if any(system.judges for system in systems):
        yield from ("judge_prompt", "logprob_judge_prompt")
    if dataset.is_conversational:
        yield "conversation_prompt"
    if experiment.tools:
        yield "tools_prompt"
    strategies = (experiment.of_system(label).strategy for label in experiment.systems)
    own = (f"{name}_prompt" for name in (*names, experiment.strategy, *strategies))
    yield from (name for name in own if name in PROMPTS)


def _is_prompt(name: str) -> bool:
    return name.endswith(("_prompt", _SOURCE))


def _check_same(kept: Mapping[str, object], wanted: Mapping[str, object], *, where: object) -> None:
    names = sorted(name for name in kept.keys() | wanted.keys() if kept.get(name) != wanted.get(name))
    if names:
        differences = "; ".join(f"{name}: {kept.get(name)!r} there, {wanted.get(name)!r} now" for name in names)
        accept = " Or mix both with --accept-changes." if all(map(_is_prompt, names)) else ""
        own = f" --from {where} takes its prompts." if any(name.startswith(OWN_PROMPT) for name in names) else ""
        raise SettingsError(
            f"{where} holds another run ({differences}). Give another --out, or that run's settings.{own}{accept}"
        )
