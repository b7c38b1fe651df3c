"""Download of public prebuilt indexes: files that are compared with known digests, unpacked and joined."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from ..modules.errors import LoadingError, SettingsError, reason_of
from ..modules.prebuilt.files import YAML_NAME
from ..modules.progress import ByteProgress
from ..modules.storage.atomic import replacing, write_atomic
from .datasets.fetch import download

_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, kw_only=True)
class PublicFile:
    """One file at an address."""

    url: str
    size: int
    """Bytes."""
    sha256: str
    target: str
    """Name of the file that it becomes; files of the same target are joined in their order."""
    is_gzip: bool = False


@dataclass(frozen=True, kw_only=True)
class PublicPrebuilt:
    """A prebuilt index that others have published."""

    files: Sequence[PublicFile]
    yaml: str
    """Content of its YAML file."""
    size: str
    """Passages and bytes, in words."""
    licence: str
    homepage: str
    citation: str


_HUB = "https://huggingface.co/datasets/PeterJinGo"
PREBUILT: Mapping[str, PublicPrebuilt] = {
    "wiki18-e5": PublicPrebuilt(
        files=(
            PublicFile(
                url=f"{_HUB}/wiki-18-corpus/resolve/main/wiki-18.jsonl.gz",
                size=5_123_307_260,
                sha256="7abd929223399cd63c52b499f289bf4f9039be1e9f8c43e1cb3938305b2317db",
                target="wiki-18.jsonl",
                is_gzip=True,
            ),
            PublicFile(
                url=f"{_HUB}/wiki-18-e5-index/resolve/main/part_aa",
                size=42_949_672_960,
                sha256="a8a6a246951da4bbc8771a223283ef61963882a32864d9044ec00abb90fc3023",
                target="e5_Flat.index",
            ),
            PublicFile(
                url=f"{_HUB}/wiki-18-e5-index/resolve/main/part_ab",
                size=21_609_402_413,
                sha256="b6d9bc943626fe7cb44de4c849e9379e7f272ab216c0552acbcf2390cc033c11",
                target="e5_Flat.index",
            ),
        ),
        yaml="corpus: wiki-18.jsonl\nfaiss: e5_Flat.index\nquery_prefix: 'query: '\n"
        "# embeddings: URL#intfloat/e5-base-v2, an endpoint that serves this model; else JUDGETREE_EMBEDDINGS\n",
        size="21,015,324 passages of Wikipedia 2018 (5.1 GB, unpacked about three times as much) and a flat index by "
        "e5-base-v2 (64.6 GB; as much besides while its parts are joined)",
        licence="CC BY-SA 4.0 of FlashRAG's collection, from which the corpus is; the page of the index names none.",
        homepage=f"{_HUB}/wiki-18-e5-index",
        citation="Jin et al. (2024): FlashRAG: A Modular Toolkit for Efficient RAG Research. "
        "https://arxiv.org/abs/2405.13576. Jin et al. (2025): Search-R1. https://arxiv.org/abs/2503.09516",
    ),
}
"""By the name that ``judgetree eval fetch`` takes. Addresses, sizes and digests as of 2026; a digest that differs ends
the download."""


def fetch_prebuilt(
    name: str | PublicPrebuilt,
    folder: Path,
    *,
    on_progress: ByteProgress | None = None,
    loopback_http: bool = False,
) -> bool:
    """Download a public prebuilt index into a folder, with a YAML file; returns False if it was there.

    An interrupted download resumes if the server allows it, and files that are done are not fetched again.

    Args:
        name: One of ``PREBUILT``, or one that it does not have.
        folder: Target folder, created if missing.
        on_progress: Called after each block of a file's download.
        loopback_http: Allow ``http://127.0.0.1`` and ``http://localhost`` too, for test servers.

    Raises:
        SettingsError: The name is unknown.
        LoadingError: A file cannot be downloaded, or has another digest.
        WritingError: A file could not be written.
    """
    if isinstance(name, str) and name not in PREBUILT:
        raise SettingsError(f"Unknown prebuilt index {name!r}. Allowed: {', '.join(PREBUILT)}.")
    public = PREBUILT[name] if isinstance(name, str) else name
    if (folder / YAML_NAME).exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for target in dict.fromkeys(file.target for file in public.files):
        if not (folder / target).exists():
            files = [file for file in public.files if file.target == target]
            parts = [_downloaded(file, folder, on_progress, loopback_http=loopback_http) for file in files]
            _join(files, parts, folder / target)
    write_atomic(folder / YAML_NAME, public.yaml)
    return True


def _downloaded(file: PublicFile, folder: Path, on_progress: ByteProgress | None, *, loopback_http: bool) -> Path:
    part = folder / f"{file.url.rpartition('/')[2]}.part"
    try:
        if not part.exists() or part.stat().st_size != file.size:
            download(file.url, part, max_bytes=file.size, on_progress=on_progress, loopback_http=loopback_http)
    except (httpx.HTTPError, httpx.InvalidURL, LoadingError) as error:
        raise LoadingError(
            f"{file.url} could not be fetched: {reason_of(error)}. Try again: what has arrived is kept."
        ) from error
    with part.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        part.unlink()
        raise LoadingError(
            f"{file.url} has the SHA-256 {found}, expected was {file.sha256}: its publisher has changed it, or it was "
            "cut off. It is deleted; try again."
        )
    return part


def _join(files: Sequence[PublicFile], parts: Sequence[Path], target: Path) -> None:
    with replacing(target) as joined:
        for file, part in zip(files, parts, strict=True):
            with _opened(file, part) as stream:
                shutil.copyfileobj(stream, joined, _BLOCK_BYTES)
    for part in parts:
        part.unlink()
        part.with_suffix(".tag").unlink(missing_ok=True)


def _opened(file: PublicFile, part: Path) -> BinaryIO:
    return gzip.open(part) if file.is_gzip else part.open("rb")  # type: ignore[return-value]
