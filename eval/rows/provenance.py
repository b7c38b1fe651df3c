"""What a run was made of, as all of its pages, tables and plots name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...graphs.drawing.layout import one_line
from .cautions import judge_of, simulated_judge
from .code_version import code_versions_in
from .store import Manifest, part_of

Provenance = Mapping[str, str]
"""Facts of a run by name, in the order in which they are shown; those that a run does not have are left out."""

_OF_SEARCH = ("judge", "topk", "retriever", "search_type", "max_rec_depth", "corpus")
_DIGITS = 12
_COMMAND, _VARIES = "again", "varies"
_SIMULATED = " (simulated: sees the gold documents)"


def provenance_of(manifest: Manifest, systems: Iterable[str], *, asked: int, there: int | None = None) -> Provenance:
    """Return data set, sample, models, search, version and command of a run.

    Args:
        manifest: The run's.
        systems: Systems that have rows.
        asked: Number of questions that have a row.
        there: Number of questions in the data set; None leaves it out.
    """
    identity, experiment = part_of(manifest, "identity"), part_of(manifest, "experiment")
    digest = str(identity.get("dataset_digest") or "")[:_DIGITS]
    facts: dict[str, object] = {
        "data set": f"{experiment.get('dataset')}{f' (digest {digest})' if digest else ''}",
        "questions": _sample_words(experiment, asked=asked, there=there),
        "repeats": experiment.get("repeats") if experiment.get("repeats") != 1 else None,
        "model": identity.get("llm"),
        "judge model": identity.get("judge_llm") if identity.get("judge_llm") != identity.get("llm") else None,
        "embeddings": identity.get("embeddings") if identity.get("retriever") is None else None,
        "temperature": identity.get("temperature"),
        "thinking": {True: "on", False: "off"}.get(identity.get("thinking")),  # type: ignore[call-overload]
        **{name.replace("_", " "): identity.get(name) for name in _OF_SEARCH},
    }
    asking = [system for system in systems if judge_of(manifest, system)]
    named = dict.fromkeys(
        f"{judge_of(manifest, system)}{_SIMULATED if simulated_judge(manifest, system) else ''}" for system in asking
    )
    facts["judge"] = " and ".join(named)
    if identity.get("retriever") is not None:
        del facts["search type"]
    facts["judgetree"] = _version_words(manifest)
    facts["asked"] = str(manifest.get("created", ""))[:10]
    facts[_COMMAND] = "judgetree eval run --from manifest.json --out FOLDER"
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def provenance_of_all(runs: Iterable[Provenance]) -> Provenance:
    """Return what runs have in common; a fact that differs between them varies. Each has a command of its own."""
    parts = list(runs)
    names = dict.fromkeys(name for part in parts for name in part if name != _COMMAND)
    return {
        name: values.pop() if len(values := {part.get(name, "") for part in parts}) == 1 else _VARIES for name in names
    }


def provenance_words(facts: Provenance) -> str:
    """Say the facts in a paragraph."""
    return one_line(f"{'; '.join(f'{name}: {value}' for name, value in facts.items())}.")


def _sample_words(experiment: Mapping[str, object], *, asked: int, there: int | None) -> str:
    of_all = f"{asked:,}" if there is None else f"{asked:,} of {there:,}"
    if asked == there:
        return of_all
    if experiment.get("limit") is not None:
        return f"the first {of_all}"
    return f"{of_all}, drawn by seed {experiment.get('seed', 0)}" if experiment.get("sample") is not None else of_all


def _version_words(manifest: Manifest) -> str:
    versions = code_versions_in(manifest)
    if not versions:
        return ""
    newest = versions[-1]
    several = f", and {len(versions) - 1} before" if len(versions) > 1 else ""
    return f"{newest.get('judgetree', '')} (code {newest.get('code_digest', '')[:_DIGITS]}{several})"
