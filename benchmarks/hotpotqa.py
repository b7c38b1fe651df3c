"""HotpotQA, where JUDGETREE_BENCH_HOTPOTQA names its file, indexed once for all benchmarks that ask it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.index.index import Index
from judgetree.modules.settings import Settings, load_settings

from .measurement import Row

VARIABLE = "JUDGETREE_BENCH_HOTPOTQA"
EMBEDDINGS = "local:minilm"


@dataclass(frozen=True, kw_only=True)
class HotpotQA:
    """The data set and the settings under which its corpus is indexed."""

    dataset: Dataset
    settings: Settings

    @contextmanager
    def index(self) -> Iterator[Index]:
        """The index over its pooled paragraphs, "title. paragraph" each; made at the first call, closed after use."""
        with open_corpus(self.dataset, self.settings) as index:
            yield index


@functools.cache
def hotpotqa() -> HotpotQA | None:
    """The data set; None where no file is named."""
    file = os.environ.get(VARIABLE)
    if not file:
        return None
    home = Path(tempfile.mkdtemp(prefix="judgetree-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    settings = load_settings(home=home, embeddings=EMBEDDINGS, checkpoints="memory:")
    return HotpotQA(dataset=load_dataset(f"hotpotqa:{file}"), settings=settings)


def not_measured(what: str, required: str) -> Row:
    """The row of a benchmark that has no file to ask."""
    return Row(what, f"not measured: {VARIABLE} names no file", required)
