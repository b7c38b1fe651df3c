"""From a data set's corpus to an indexed collection."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ...modules.errors import SettingsError
from ...modules.index.factory import Progress, open_index
from ...modules.index.file_parsers import LoadLimits
from ...modules.index.index import Index
from ...modules.settings import Settings
from ..datasets.questions import Dataset

_CHUNK_SIZE = 100_000
"""Longer than any paragraph: a document of a data set is one chunk, so that gold documents and chunks are the same."""

_LIMITS = LoadLimits(file_bytes=1 << 40, documents=1 << 40, seconds=3600.0, memory_bytes=1 << 40)
"""A corpus is a file that judgetree wrote, or a folder that the data set names; either may be large."""


def collection_of(dataset: Dataset) -> str:
    """The collection of a corpus: its data set's name and what it holds."""
    return f"eval_{re.sub(r'[^0-9A-Za-z]+', '_', dataset.name)}_{dataset.corpus_digest[:12]}"


def open_collection(collection: str, settings: Settings) -> Index:
    """An index over a collection that is there, as it is; close it after use.

    Raises:
        CollectionError: There is no such collection; the message lists those there are.
    """
    index = open_index(collection, settings)
    try:
        index.info()
    except BaseException:
        index.close()
        raise
    return index


def open_corpus(dataset: Dataset, settings: Settings, *, on_progress: Progress | None = None) -> Index:
    """An index over the data set's corpus, brought up to date; close it after use.

    Documents of a data set are one chunk each; a folder is chunked as ``judgetree index`` does. Costs the embedding of
    what was never embedded; nothing the second time.

    Raises:
        SettingsError: The data set has no corpus.
        UserError: See ``Index``.
    """
    if dataset.folder is None and not dataset.documents:
        raise SettingsError(
            f"The data set {dataset.name!r} has questions and no corpus, so there is nothing to retrieve from. "
            "Ask it of the system llm alone, or take a data set with documents."
        )
    path = dataset.folder or _written(dataset, settings.home / "corpora" / dataset.corpus_digest[:12])
    index = open_index(
        collection_of(dataset), settings, data_path=path, limits=_LIMITS, source_prefix="", on_progress=on_progress
    )
    try:
        if dataset.folder:
            index.get_index_done()
        else:
            index.get_index_done(_CHUNK_SIZE, 0)
    except BaseException:
        index.close()
        raise
    return index


def _written(dataset: Dataset, folder: Path) -> Path:
    file = folder / "corpus.jsonl"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}")
        with half.open("w", encoding="utf-8") as lines:
            for document in dataset.documents:
                metadata = {**document.metadata, "title": document.title, dataset.key_field: document.key}
                lines.write(json.dumps({"text": document.text, "metadata": metadata}, ensure_ascii=False) + "\n")
        half.replace(file)
    return folder
