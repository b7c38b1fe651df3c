"""Prebuilt indexes as others make them: a FlashRAG corpus, faiss indexes, and the two kinds of bm25s folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import faiss
import numpy as np
import snowballstemmer

from tests.modules.fake_embeddings import BagOfWordsEmbedder

PASSAGES = (
    ("Norm A", "Norm A names the drum."),
    ("Drums", "The drum's wall is 40 mm thick."),
    ("Ladders", "Ladders are painted grey."),
    ("容器", "甲类容器的壁厚为四十毫米。"),
    ("Paint", "Grey paints dry within one day, and grey is cheap."),
)


def contents(passages: Sequence[tuple[str, str]] = PASSAGES) -> list[str]:
    return [f'"{title}"\n{text}' for title, text in passages]


def write_corpus_file(folder: Path, passages: Sequence[tuple[str, str]] = PASSAGES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": str(row), "contents": text}) for row, text in enumerate(contents(passages))]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "corpus.jsonl"


def vectors_of(texts: Sequence[str]) -> Any:
    return np.asarray(BagOfWordsEmbedder().embed_documents(list(texts)), dtype=np.float32)


def write_faiss(folder: Path, vectors: Any, kind: str = "Flat", metric: int = faiss.METRIC_INNER_PRODUCT) -> Path:
    index = faiss.index_factory(vectors.shape[1], kind, metric)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(folder / "e5_Flat.index"))
    return folder / "e5_Flat.index"


def write_bm25s(folder: Path, texts: Sequence[str], *, tokenizer: bool = True, **params: Any) -> Path:
    """As FlashRAG does with its tokenizer saved, or as the readme of bm25s does."""
    index = bm25s.BM25(**params)
    if tokenizer:
        made = bm25s.tokenization.Tokenizer(stopwords="en", stemmer=snowballstemmer.stemmer("english"))
        index.index(made.tokenize(list(texts), return_as="tuple", show_progress=False), show_progress=False)
        made.save_vocab(folder / "bm25")
        made.save_stopwords(folder / "bm25")
    else:
        index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)
    index.save(folder / "bm25", show_progress=False)
    return folder / "bm25"


def write_prebuilt(folder: Path, passages: Sequence[tuple[str, str]] = PASSAGES) -> Path:
    """A folder that explains itself."""
    write_corpus_file(folder, passages)
    write_faiss(folder, vectors_of(contents(passages)))
    write_bm25s(folder, contents(passages))
    return folder
