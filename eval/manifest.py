"""What a run was made of, as plain data beside its rows."""

from __future__ import annotations

import platform
import subprocess
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata

from ..modules.errors import SettingsError
from ..modules.prompts import CLOSED_BOOK_VERSION, GENERATED_JUDGE_VERSION, LOGPROB_JUDGE_VERSION, READER_VERSION
from ..modules.settings import Settings, without_secrets
from .experiment import Experiment
from .questions import Dataset
from .run_store import Manifest

_LIBRARIES = ("judgetree", "langgraph", "langchain-core", "langchain-openai", "pymilvus", "milvus-lite", "openai")


def manifest_of(experiment: Experiment, dataset: Dataset, settings: Settings) -> dict[str, object]:
    """The manifest of a new run, under an id of its own; no secret is in it."""
    return {
        "run_id": str(uuid.uuid4()),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment": experiment.model_dump(mode="json"),
        "identity": identity_of(experiment, dataset, settings),
        "malformed_rows": len(dataset.malformed),
        "python": platform.python_version(),
        "libraries": {name: _version_of(name) for name in _LIBRARIES},
        "git_revision": _git_revision(),
    }


def identity_of(experiment: Experiment, dataset: Dataset, settings: Settings) -> dict[str, object]:
    """All that every row of a run directory shares, by name; ``dataset`` is the whole one, not a choice of it."""
    return {
        **experiment.identity(),
        "dataset_digest": dataset.digest,
        "corpus_digest": dataset.corpus_digest,
        "llm": without_secrets(settings.llm_spec),
        "judge_llm": without_secrets(settings.judge_spec),
        "embeddings": without_secrets(settings.embeddings),
        "reader_prompt": READER_VERSION,
        "closed_book_prompt": CLOSED_BOOK_VERSION,
        "judge_prompt": GENERATED_JUDGE_VERSION,
        "logprob_judge_prompt": LOGPROB_JUDGE_VERSION,
    }


def refuse_other_run(manifest: Manifest, wanted: Mapping[str, object], *, where: object) -> None:
    """Do nothing if the manifest is that of the same run.

    Raises:
        SettingsError: It is another's; the message names each difference.
    """
    stored = manifest.get("identity")
    kept = stored if isinstance(stored, Mapping) else {}
    names = sorted(name for name in kept.keys() | wanted.keys() if kept.get(name) != wanted.get(name))
    if names:
        differences = "; ".join(f"{name}: {kept.get(name)!r} there, {wanted.get(name)!r} now" for name in names)
        raise SettingsError(f"{where} holds another run ({differences}). Give another --out, or that run's settings.")


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def _git_revision() -> str:
    """Of the current folder; ``""`` outside of a repository."""
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()
