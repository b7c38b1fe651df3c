"""Repetition of a run from its manifest: same configuration, same data, and a list of what has changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...modules.addresses import Address
from ...modules.errors import LoadingError, SettingsError
from ...modules.settings import Settings, load_settings, without_secrets
from ..rows.code_version import code_version, code_versions_in, differences
from ..rows.store import Manifest, RunStore, part_of
from .experiment import Experiment
from .manifest import PROMPT_LIMITS, PROMPTS, experiment_in
from .start_folder import found_again

_RESTORED = ("llm_base_url", "timeout_s", "retries", *PROMPT_LIMITS)
"""Restored settings beside the models; folders, servers and keys are those of this machine."""
_STARRED = "***"
_DATA = ("dataset_digest", "corpus_digest")
_OPENED_DATA: Mapping[str, str] = {
    "index": "content_digest",
    "search_graph": "graph",
    "links": "graph",
    "retriever": "content",
}
"""By part of a manifest that describes an opened service, the fact that is a digest of data."""


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """A run to repeat."""

    manifest: Manifest
    experiment: Experiment
    """The original experiment with the models and embeddings that its settings named."""
    settings: Settings
    """Today's settings with the restored ones of the run."""
    changes: tuple[str, ...]
    """Changed prompts, code, libraries and git revision that may change results, a phrase each."""


def load_rerun(path: Path, *, settings: Settings | None = None, **overrides: object) -> Rerun:
    """Load a run to repeat from its manifest.

    ::

        again = load_rerun(Path("runs/a/manifest.json"))
        run_experiment(again.experiment, Path("runs/b"), options=RunOptions(again=again))

    Args:
        path: A manifest, or its run directory. Data is also looked for from the folder in which that run was started.
        settings: Today's settings; None reads environment and ``.env``.
        overrides: Experiment keys to change.

    Raises:
        LoadingError: There is no manifest, or it is damaged.
        SettingsError: A key is invalid, or a model's address had a password, which manifests leave out.
    """
    folder = path if path.is_dir() else path.parent
    manifest = RunStore(folder).read_manifest()
    if manifest is None or (not path.is_dir() and path.name != "manifest.json"):
        raise LoadingError(f"{path} is not the manifest of a run. Name the manifest.json of a run directory.")
    now = settings or load_settings()
    kept = part_of(manifest, "identity")
    as_it_was = {
        "llm": _with_secrets(kept.get("llm"), now.llm_spec, "LLM"),
        "judge_llm": _with_secrets(kept.get("judge_llm"), now.judge_spec, "JUDGE_LLM"),
        "embeddings": _with_secrets(kept.get("embeddings"), now.embeddings, "EMBEDDINGS"),
        "temperature": kept.get("temperature"),
        "thinking": kept.get("thinking"),
        "prompts": part_of(manifest, "experiment").get("prompts") or {},
    }
    given = {**{name: value for name, value in as_it_was.items() if value is not None}, **overrides}
    return Rerun(
        manifest=manifest,
        experiment=found_again(experiment_in(manifest, **given), manifest, folder),
        settings=_restored(now.model_copy(update={"thinking": None}), part_of(manifest, "settings"), kept),
        changes=tuple(_changes(manifest)),
    )


def check_data(
    manifest: Manifest, identity: Mapping[str, object], opened: Mapping[str, Mapping[str, object]] | None = None
) -> None:
    """Check that data set, corpus, collection, its graphs and prebuilt index, as far as given, are the manifest's.

    Args:
        manifest: The manifest of the run to repeat.
        identity: What ``identity_of`` returned; may be empty.
        opened: Facts of opened services by their part of a manifest.

    Raises:
        SettingsError: One of them differs; the message names it.
    """
    then = {name: part_of(manifest, "identity").get(name) for name in _DATA}
    now = {name: identity[name] for name in _DATA if name in identity}
    for part, facts in (opened or {}).items():
        known, digest = manifest.get(part), _OPENED_DATA.get(part, "")
        if isinstance(known, Mapping) and digest in facts:
            name = digest if part == "index" else f"{part}.{digest}"
            then[name], now[name] = known.get(digest), facts[digest]
    others = [name for name, digest in now.items() if then[name] is not None and then[name] != digest]
    if others:
        differences = "; ".join(f"{name}: {then[name]} then, {now[name]} now" for name in others)
        raise SettingsError(
            f"The data differ from those of the run to repeat ({differences}). Restore the files and graphs of that "
            "run, or start a new one without --from."
        )


def _with_secrets(kept: object, now: Address, variable: str) -> object:
    """Add user and password of the same endpoint in today's settings to an address of the manifest."""
    if not isinstance(kept, str):
        return kept
    if _STARRED in kept and without_secrets(now) != kept:
        raise SettingsError(f"The run used {kept!r}, but manifests leave out secrets. Set JUDGETREE_{variable} to it.")
    address = now if _STARRED in kept else Address(kept)
    return address.with_secrets_of(now) if address.endpoint == now.endpoint else address


def _restored(settings: Settings, kept: Mapping[str, object], identity: Mapping[str, object]) -> Settings:
    found = {name: kept[name] for name in _RESTORED if name in kept and _STARRED not in str(kept[name])}
    # Manifests of older versions hold the 8,192 of conversations where it was not set, which had no effect elsewhere.
    found["llm_max_tokens"] = identity.get("llm_max_tokens")
    return Settings.model_validate({**dict(settings), **found})


def _changes(manifest: Manifest) -> list[str]:
    identity = part_of(manifest, "identity")
    pairs = [(name, identity.get(name), version) for name, version in PROMPTS.items()]
    prompts = [f"{name}: {then} then, {now} now" for name, then, now in pairs if then is not None and then != now]
    newest = code_versions_in(manifest)[-1:]
    return prompts + [change for then in newest for change in differences(then, code_version())]
