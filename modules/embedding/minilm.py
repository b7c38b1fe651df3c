"""all-MiniLM-L6-v2 on onnxruntime: texts in batches of like length, one thread a batch on each core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..quiet_libraries import keep_libraries_quiet
from .batches import by_length
from .cores import usable_cores

if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_TOKENS = 256
"""Token limit in the training of all-MiniLM-L6-v2; its tokenizer.json says 128."""
DIMENSION = 384
_TOKENS_A_BATCH = 512
"""Padded tokens of one run of the model. Larger batches leave the cache of a core: 1,024 take 7 % longer a text."""
_MOST_WORKERS = 16
"""A run takes some 20 MB for its intermediate results."""

Vectors = npt.NDArray[np.float32]
"""Shape (n, 384)."""


def open_minilm(model: Path, tokenizer: Path) -> Callable[[Sequence[str]], Vectors]:
    """Return a thread-safe function from n texts to their vectors of length 1, shape (n, 384), in their order.

    Several batches run at once, one on each core. A text's vector depends on its batch by less than 1e-6.
    """
    keep_libraries_quiet()
    import onnxruntime  # noqa: PLC0415 - loaded when it is used
    from tokenizers import Tokenizer  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    # The cores work on batches of their own. Two threads on one text wait for each other at every matrix.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model,
        options,
        providers=["CPUExecutionProvider"],
        # The fused operator is not vectorised: 12 of them take an eighth of the whole time, apart almost nothing.
        disabled_optimizers=["SkipLayerNormFusion"],
    )
    tokens_of = Tokenizer.from_file(str(tokenizer))
    tokens_of.no_padding()  # the file pads to 128, which costs half of the recall
    tokens_of.enable_truncation(MAX_TOKENS)

    def run(batch: Sequence[Encoding]) -> Vectors:
        ids = np.zeros((len(batch), max(len(each.ids) for each in batch)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(batch):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(["last_hidden_state"], inputs)
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: Vectors = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def encode(texts: Sequence[str]) -> Vectors:
        encodings = [tokens_of.encode(text) for text in texts]
        batches = by_length([len(each.ids) for each in encodings], budget=_TOKENS_A_BATCH)
        found = _spread_out(lambda batch: run([encodings[position] for position in batch]), batches)
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for batch, rows in zip(batches, found, strict=True):
            vectors[batch] = rows
        return vectors

    return encode


def _spread_out(run: Callable[[list[int]], Vectors], batches: Sequence[list[int]]) -> list[Vectors]:
    """Run all batches, as many at once as there are cores, in threads that end with the call."""
    workers = min(len(batches), usable_cores(), _MOST_WORKERS)
    if workers < 2:
        return [run(batch) for batch in batches]
    with ThreadPoolExecutor(workers, thread_name_prefix="minilm") as threads:  # a forked child has no threads of a pool
        return list(threads.map(run, batches))
