"""The index: files of a folder as chunks in one Milvus collection, kept up to date at the cost of what changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from . import collection_content as content
from .addresses import Address
from .chunking import CHUNK_OVERLAP, CHUNK_SIZE, cjk_share, language_of
from .collection_schema import CollectionInfo, IndexParams, check_name, list_collections, read_collection_info
from .dense_fields import (
    Embedders,
    EmbedderSource,
    Vector,
    embed_texts,
    embedder_name,
    refuse_other_embedders,
    resolve_embedders,
)
from .errors import CollectionError, LoadingError
from .file_parsers import LoadLimits
from .folder_scan import FileScan, gone_sources, scan_files
from .index_plan import ChunkSizes, IndexReport, UpdatePlan, read_changes, to_row
from .milvus_connection import MilvusConnection, connect
from .settings import load_settings

if TYPE_CHECKING:
    from langchain_milvus import Milvus


_REASONS_SHOWN = 10


class Index:
    """One collection, and the folder it is made from.

    Nothing is opened before it is needed. An open index of a Milvus Lite folder keeps other processes out: use it in a
    ``with`` statement, or ``close`` it. A closed index opens again when it is used again.

    Args:
        embed_model: An embedder; one by dense field, for several; or a function that gets the documents' share of
            Chinese, Japanese and Korean letters (0 to 1) and chooses one, asked again with the remembered share
            for a collection that exists.
        data_path: Folder (or file) that ``get_index_done`` indexes; sources are relative to it.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for all that can be read.
        vector_store_name: Name of the collection; a database may hold several.
        uri: Milvus Lite folder (``….db``) or server address; None takes the setting ``milvus_uri``.
        token: For a server; None takes the setting.
        follow_links: Follow links that leave the folder, too.
        limits: What reading one file may cost; a file that needs more is skipped and named.
        index_params: Index type, metric and parameters by vector field, where not HNSW with COSINE (dense) and
            SPARSE_INVERTED_INDEX with BM25 (sparse). They count when the collection is made and, on Lite, at
            every change.
        on_progress: Called with (done, total, stage), stage being ``load``, ``embed`` or ``write``.
    """

    def __init__(  # noqa: PLR0913 - one parameter an option
        self,
        embed_model: EmbedderSource,
        data_path: Path | str | None = None,
        file_type_wanted: Sequence[str] | None = None,
        vector_store_name: str = "judgetree",
        *,
        uri: str | None = None,
        token: str | None = None,
        follow_links: bool = False,
        limits: LoadLimits | None = None,
        index_params: Mapping[str, IndexParams] | None = None,
        on_progress: content.Progress | None = None,
    ) -> None:
        check_name(vector_store_name)
        self.embed_model = embed_model
        self.data_path = Path(data_path).expanduser().resolve() if data_path is not None else None
        self.file_type_wanted = file_type_wanted
        self.vector_store_name = vector_store_name
        self.follow_links = follow_links
        self.limits = limits or LoadLimits()
        self.index_params = index_params or {}
        self.on_progress = on_progress or _no_progress
        self._uri = None if uri is None else Address(uri)
        self._token = token
        self._connection: MilvusConnection | None = None
        self._store: Milvus | None = None
        self._digest: str | None = None
        self._opening = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connection(self) -> MilvusConnection:
        """The open connection.

        Raises:
            CollectionError: The database cannot be opened or reached; the message says why.
        """
        with self._opening:
            if self._connection is None or self._connection.closed:
                uri = self._uri if self._uri is not None else load_settings().milvus_address
                token = self._token if self._token is not None else load_settings().milvus_token.get_secret_value()
                self._connection = connect(uri, token)
            return self._connection

    @property
    def vector_store(self) -> Milvus:
        """The collection as a LangChain vector store.

        Raises:
            CollectionError: There is no such collection, or another embedder made it.
        """
        with self._opening:
            if self._store is None:
                from .vector_store import open_vector_store  # noqa: PLC0415 - takes seconds to import

                info, embedders = self._open_collection()
                self._store = open_vector_store(self.connection, self.vector_store_name, info, embedders)
            return self._store

    def info(self) -> CollectionInfo:
        """How the collection was made.

        Raises:
            CollectionError: There is no such collection; the message lists those there are.
        """
        client = self.connection.client
        info = read_collection_info(client, self.vector_store_name)
        client.load_collection(self.vector_store_name)  # a Lite folder that is opened again has nothing loaded
        return info

    def collections(self) -> list[str]:
        """Names of all collections in the database, sorted."""
        return list_collections(self.connection.client)

    def content_digest(self) -> str:
        """SHA-256 over the sorted chunk ids; remembered until this index writes.

        Raises:
            CollectionError: There is no such collection.
        """
        with self._opening:
            if self._digest is None:
                self.info()
                self._digest = content.content_digest(self.connection.client, self.vector_store_name)
            return self._digest

    def get_index_done(
        self, chunk_size: int = CHUNK_SIZE, chunk_overlap: int = CHUNK_OVERLAP, *, prune: bool = False
    ) -> IndexReport:
        """Bring the collection up to date with ``data_path``; the first time, make it.

        Unchanged files cost no embedding and no write. A changed file's chunks replace those it had, and only new
        texts are embedded. Files that are gone stay, unless ``prune``, which also takes files that
        ``add_new_files`` brought from elsewhere. What the collection holds of files that cannot be read stays.

        Raises:
            LoadingError: ``data_path`` is missing or holds nothing readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: The database cannot be used, or another embedder made the collection.
            ModelCallError: An embedding endpoint failed; what was embedded may be cached by the embedder.
        """
        if self.data_path is None:
            raise LoadingError("This index has no data_path. Give one, or use add_new_files(path).")
        scan = self._scan(self.data_path)
        return self._update(scan, ChunkSizes(size=chunk_size, overlap=chunk_overlap), prune=prune)

    def add_new_files(
        self, path: Path | str, chunk_size: int | None = None, chunk_overlap: int | None = None
    ) -> IndexReport:
        """Add a file or folder, or bring what the collection holds of it up to date.

        Sources are relative to ``data_path``; files from outside are named from the given folder on. Chunk sizes
        are those the collection was made with, unless given.

        Raises:
            LoadingError: The path does not exist or holds nothing readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: The database cannot be used, or another embedder made the collection.
            ModelCallError: An embedding endpoint failed.
        """
        sizes = self._remembered_sizes()
        if chunk_size is not None:
            sizes = replace(sizes, size=chunk_size)
        if chunk_overlap is not None:
            sizes = replace(sizes, overlap=chunk_overlap)
        root = self.data_path.parent if self.data_path and self.data_path.is_file() else self.data_path
        return self._update(self._scan(path, root), sizes, prune=False)

    def remove_files(self, *sources: str) -> IndexReport:
        """Take files out of the collection, by source (as in the chunks' metadata). The files themselves stay.

        Raises:
            LoadingError: The collection holds nothing of one of them; nothing is removed then.
            CollectionError: There is no such collection.
        """
        info = self.info()
        stored = self._stored()
        unknown = sorted(set(sources) - stored.keys())
        if unknown:
            examples = ", ".join(sorted(stored)[:5]) or "none"
            raise LoadingError(
                f"The collection {self.vector_store_name!r} holds nothing of {', '.join(unknown)}. "
                f"Its files are called like this: {examples}."
            )
        plan = UpdatePlan(removed=sorted(set(sources)), unchanged=len(stored) - len(set(sources)))
        if plan.removed:
            self._write(plan, stored, info, {})
        return plan.report(stored, ignored=0, embedded=0)

    def close(self) -> None:
        """Close the connection and free a Milvus Lite folder for other processes. Closing twice does no harm."""
        with self._opening:
            if self._store is not None:
                self._store.client.close()
                self._store = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _exists(self) -> bool:
        return bool(self.connection.client.has_collection(self.vector_store_name))

    def _stored(self) -> dict[str, content.StoredFile]:
        return content.stored_files(self.connection.client, self.vector_store_name)

    def _open_collection(self) -> tuple[CollectionInfo, Embedders]:
        info = self.info()
        embedders = resolve_embedders(self.embed_model, info.cjk_share)
        refuse_other_embedders(self.vector_store_name, info, embedders)
        return info, embedders

    def _remembered_sizes(self) -> ChunkSizes:
        if not self._exists():
            return ChunkSizes()
        info = self.info()
        return ChunkSizes(size=info.chunk_size, overlap=info.chunk_overlap)

    def _scan(self, path: Path | str, root: Path | None = None) -> FileScan:
        return scan_files(path, file_type_wanted=self.file_type_wanted, root=root, follow_links=self.follow_links)

    def _update(self, scan: FileScan, sizes: ChunkSizes, *, prune: bool) -> IndexReport:
        if not scan.files and not scan.skipped:
            wanted = ", ".join(self.file_type_wanted or ["all that can be read"])
            raise LoadingError(
                f"There is nothing to index: {scan.ignored} files, none of a wanted type ({wanted}). "
                "Check the path and file_type_wanted."
            )
        content.drop_leftovers(self.connection.client, self.vector_store_name)
        collection = self._open_collection() if self._exists() else None
        stored = self._stored() if collection else {}
        plan = read_changes(scan, stored, sizes, self.on_progress, self.limits)
        if prune:
            plan.removed = gone_sources(stored, [scan])
        embedded = 0
        if plan.chunks or plan.removed:
            info, embedders = collection or self._plan_collection(plan)
            vectors, embedded = self._vectors(plan, stored, embedders)
            info = replace(info, chunk_size=sizes.size, chunk_overlap=sizes.overlap)
            self._write(plan, stored, self._with_dimensions(info, vectors), vectors)
        elif not stored:
            reasons = "; ".join(f"{file.source}: {file.reason}" for file in plan.skipped[:_REASONS_SHOWN])
            more = f"; and {rest} more" if (rest := len(plan.skipped) - _REASONS_SHOWN) > 0 else ""
            raise LoadingError(f"None of the {len(plan.skipped)} files could be read. {reasons}{more}.")
        return plan.report(stored, ignored=scan.ignored, embedded=embedded)

    def _plan_collection(self, plan: UpdatePlan) -> tuple[CollectionInfo, Embedders]:
        share = round(cjk_share(chunk.page_content for chunk in plan.chunks), 4)
        embedders = resolve_embedders(self.embed_model, share)
        info = CollectionInfo(
            embedders={field: embedder_name(embedder) for field, embedder in embedders.items()},
            dimensions={},
            analyzer="jieba" if language_of(share) == "cjk" else "standard",
            cjk_share=share,
        )
        return info, embedders

    def _vectors(
        self, plan: UpdatePlan, stored: Mapping[str, content.StoredFile], embedders: Embedders
    ) -> tuple[dict[str, dict[str, Vector]], int]:
        """Vectors by chunk id and field, and how many chunks had to be embedded."""
        texts = {str(chunk.metadata["chunk_id"]): chunk.page_content for chunk in plan.chunks}
        known = sorted(plan.replaced_ids(stored) & texts.keys())
        client = self.connection.client
        vectors = content.stored_vectors(client, self.vector_store_name, known, list(embedders)) if known else {}
        missing = [chunk_id for chunk_id in texts if chunk_id not in vectors]
        new = embed_texts(embedders, [texts[chunk_id] for chunk_id in missing], self.on_progress)
        return {**vectors, **dict(zip(missing, new, strict=True))}, len(missing)

    def _with_dimensions(self, info: CollectionInfo, vectors: Mapping[str, Mapping[str, Vector]]) -> CollectionInfo:
        found = [{field: len(vector) for field, vector in fields.items()} for fields in vectors.values()]
        expected = info.dimensions or found[0]
        wrong = next((dimensions for dimensions in found if dimensions != expected), None)
        if wrong is not None:
            raise CollectionError(
                f"The embedder gives vectors of length {wrong}, the collection {self.vector_store_name!r} takes "
                f"{dict(expected)}. Use the embedder it was made with, or index under another name."
            )
        return replace(info, dimensions=expected)

    def _write(
        self,
        plan: UpdatePlan,
        stored: Mapping[str, content.StoredFile],
        info: CollectionInfo,
        vectors: Mapping[str, Mapping[str, Vector]],
    ) -> None:
        rows = [to_row(chunk, vectors[str(chunk.metadata["chunk_id"])]) for chunk in plan.chunks]
        changes = content.Changes(rows=rows, removed=plan.replaced_ids(stored))
        with self._opening:
            self._digest = None
            content.write(
                self.connection,
                self.vector_store_name,
                info,
                changes,
                index_params=self.index_params,
                on_progress=self.on_progress,
            )


def _no_progress(done: int, total: int, stage: str) -> None:
    """Show nothing."""
