"""HotpotQA from the file that JUDGETREE_BENCH_HOTPOTQA names, indexed once for all benchmarks."""

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

from .measurement import Row, not_measured

VARIABLE = "JUDGETREE_BENCH_HOTPOTQA"
EMBEDDINGS = "local:minilm"


@dataclass(frozen=True, kw_only=True)
class HotpotQA:
    """A data set and the settings of its index."""

    dataset: Dataset
    settings: Settings

    @contextmanager
    def index(self) -> Iterator[Index]:
        """Open the index over the pooled paragraphs ("title. paragraph"); the first call builds it."""
        with open_corpus(self.dataset, self.settings) as index:
            yield index


@functools.cache
def hotpotqa() -> HotpotQA | None:
    """Load the data set; None without a file."""
    file = os.environ.get(VARIABLE)
    if not file:
        return None
    home = Path(tempfile.mkdtemp(prefix="judgetree-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    settings = load_settings(home=home, embeddings=EMBEDDINGS, checkpoints="memory:")
    return HotpotQA(dataset=load_dataset(f"hotpotqa:{file}"), settings=settings)


def without_file(what: str, required: str) -> Row:
    """Make the row of a benchmark without its file."""
    return not_measured(what, f"{VARIABLE} names no file", required)
