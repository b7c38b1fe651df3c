"""The index: files of a folder as chunks in one Milvus collection, kept up to date at the cost of what changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..addresses import Address
from ..errors import LoadingError, MilvusFailure
from ..settings import load_settings
from . import content
from .chunking import CHUNK_OVERLAP, CHUNK_SIZE
from .connection import MilvusConnection, OpenUses, connect
from .dense_fields import (
    Embedders,
    EmbedderSource,
    Vector,
    embed_texts,
    plan_collection,
    refuse_other_embedders,
    resolve_embedders,
    with_dimensions,
)
from .file_parsers import LoadLimits
from .folder_scan import gone_sources, scan_folders
from .plan import ChunkSizes, IndexReport, UpdatePlan, name_sources, none_readable, read_changes, to_row
from .schema import CollectionInfo, IndexParams, check_name, list_collections, read_collection_info, revision
from .writer_lock import Check, LockOptions, writer_lock

if TYPE_CHECKING:
    from langchain_milvus import Milvus


logger = logging.getLogger(__name__)


class Index:
    """One collection, and the folder it is made from.

    Nothing is opened before it is needed. An open index of a Milvus Lite folder keeps other processes out: use it in a
    ``with`` statement, or ``close`` it. A closed index opens again when it is used again.

    Args:
        embed_model: An embedder; one by dense field, for several; or a function that gets the documents' share of
            Chinese, Japanese and Korean letters (0 to 1) and chooses one, asked again with the remembered share
            for a collection that exists.
        data_path: Folder (or file) that ``get_index_done`` indexes. The collection remembers it: sources are relative
            to the first folder that was indexed, and those of another one begin with that folder's name.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for all that can be read.
        vector_store_name: Name of the collection; a database may hold several.
        uri: Milvus Lite folder (``….db``) or server address; None takes the setting ``milvus_uri``.
        token: For a server; None takes the setting.
        follow_links: Follow links that leave the folder, too.
        limits: What reading one file may cost; a file that needs more is skipped and named.
        source_prefix: What sources of ``data_path`` begin with, ``""`` for nothing, whatever the collection remembers.
        index_params: Index type, metric and parameters by vector field, where not HNSW with COSINE (dense) and
            SPARSE_INVERTED_INDEX with BM25 (sparse). The collection remembers them; others make all its indexes anew.
        lock: How long to wait for another process that writes to the collection.
        on_progress: Called with (done, total, stage): ``wait`` (for another writer), ``load``, ``embed``, ``write``.
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
        source_prefix: str | None = None,
        index_params: Mapping[str, IndexParams] | None = None,
        lock: LockOptions | None = None,
        on_progress: content.Progress | None = None,
    ) -> None:
        check_name(vector_store_name)
        self.embed_model = embed_model
        self.data_path = Path(data_path).expanduser().resolve() if data_path is not None else None
        self.file_type_wanted = file_type_wanted
        self.vector_store_name = vector_store_name
        self.follow_links = follow_links
        self.limits = limits or LoadLimits()
        self.source_prefix = source_prefix
        self.index_params = index_params or {}
        self.lock = lock or LockOptions()
        self.on_progress = on_progress or _no_progress
        self._uri = None if uri is None else Address(uri)
        self._token = token
        self._connection: MilvusConnection | None = None
        self._store: Milvus | None = None
        self._state = ("", "")
        self._looks = self._looked = 0  # at the collection: begun, and the last that succeeded
        self._opening = threading.RLock()
        self.searches = OpenUses()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
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
        if (store := self._store) is not None:  # without waiting for a thread that looks at the collection
            return store
        with self._opening:
            if self._store is None:
                from .dense_fields import open_vector_store  # noqa: PLC0415 - takes seconds to import

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
        """SHA-256 over the sorted chunk ids; costs one request while nothing has been written.

        Raises:
            CollectionError: There is no such collection.
        """
        return self.content_state()[1]

    def content_state(self) -> tuple[str, str]:
        """Return a text that changes whenever any process writes to the collection, and the content digest.

        One request; threads that ask at once share one that was made after they asked.
        """
        begun = self._looks
        with self._opening:
            if self._looked > begun:
                return self._state
            self._looks = number = self._looks + 1
            try:
                seen = revision(self.connection.client, self.vector_store_name)
            except MilvusFailure:
                self.info()  # says what there is
                raise
            if self._state[0] != seen:
                self.info()
                self._state = seen, content.content_digest(self.connection.client, self.vector_store_name)
            self._looked = number
            return self._state

    def get_index_done(
        self,
        chunk_size: int = CHUNK_SIZE,
        chunk_overlap: int = CHUNK_OVERLAP,
        *,
        prune: bool = False,
        also: Sequence[Path | str] = (),
    ) -> IndexReport:
        """Bring the collection up to date with ``data_path``; the first time, make it.

        Unchanged files cost no embedding and no write. A changed file's chunks replace those it had, and only new
        texts are embedded. Files that are gone stay, unless ``prune``, which also takes files of other folders than
        these. What the collection holds of files that cannot be read stays. Waits while another process writes.

        Args:
            chunk_size: Characters of a chunk at most.
            chunk_overlap: Characters that neighbours may share.
            prune: Take out what stands under none of the paths any more.
            also: Further files or folders.

        Raises:
            LoadingError: A path is missing, or nothing there is readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: The database cannot be used, another embedder made the collection, or another process
                is writing to it for longer than ``lock.wait_s``.
            ModelCallError: An embedding endpoint failed; what was embedded may be cached by the embedder.
        """
        if self.data_path is None:
            raise LoadingError("This index has no data_path. Give one, or use add_new_files(path).")
        sizes = ChunkSizes(size=chunk_size, overlap=chunk_overlap)
        return self._update([self.data_path, *also], sizes, prune=prune)

    def add_new_files(
        self, path: Path | str, chunk_size: int | None = None, chunk_overlap: int | None = None
    ) -> IndexReport:
        """Add a file or folder, or bring what the collection holds of it up to date.

        Sources are relative to ``data_path``; those of files from outside begin with their folder's name. Chunk sizes
        are those the collection was made with, unless given.

        Raises:
            LoadingError: The path does not exist or holds nothing readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: See ``get_index_done``.
            ModelCallError: An embedding endpoint failed.
        """
        sizes = self._remembered_sizes()
        if chunk_size is not None:
            sizes = replace(sizes, size=chunk_size)
        if chunk_overlap is not None:
            sizes = replace(sizes, overlap=chunk_overlap)
        return self._update([path], sizes, prune=False)

    def remove_files(self, *sources: str) -> IndexReport:
        """Take files out of the collection, by source (as in the chunks' metadata). The files themselves stay.

        Raises:
            LoadingError: The collection holds nothing of one of them; nothing is removed then.
            CollectionError: There is no such collection.
        """
        with self._writing() as check:
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
                self._write(plan, stored, info, {}, check)
            return plan.report(stored, ignored=0, embedded=0)

    def close(self) -> None:
        """Wait for searches, then close the connection; this frees a Milvus Lite folder. Closing twice does no harm."""
        self.searches.wait_for_end()
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

    @contextmanager
    def _writing(self) -> Iterator[Check]:
        def tell(owner: str) -> None:
            logger.warning("Waiting for %s, which is writing to %s.", owner, self.vector_store_name)
            self.on_progress(0, 1, "wait")

        with writer_lock(self.connection, self.vector_store_name, self.lock, on_wait=tell) as check:
            yield check

    def _update(self, paths: Sequence[Path | str], sizes: ChunkSizes, *, prune: bool) -> IndexReport:
        found = scan_folders(paths, file_type_wanted=self.file_type_wanted, follow_links=self.follow_links)
        with self._writing() as check:
            content.drop_leftovers(self.connection.client, self.vector_store_name)
            collection = self._open_collection() if self._exists() else None
            stored = self._stored() if collection else {}
            info = collection[0] if collection else None
            root = self.data_path.parent if self.data_path and self.data_path.is_file() else self.data_path
            limit = self.limits.file_bytes
            scan, folders = name_sources(found, info, stored, root=root, prefix=self.source_prefix, max_bytes=limit)
            plan = read_changes(scan, stored, sizes, self.on_progress, self.limits)
            if prune:
                plan.removed = gone_sources(stored, [scan])
            embedded = 0
            if plan.chunks or plan.removed or (info and self._with_news(info, folders) != info):
                info, embedders = collection or plan_collection(plan.chunks, self.embed_model)
                vectors, embedded = self._vectors(plan, stored, embedders)
                info = replace(self._with_news(info, folders), chunk_size=sizes.size, chunk_overlap=sizes.overlap)
                self._write(plan, stored, with_dimensions(self.vector_store_name, info, vectors), vectors, check)
            elif not stored:
                raise LoadingError(none_readable(plan.skipped))
            return plan.report(stored, ignored=scan.ignored, embedded=embedded)

    def _with_news(self, info: CollectionInfo, folders: Mapping[str, str]) -> CollectionInfo:
        return replace(info, folders=folders, index_params={**info.index_params, **self.index_params})

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

    def _write(
        self,
        plan: UpdatePlan,
        stored: Mapping[str, content.StoredFile],
        info: CollectionInfo,
        vectors: Mapping[str, Mapping[str, Vector]],
        check: Check,
    ) -> None:
        rows = [to_row(chunk, vectors[str(chunk.metadata["chunk_id"])]) for chunk in plan.chunks]
        changes = content.Changes(rows=rows, removed=plan.replaced_ids(stored))
        with self._opening:
            self._state = ("", "")
            content.write(
                self.connection, self.vector_store_name, info, changes, on_progress=self.on_progress, check=check
            )


def _no_progress(done: int, total: int, stage: str) -> None:
    """Show nothing."""
