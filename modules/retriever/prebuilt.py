"""An index that others have built, as a ``Retriever`` searches it: a corpus with a faiss index and one of ``bm25s``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from ..digests import text_digest
from ..embedding.embedder import create_embeddings, embedder_name
from ..errors import CollectionError, SearchArgumentError, SettingsError
from ..index.schema import DENSE_FIELD, SPARSE_FIELD
from ..llm.rate_limit import Admissions
from ..prebuilt.corpus import Corpus, open_corpus_file
from ..prebuilt.dense import FaissFile
from ..prebuilt.digests import FileDigests, FileState
from ..prebuilt.files import SPEC, PrebuiltFiles, read_files
from ..prebuilt.sparse import Bm25sFolder, files_of
from ..progress import StageProgress
from ..settings import Settings, load_settings
from .fusion import Ranked, fuse, fusion_for
from .search import DOCUMENT_KEY, FieldSearch, Hits, VectorField, Vectors, of_length_one, similarity

if TYPE_CHECKING:
    from pymilvus.client.abstract import BaseRanker


@dataclass(frozen=True)
class QueryEmbedder(Embeddings):
    """An embedder of queries alone, with what an index expects of them."""

    inner: Embeddings
    prefix: str
    """Text before each query."""
    is_scaled: bool
    """Whether vectors are scaled to length 1."""

    @property
    def name(self) -> str:
        """Name of the embedder, with prefix and scaling."""
        prefix = f"{self.prefix!r}+" if self.prefix else ""
        return f"{prefix}{embedder_name(self.inner)}{', length 1' if self.is_scaled else ''}"

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._scaled(self.inner.embed_query(self.prefix + text))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of queries."""
        return list(map(self._scaled, self.inner.embed_documents([self.prefix + text for text in texts])))

    def _scaled(self, vector: list[float]) -> list[float]:
        if not self.is_scaled:
            return vector
        found: list[float] = of_length_one(np.asarray([vector], dtype=np.float32))[0].tolist()
        return found


