"""A ``bm25s`` index that others have built, mapped into memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from tokenize import TokenError  # of numpy's headers
from typing import Any

import numpy as np

from ..errors import CollectionError, SettingsError, needs_extra, reason_of
from .finite import are_finite, are_within

_NONE = "none"
_TOKENIZER = ("vocab.tokenizer.json", "stopwords.tokenizer.json")
_NEEDED = (
    "params.index.json",
    "vocab.index.json",
    "data.csc.index.npy",
    "indices.csc.index.npy",
    "indptr.csc.index.npy",
)
_OPTIONAL = (*_TOKENIZER, "nonoccurrence_array.index.npy")


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder of ``bm25s`` that decide what a search finds.

    Raises:
        CollectionError: One is missing.
    """
    if missing := [name for name in _NEEDED if not (folder / name).is_file()]:
        raise CollectionError(
            f"The folder {folder} is no index of bm25s: {', '.join(missing)} is missing. Give the folder that its "
            "save wrote; an index of Lucene, as Pyserini has it, is another kind."
        )
    return [*(folder / name for name in _NEEDED), *(folder / name for name in _OPTIONAL if (folder / name).is_file())]


class Bm25sFolder:
    """A folder that ``bm25s`` saved, with words and stop words as they were saved; safe for many threads."""

    def __init__(self, folder: Path, *, stemmer: str | None = None, stopwords: str | None = None) -> None:
        """Open a folder; scores are mapped into memory, the words of the vocabulary are read.

        Args:
            folder: The folder.
            stemmer: Snowball stemmer, or "none"; None takes english if the words saved by a tokenizer are stemmed.
            stopwords: Stop words of bm25s such as "en", or "none"; None takes those saved, else english ones.

        Raises:
            CollectionError: A file is missing, cut off, or no such file.
            SettingsError: The stemmer or the stop words are unknown.
            DependencyError: The extra is not installed.
        """
        files_of(folder)
        with needs_extra("prebuilt", what=f"The index of bm25s in {folder}"):
            import bm25s  # noqa: PLC0415 - an extra
        self.folder = folder
        self._module: Any = bm25s
        try:
            # The compiled backend needs another package, and breaks ties otherwise.
            self._index = bm25s.BM25.load(folder, mmap=True, load_corpus=False, backend="numpy")
            self._check()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, TokenError) as error:
            raise self._damaged(error) from error
        self._tokenizing = threading.Lock()  # stemmers and the tokenizer's own tables change as they work
        self._tokens = self._tokens_of(stemmer, stopwords)

    def __len__(self) -> int:
        return int(self._index.scores["num_docs"])

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return at most ``limit`` rows with their BM25 scores, best first, equal scores by row.

        A row without any of the words is none. Costs an array of all scores, 4 bytes a row.
        """
        with self._tokenizing:
            tokens = self._tokens(query)
        if not tokens:
            return []
        try:
            scores = self._index.get_scores(tokens)
            without = self._score_without(tokens)
        except (ValueError, TypeError, IndexError) as error:
            raise self._damaged(error) from error
        if not np.isfinite(scores).all():
            raise self._damaged("its scores are not finite numbers")
        rows = np.flatnonzero(scores > without)
        if rows.size > limit:
            least = np.partition(scores[rows], rows.size - limit)[rows.size - limit]
            rows = rows[scores[rows] >= least]
        # bm25s's own order of equal scores is that of numpy's sort, which differs between processors.
        best = rows[np.lexsort((rows, -scores[rows]))][:limit]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def check_numbers(self) -> None:
        """Check that all scores are finite and belong to rows, at the cost of reading them all.

        Raises:
            CollectionError: One is not or does not; searches would be wrong.
        """
        scores, of_absent = self._index.scores, self._index.nonoccurrence_array
        if not are_finite(scores["data"]) or (of_absent is not None and not are_finite(of_absent)):
            raise self._damaged("some of its scores are not finite numbers")
        if not are_within(scores["indices"], len(self)):
            raise self._damaged("some of its scores are of rows that it does not have")

    def _score_without(self, tokens: list[Any]) -> float:
        """Return the score of a row that has none of the words: above 0 for bm25l and bm25+."""
        if (of_absent := self._index.nonoccurrence_array) is None:
            return 0.0
        return float(of_absent[self._index.get_tokens_ids(tokens) if isinstance(tokens[0], str) else tokens].sum())

    def _check(self) -> None:
        scores = self._index.scores
        if not isinstance(scores["num_docs"], int) or scores["num_docs"] < 0:
            raise ValueError("its parameters do not say num_docs")
        data, indices, ends = (scores[name] for name in ("data", "indices", "indptr"))
        if (
            (data.ndim, indices.ndim, ends.ndim) != (1, 1, 1)
            or data.dtype.kind != "f"
            or indices.dtype.kind not in "iu"
        ):
            raise ValueError("its arrays are not those of bm25s")
        is_one = len(indices) == len(data) and len(ends) and (ends[0], ends[-1]) == (0, len(data))
        if not is_one or bool((np.diff(ends) < 0).any()):
            raise ValueError("its arrays do not belong together")

    def _damaged(self, what: object) -> CollectionError:
        said = str(what) or type(what).__name__
        return CollectionError(
            f"The index of bm25s in {self.folder} cannot be read: {said:.200}. It may be cut off: fetch or save it "
            "again."
        )

    def _tokens_of(self, stemmer: str | None, stopwords: str | None) -> Callable[[str], list[Any]]:
        """Return what cuts a query into the tokens of the index."""
        has_tokenizer = (self.folder / _TOKENIZER[0]).is_file()
        kept = self._saved_tokenizer() if has_tokenizer else None
        if stemmer is None and kept is not None and kept.word_to_stem:
            stemmer = "english"
        stem = None if stemmer in (None, _NONE) else _stemmer(str(stemmer))
        try:
            words = self._module.tokenization._infer_stopwords(None if stopwords == _NONE else stopwords or "english")
        except ValueError as error:
            raise SettingsError(f"stopwords={stopwords!r} are unknown to bm25s: {error}") from error
        # The empty word of bm25s, which queries without a word get, may lie beyond the columns of its scores.
        columns = len(self._index.scores["indptr"]) - 1
        if kept is None:
            options = {"stopwords": words, "stemmer": stem, "return_ids": False, "show_progress": False}
            known = {word for word, column in self._index.vocab_dict.items() if column < columns}
            return lambda query: [
                token for token in self._module.tokenize([query], allow_empty=False, **options)[0] if token in known
            ]
        kept.stemmer = None if stem is None else stem.stemWord
        if stopwords is not None:
            kept.stopwords = words
        known_ids = {column for column in self._index.unique_token_ids_set if column < columns}

        def ids(query: str) -> list[Any]:
            [found] = kept.tokenize([query], update_vocab=False, allow_empty=False, show_progress=False)
            return [each for each in found if each in known_ids]

        return ids

    def _saved_tokenizer(self) -> Any:
        tokenizer = self._module.tokenization.Tokenizer()
        try:
            tokenizer.load_vocab(self.folder)
            if (self.folder / _TOKENIZER[1]).is_file():
                tokenizer.load_stopwords(self.folder)
            tokenizer.tokenize(["a word"], update_vocab=False, allow_empty=False, show_progress=False)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CollectionError(
                f"The tokenizer of bm25s in {self.folder} cannot be read: {reason_of(error)}. Fetch or save it again."
            ) from error
        return tokenizer


def _stemmer(name: str) -> Any:
    with needs_extra("prebuilt", what=f"The stemmer {name!r}"):
        import snowballstemmer  # noqa: PLC0415 - an extra
    try:
        return snowballstemmer.stemmer(name)
    except KeyError as error:
        allowed = ", ".join(sorted(snowballstemmer.algorithms()))
        raise SettingsError(f"Unknown stemmer {name!r}. Allowed: {_NONE}, {allowed}.") from error
