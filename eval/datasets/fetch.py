"""Download of public data sets: fetched, unpacked and read once before they get their final name."""

from __future__ import annotations

import hashlib
import lzma
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import httpx

from ...modules.addresses import Address
from ...modules.errors import LoadingError, ProxyFault, SettingsError
from ...modules.network.clients import following_client
from ...modules.progress import ByteProgress
from ...modules.redaction import starred
from ...modules.storage.write_errors import refusing_full_disk
from .registry import load_dataset
from .sources import SOURCES, DatasetSource

_TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 20
_RANGE_NOT_SATISFIABLE = 416
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What ``zipfile`` raises at a damaged, encrypted or unknown archive."""
_MOST_UNPACKED = 20
"""Limit of unpacked bytes, as a multiple of the size limit of the download."""


@dataclass(frozen=True, kw_only=True)
class FetchedDataset:
    """A data set on disk that was read without error."""

    spec: str
    """The value for ``Experiment.dataset``."""
    questions: int
    documents: int
    malformed: int
    """Number of rows left out."""
    downloaded: bool
    """False if the data set was on disk before."""


def fetch_dataset(
    name: str | DatasetSource,
    folder: Path,
    *,
    url: str | None = None,
    on_progress: ByteProgress | None = None,
    loopback_http: bool = False,
) -> FetchedDataset:
    """Download a public data set into a folder unless it is there, and read it once.

    An interrupted download resumes if the server allows it. A data set that cannot be read is deleted. Every hop of the
    download must be HTTPS, and its size is limited to the source's ``max_bytes``.

    ::

        fetched = fetch_dataset("hotpotqa", Path("data"))

    Args:
        name: One of ``SOURCES``, or a source that they do not have.
        folder: Target folder, created if missing.
        url: Address of a mirror, whose file may differ from the authors'; None takes the authors' address.
        on_progress: Called after each block of the download.
        loopback_http: Allow ``http://127.0.0.1`` and ``http://localhost`` too, for test servers.

    Raises:
        SettingsError: The name is unknown.
        LoadingError: The download or reading it failed; the message says how to get the file by hand.
        WritingError: The disk is full, or the folder cannot be written; what has arrived is kept.
    """
    source = source_of(name) if isinstance(name, str) else name
    target = folder / source.target
    if target.exists():
        return _read_once(source, target, downloaded=False)
    address = Address(url or source.url)
    if not address:
        raise LoadingError(by_hand(source, target, why="It cannot be downloaded by a program."))
    staging = folder / f".fetch-{source.target}"
    with refusing_full_disk(staging):
        staging.mkdir(parents=True, exist_ok=True)
    part = staging / "download.part"
    try:
        download(address, part, on_progress=on_progress, max_bytes=source.max_bytes, loopback_http=loopback_http)
        if not url:
            _check_digest(part, "md5", source.md5)
            _check_digest(part, "sha256", source.sha256)
        try:
            fetched = _unpacked(source, part, staging / source.target)
        except _DAMAGED_ZIP as error:
            raise LoadingError(f"its archive cannot be unpacked: {error or type(error).__name__}") from error
        checked = _read_once(source, fetched, downloaded=True)
    except (LoadingError, ProxyFault, httpx.HTTPError, httpx.InvalidURL) as error:
        if not isinstance(error, httpx.TransportError | ProxyFault):  # after a broken connection, resume from the part
            shutil.rmtree(staging)
        raise LoadingError(
            by_hand(source, target, why=f"{address} did not give it: {starred(_reason(error), address.secrets())}.")
        ) from error
    fetched.replace(target)
    shutil.rmtree(staging)
    return FetchedDataset(**{**vars(checked), "spec": f"{source.format}:{target}"})


def source_of(name: str) -> DatasetSource:
    """Look up a data set by name.

    Raises:
        SettingsError: The name is unknown; the message lists the known ones.
    """
    if name not in SOURCES:
        raise SettingsError(f"Unknown data set {name!r}. Allowed: {', '.join(SOURCES)}.")
    return SOURCES[name]


def by_hand(source: DatasetSource, target: Path, *, why: str) -> str:
    """Describe how to get the data set with a browser, after the reason ``why``."""
    how = source.by_hand or f"Open {source.url} in a browser (its home is {source.homepage})."
    taken = f" Take {', '.join(source.members)} out of the archive." if source.members else ""
    used = f"judgetree eval run --dataset {source.format}:{target}"
    return f"{why} {how}{taken} Save it as {target}, then ask it by `{used}`."


def download(
    url: str, part: Path, *, max_bytes: int, on_progress: ByteProgress | None = None, loopback_http: bool = False
) -> None:
    """Download into ``part``, resuming from what is there if the server still has the same file.

    Raises:
        httpx.HTTPError, ProxyFault: The server cannot be reached, refuses, or hangs up; ``part`` keeps what arrived.
        LoadingError: An address on the way is not HTTPS, or the file is larger than ``max_bytes``.
    """

    def refuse_plain_http(request: httpx.Request) -> None:
        is_loopback = loopback_http and request.url.host in _LOOPBACK
        if request.url.scheme != "https" and not is_loopback:
            raise LoadingError(f"it leads to {request.url.scheme}://{request.url.host}, but only https:// is allowed")

    tag_file = part.with_suffix(".tag")
    tag = tag_file.read_text(encoding="utf-8") if tag_file.exists() else ""
    have = part.stat().st_size if part.exists() and tag else 0
    # Uncompressed, so that received bytes match Range and Content-Length.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": tag}
    with (
        following_client(timeout_s=_TIMEOUT_S, event_hooks={"request": [refuse_plain_http]}) as client,
        client.stream("GET", Address(url).revealed(), headers=headers) as response,
    ):
        if response.status_code == _RANGE_NOT_SATISFIABLE and have:  # complete, or another file now: start over
            tag_file.unlink()
        else:
            response.raise_for_status()
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                have = 0
                tag_file.write_text(_tag(response), encoding="utf-8")
            _write(response, part, have, max_bytes, on_progress or (lambda done, total: None))
            return
    download(url, part, max_bytes=max_bytes, on_progress=on_progress, loopback_http=loopback_http)


def _write(response: httpx.Response, part: Path, have: int, max_bytes: int, on_progress: ByteProgress) -> None:
    packing = response.headers.get("Content-Encoding", "identity")
    if packing.strip().lower() not in ("", "identity"):  # few packed bytes may unpack to many
        raise LoadingError(f"its server sends it packed ({packing:.40}), which was not asked for")
    coming = int(response.headers.get("Content-Length", 0))
    total = have + coming if coming else 0
    if total > max_bytes:
        raise _too_large(max_bytes)
    with refusing_full_disk(part), part.open("ab" if have else "wb") as file:
        for block in response.iter_raw():
            have += len(block)
            if have > max_bytes:
                raise _too_large(max_bytes)
            file.write(block)
            on_progress(have, total)


def _too_large(max_bytes: int) -> LoadingError:
    return LoadingError(f"it is larger than {max_bytes / 1e6:g} MB, the limit of this data set")


def _tag(response: httpx.Response) -> str:
    """Return a validator for If-Range; ``""`` if the server sends none."""
    tag = str(response.headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _check_digest(file: Path, kind: Literal["md5", "sha256"], expected: str) -> None:
    if not expected:
        return
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
    if found != expected:
        raise LoadingError(f"its {kind.upper()} is {found}, but the authors' file has {expected}")


def _unpacked(source: DatasetSource, part: Path, target: Path) -> Path:
    if not source.members or not zipfile.is_zipfile(part):
        return part.replace(target)
    with zipfile.ZipFile(part) as archive:
        taken = [(name, path) for name in archive.namelist() if (path := _inner_path(name, source.members)) is not None]
        if not taken:
            raise LoadingError(f"the archive holds none of {', '.join(source.members)}")
        left = _MOST_UNPACKED * source.max_bytes
        for name, path in taken:
            file = target / path if source.is_folder else target
            file.parent.mkdir(parents=True, exist_ok=True)
            with refusing_full_disk(file), archive.open(name) as packed, file.open("wb") as plain:
                while block := packed.read(_BLOCK_BYTES):
                    left -= plain.write(block)
                    if left < 0:
                        raise _too_large(_MOST_UNPACKED * source.max_bytes)
    return target


def _inner_path(name: str, patterns: tuple[str, ...]) -> Path | None:
    """Return the tail of a path that matches a pattern, which cannot lead out of a folder; None without a match."""
    path = PurePosixPath(name)
    for pattern in patterns:
        if path.match(pattern):
            return Path(*path.parts[-len(PurePosixPath(pattern).parts) :])
    return None


def _read_once(source: DatasetSource, path: Path, *, downloaded: bool) -> FetchedDataset:
    spec = f"{source.format}:{path}"
    dataset = load_dataset(spec)
    return FetchedDataset(
        spec=spec,
        questions=len(dataset.questions),
        documents=len(dataset.documents),
        malformed=len(dataset.malformed),
        downloaded=downloaded,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code} {error.response.reason_phrase}"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