@dataclass(kw_only=True, eq=False)
class PrebuiltIndex:
    """A corpus with a faiss index, an index of ``bm25s``, or both, opened by ``open_prebuilt``; read-only.

    Chunks have ids of line number and the corpus's own id, such as ``12:doc-9``; their ``source`` is the title, or the
    corpus's id without one, and ``document_key`` that id. Their scores are inner products, negated squared distances
    (L2) and BM25.
    """

    spec: str
    corpus: Corpus
    dense: FaissFile | None
    sparse: Bm25sFolder | None
    files: PrebuiltFiles
    states: Sequence[FileState]
    """All its files as they were when it was opened."""
    digest: str
    """SHA-256 over the digests of its files and how queries become words."""
    embedder: Embeddings | None
    """Embedder of the queries; None without a faiss index."""

    def __post_init__(self) -> None:
        self.fields = {field.name: field for field in self._fields()}
        """Searchable fields by name: ``dense`` of faiss, ``sparse`` of bm25s."""

    def close(self) -> None:
        """Close the corpus."""
        self.corpus.close()

    def usual_search_type(self) -> str:
        """Return the search type if none is asked for."""
        if self.files.search_type is not None:
            return self.files.search_type
        return "hybrid" if len(self.fields) > 1 else next(iter(self.fields.values())).kind

    def check_embedder(self) -> None:
        """Check that queries have as many dimensions as the index; an endpoint is called once if it is not known.

        Raises:
            CollectionError: They have not.
            ModelCallError: The endpoint did not answer.
        """
        dimension = getattr(getattr(self.embedder, "inner", None), "dimension", None)
        if self.dense is not None and dimension is not None and dimension != self.dense.dimension:
            assert self.embedder is not None
            raise CollectionError(
                f"{embedder_name(self.embedder)} gives vectors of {dimension} dimensions, and the faiss index "
                f"{self.dense.path} has {self.dense.dimension}. Name the embedder that it was built with: embeddings "
                "in its YAML file, or JUDGETREE_EMBEDDINGS."
            )

    def content_digest(self) -> str:
        """Return the digest of the files, at the cost of a look at each.

        Raises:
            CollectionError: One has changed since the index was opened.
        """
        if changed := [state.path for state in self.states if FileState.of(state.path) != state]:
            raise CollectionError(f"{changed[0]} has changed since {self.spec} was opened. Open it again.")
        return self.digest

    def search(self, request: FieldSearch, limit: int) -> Hits:
        """Search one field for at most ``limit`` hits; they come best first.

        Raises:
            SearchArgumentError: It is given a filter, or search parameters that do not fit.
            CollectionError: The query's vector has another length than those of the index, or a line is no passage.
        """
        metric = request.field.metric
        return self._hits([(row, similarity(value, metric, lite=False)) for row, value in self._ranked(request, limit)])

    def fused_search(self, requests: Sequence[FieldSearch], ranker: BaseRanker, limit: int) -> Hits:
        """Search several fields for ``limit`` hits each and fuse them; at most ``limit`` come, best first.

        Raises:
            SearchArgumentError: The ranker is another than rrf and weighted; or as ``search``.
            CollectionError: As ``search``.
        """
        fusion = fusion_for(ranker.dict())
        if fusion is None:
            raise SearchArgumentError(f"A prebuilt index is fused by rrf or weighted, not by {ranker.dict()!r:.100}.")
        ranked = [(request.field.metric, self._ranked(request, limit)) for request in requests]
        return self._hits(fuse(fusion, ranked, limit, str))

    def vectors(self, field: str, chunk_ids: Sequence[str]) -> Vectors:
        """Return the vectors of chunks by chunk id; none where the faiss index cannot give them back."""
        if self.dense is None or field != DENSE_FIELD:
            return {}
        rows = {chunk_id: int(chunk_id.partition(":")[0]) for chunk_id in chunk_ids}
        found = self.dense.vectors(list(rows.values()))
        return {chunk_id: found[row] for chunk_id, row in rows.items() if row in found}

    def chunks(self, chunk_ids: Sequence[str], expr: str = "") -> dict[str, Document]:
        """Return chunks by id, whatever ``expr`` is, since there are no filters.

        Raises:
            CollectionError: An id names no line.
        """
        return {chunk_id: self._chunk(int(chunk_id.partition(":")[0])) for chunk_id in chunk_ids}

    def _fields(self) -> list[VectorField]:
        fields = []
        if self.dense is not None:
            kind = f"faiss {self.dense.kind} {dict(self.files.search_params) or ''}".strip()
            fields.append(
                VectorField(
                    name=DENSE_FIELD, kind="dense", metric=self.dense.metric, index_type=kind, embedder=self.embedder
                )
            )
        if self.sparse is not None:
            fields.append(
                VectorField(name=SPARSE_FIELD, kind="sparse", metric="BM25", index_type="bm25s", embedder=None)
            )
        return fields

    def _ranked(self, request: FieldSearch, limit: int) -> Ranked:
        if request.expr:
            raise SearchArgumentError(f"A prebuilt index has no filters, and expr is {request.expr!r}. Leave it out.")
        if self.sparse is not None and isinstance(request.data, str):
            if request.params:
                raise SearchArgumentError(f"bm25s has no search_params, and {dict(request.params)!r} are given.")
            return self.sparse.search(request.data, limit)
        assert self.dense is not None and isinstance(request.data, Sequence) and not isinstance(request.data, str)
        params = self.files.search_params if request.params is None else request.params
        return self.dense.search(request.data, limit, params)

    def _hits(self, ranked: Ranked) -> Hits:
        return [(self._chunk(row), float(score)) for row, score in ranked]

    def _chunk(self, row: int) -> Document:
        if not 0 <= row < len(self.corpus):
            raise CollectionError(
                f"{self.spec} found row {row}, and the corpus has {len(self.corpus):,} lines. Rows of an index must be "
                "numbered as the lines are."
            )
        passage = self.corpus.passage(row)
        text = f"{passage.title}\n{passage.text}" if passage.title else passage.text
        known = {"source": passage.title or passage.id, "title": passage.title, DOCUMENT_KEY: passage.id}
        return Document(page_content=text, metadata={**known, "chunk_id": f"{row}:{passage.id}"})


def open_prebuilt(
    spec: str,
    settings: Settings | None = None,
    *,
    embeddings: Embeddings | None = None,
    admissions: Admissions | None = None,
    on_progress: StageProgress | None = None,
) -> PrebuiltIndex:
    """Open an index that others have built.

    At the first time the indexes are read twice, to check that their numbers are finite and for their digests, and the
    corpus once, for its digest and lines. These are kept in the data folder; later it takes milliseconds, besides the
    words of ``bm25s``. Vectors, scores and texts stay on disk.

    ::

        retriever = Retriever(open_prebuilt("wiki18"), topk=5, search_type="dense")

    Args:
        spec: Path of a YAML file (see ``prebuilt.files.PrebuiltFiles``) or of a folder; ``prebuilt:`` may stand before.
        settings: None reads environment and ``.env``.
        embeddings: Embedder of the queries in place of the one that the YAML file or the settings name.
        admissions: Rate limits that other processes share; None for those of this process.
        on_progress: Called with (done, total, stage) while files are read.

    Raises:
        SettingsError: The YAML file has faults, or no embedder is named.
        LoadingError: A file does not exist, or cannot be read.
        CollectionError: An index is damaged or of another kind, a file was replaced meanwhile, or corpus and indexes
            are not equally long.
        DependencyError: The extra ``prebuilt`` is not installed, for an index of bm25s.
    """
    settings = settings or load_settings()
    path = spec.removeprefix(SPEC)
    files = read_files(path)
    # Before files are read, which may take minutes.
    embedder = None if files.faiss is None else _query_embedder(files, settings, embeddings, admissions)
    folder = settings.home / "prebuilt"
    with FileDigests(folder / "digests.sqlite") as digests:
        corpus = open_corpus_file(files.corpus, folder, digests, on_progress)
        try:
            paths = [*filter(None, [files.faiss]), *(files_of(files.bm25s) if files.bm25s else ())]
            # Before they are opened: what is replaced meanwhile differs.
            states = [FileState.of(each) for each in paths]
            dense = None if files.faiss is None else FaissFile(FileState.of(files.faiss).path)
            sparse = _opened_sparse(files)
            _check_lengths(corpus, dense, sparse)
            _check_once(digests, states, dense, sparse, on_progress)
            parts = [corpus.digest, *(digests.digest_of(state, on_progress) for state in states)]
            if dense is not None:
                dense.check_params(files.search_params)
            index = PrebuiltIndex(
                spec=f"{SPEC}{path}",
                corpus=corpus,
                dense=dense,
                sparse=sparse,
                files=files,
                states=[corpus.state, *states],
                digest=_digest(parts, [files.stemmer, files.stopwords] if sparse else []),
                embedder=embedder,
            )
            index.content_digest()
        except BaseException:
            corpus.close()
            raise
    return index


def _opened_sparse(files: PrebuiltFiles) -> Bm25sFolder | None:
    if files.bm25s is None:
        return None
    return Bm25sFolder(files.bm25s, stemmer=files.stemmer, stopwords=files.stopwords)


def _check_lengths(corpus: Corpus, dense: FaissFile | None, sparse: Bm25sFolder | None) -> None:
    counts = {f"{corpus.state.path.name} has {len(corpus):,} lines": len(corpus)}
    if dense is not None:
        counts[f"the faiss index {dense.path.name} {len(dense):,} vectors"] = len(dense)
    if sparse is not None:
        counts[f"the index of bm25s {len(sparse):,} documents"] = len(sparse)
    if len(set(counts.values())) > 1:
        raise CollectionError(
            f"{', '.join(counts)}: row i of an index must be line i of the corpus. Give those that belong together; "
            "one of them may be cut off."
        )


def _check_once(
    digests: FileDigests,
    states: Sequence[FileState],
    dense: FaissFile | None,
    sparse: Bm25sFolder | None,
    on_progress: StageProgress | None,
) -> None:
    """Check the numbers of files whose digest is not kept, which are read whole for it too."""
    new = {state.path for state in states if digests.known(state) is None}
    if new and on_progress is not None:
        on_progress(0, 0, "check the numbers of the index")
    if dense is not None and dense.path in new:
        dense.check_numbers()
    if sparse is not None and new - {dense.path if dense else None}:
        sparse.check_numbers()


def _digest(parts: Sequence[str], options: Sequence[str | None]) -> str:
    return text_digest(repr((tuple(parts), tuple(options)))).hex()


def _query_embedder(
    files: PrebuiltFiles, settings: Settings, given: Embeddings | None, admissions: Admissions | None
) -> QueryEmbedder:
    spec = files.embeddings or settings.embeddings
    if given is None and spec == "auto":
        without = "" if files.bm25s is None else " To search by bm25s alone, name no faiss index in the YAML file."
        raise SettingsError(
            "A faiss index does not say which embedder it was built with. Name it: embeddings in the YAML file of the "
            f"prebuilt index, or JUDGETREE_EMBEDDINGS.{without}"
        )
    inner = create_embeddings(spec, settings, admissions=admissions) if given is None else given
    return QueryEmbedder(inner, files.query_prefix, files.normalize)
