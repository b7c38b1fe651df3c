"""The index: files of a folder as chunks in one Milvus collection, updated at the cost of the changed files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Self

from langchain_milvus import Milvus

from ..addresses import Address
from ..errors import LoadingError, MilvusFailure
from ..progress import StageProgress
from ..settings import SearchSnapshot, load_settings
from . import content
from .chunking import CHUNK_OVERLAP, CHUNK_SIZE
from .connection import MilvusConnection, OpenUses, connect, database_exists
from .dense_fields import (
    Embedders,
    EmbedderSource,
    check_embedders,
    open_vector_store,
    plan_collection,
    resolve_embedders,
    spreads,
    with_notes,
)
from .file_parsers import LoadLimits
from .folder_scan import FileScan, absent_sources, gone_sources, other_sources, scan_folders
from .new_rows import NewRows
from .plan import (
    ChunkSizes,
    IndexReport,
    NamedScan,
    UpdatePlan,
    name_sources,
    none_readable,
    plan_removal,
    read_changes,
)
from .schema import (
    CollectionInfo,
    IndexParams,
    all_index_params,
    check_documents_name,
    list_collections,
    read_collection_info,
    revision,
)
from .writer_lock import Check, LockOptions, writer_lock

logger = logging.getLogger(__name__)

_OLD_FORM = (
    "This collection was made before texts were folded for search. Index its files anew under another name to find "
    "ligatures, composed accents, full-width letters and powers by either spelling."
)


def _unchecked() -> None:
    """Check nothing: no lock is held."""


class Index:
    """One collection, indexed from the files of a folder.

    The database is opened on demand. An open index of a Milvus Lite folder serves it to other processes of this user,
    until ``close`` or the end of its ``with`` statement. A closed index reopens at its next use.

    ::

        with Index(embedder, data_path="data/standards", vector_store_name="standards") as index:
            report = index.get_index_done()

    Args:
        embed_model: An embedder, one for each dense field, an ``EmbedderByScript``, or a function from the documents'
            share of Chinese, Japanese and Korean letters (0 to 1) to one; an existing collection gives it the saved
            share.
        data_path: Folder (or file) that ``get_index_done`` indexes. Its path is saved in the collection: sources are
            relative to the first indexed folder, and those of another folder begin with that folder's name.
        file_type_wanted: Suffixes such as ``["pdf", "md"]``; None for all known types.
        vector_store_name: Name of the collection; a database may hold several.
        uri: Milvus Lite folder (``….db``) or server address; None takes the setting ``milvus_uri``.
        token: Token of a server; None takes the setting.
        follow_links: Also follow links that leave the folder.
        limits: Limits on reading one file; a file that exceeds them is skipped and reported.
        source_prefix: Prefix of the sources of ``data_path``, overriding the saved one; ``""`` for none.
        index_params: Index type, metric and parameters by vector field; the defaults are HNSW with COSINE (dense) and
            SPARSE_INVERTED_INDEX with BM25 (sparse). Other parameters than the saved ones rebuild that field's index.
        lock: Waiting time for another process that writes to the collection.
        search_snapshot: ``auto`` or ``off``: search a Milvus Lite folder in snapshots; None takes the setting.
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
        search_snapshot: SearchSnapshot | None = None,
        on_progress: StageProgress | None = None,
    ) -> None:
        check_documents_name(vector_store_name)
        self.embed_model = embed_model
        self.data_path = Path(data_path).expanduser().resolve() if data_path is not None else None
        self.file_type_wanted = file_type_wanted
        self.vector_store_name = vector_store_name
        self.follow_links = follow_links
        self.limits = limits or LoadLimits()
        self.source_prefix = source_prefix
        self.index_params = index_params or {}
        self.lock = lock or LockOptions()
        self.search_snapshot = search_snapshot
        self.on_progress = on_progress or (lambda done, total, stage: None)
        self._uri = None if uri is None else Address(uri)
        self._token = token
        self._connection: MilvusConnection | None = None
        self._store: Milvus | None = None
        self._state = ("", "")
        self._looks = self._looked = 0  # numbers of the last look at the collection that started, and that succeeded
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
                self._connection = connect(self._uri, self._token)
            return self._connection

    @property
    def vector_store(self) -> Milvus:
        """The collection as a LangChain vector store.

        Raises:
            CollectionError: The collection does not exist, or has another embedder.
        """
        if (store := self._store) is not None:  # without waiting for a thread that looks at the collection
            return store
        with self._opening:
            if self._store is None:
                info, embedders = self._open_collection()
                self._store = open_vector_store(self.connection, self.vector_store_name, info, embedders)
            return self._store

    def info(self) -> CollectionInfo:
        """Return the description of the collection.

        Raises:
            CollectionError: The collection does not exist; the message lists the others.
        """
        client = self.connection.client
        info = read_collection_info(client, self.vector_store_name)
        client.load_collection(self.vector_store_name)  # a Lite folder that is opened again has nothing loaded
        return info

    def collections(self) -> list[str]:
        """Return the names of all collections in the database, sorted."""
        return list_collections(self.connection.client)

    def known_values(self, field: str, values: Sequence[str]) -> set[str]:
        """Return the given values of a metadata field, such as ``source``, that chunks of the collection have."""
        return content.known_values(self.connection.client, self.vector_store_name, field, values)

    def chunk_sizes(self) -> ChunkSizes:
        """Return the sizes that the collection was made with; the defaults if there is no collection yet."""
        if not self._exists():
            return ChunkSizes()
        info = self.info()
        return ChunkSizes(size=info.chunk_size, overlap=info.chunk_overlap)

    def content_digest(self) -> str:
        """Return the SHA-256 of the sorted chunk ids; costs one request if nothing has been written.

        Raises:
            CollectionError: There is no such collection.
        """
        return self.content_state()[1]

    def content_state(self) -> tuple[str, str]:
        """Return a text that changes with every write of any process, and the content digest.

        Costs one request; simultaneous callers share one that started after their calls.
        """
        before = self._looks
        with self._opening:
            if self._looked > before:
                return self._state
            self._looks = number = self._looks + 1
            try:
                seen = revision(self.connection.client, self.vector_store_name)
            except MilvusFailure:
                self.info()  # its error lists the collections
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
        prune: bool | Collection[str] = False,
        also: Sequence[Path | str] = (),
        dry_run: bool = False,
    ) -> IndexReport:
        """Bring the collection up to date with ``data_path``, creating it if needed.

        Unchanged files cost no embedding and no write. A changed file's chunks are replaced, and only new texts are
        embedded. Chunks of missing files stay without ``prune``, and those of unreadable files always stay. Waits while
        another process writes.

        Args:
            chunk_size: Most characters of a chunk.
            chunk_overlap: Most characters that neighbours share.
            prune: Remove the files that were under these paths and are gone (see ``gone_files``), no other folder's.
                Sources in place of True remove those of them that are not under these paths.
            also: Further files or folders.
            dry_run: Only report what would be added, changed and removed; nothing is embedded or written.

        Raises:
            LoadingError: A path does not exist, or has nothing readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: The database cannot be used, the collection has another embedder, or another process
                writes to it for longer than ``lock.wait_s``.
            ModelCallError: An embedding endpoint failed; what was embedded may be cached by the embedder.
        """
        if self.data_path is None:
            raise LoadingError("This index has no data_path. Give one, or use add_new_files(path).")
        sizes = ChunkSizes(size=chunk_size, overlap=chunk_overlap)
        if dry_run:
            named = self._named(self._scanned([self.data_path, *also]))
            return self._planned(named, sizes, prune).report(named.stored, ignored=named.scan.ignored)
        return self._update([self.data_path, *also], sizes, prune=prune)

    def gone_files(self, *, also: Sequence[Path | str] = (), everywhere: bool = False) -> Mapping[str, int]:
        """Return the files that ``get_index_done(prune=True, also=also)`` would remove, with their numbers of chunks.

        These are files that were under these paths and are gone. Files of other folders, of types that are not wanted,
        and files that cannot be read are not among them. Nothing is changed.

        Args:
            also: Further files or folders.
            everywhere: Return all files of the collection that are not under these paths, those of other folders and
                uploads too; to remove them, give them to ``prune``.

        Raises:
            LoadingError: A path does not exist, or has nothing readable.
            CollectionError: The database cannot be used, or the collection has another embedder.
        """
        if self.data_path is None:
            raise LoadingError("This index has no data_path. Give one.")
        named = self._named(self._scanned([self.data_path, *also]))
        gone = self._gone(named, everywhere=everywhere)
        return {source: len(named.stored[source].chunk_ids) for source in gone}

    def sizes_of(self, sources: Sequence[str]) -> Mapping[str, int]:
        """Return the number of chunks of each given file, by source; files that the collection lacks are left out."""
        stored = self._stored() if sources and self._exists() else {}
        return {source: len(stored[source].chunk_ids) for source in sources if source in stored}

    def add_new_files(
        self,
        path: Path | str,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        *,
        also: Sequence[Path | str] = (),
    ) -> IndexReport:
        """Add a file or folder, and those of ``also``, or update their chunks, in one write.

        Sources are relative to ``data_path``; those of files outside begin with their folder's name. The default chunk
        sizes are those of the collection.

        Raises:
            LoadingError: A path does not exist, or they have nothing readable.
            SettingsError: The chunk sizes do not fit each other.
            CollectionError: The database or the collection cannot be used, as in ``get_index_done``.
            ModelCallError: An embedding endpoint failed.
        """
        known = self.chunk_sizes()
        size = known.size if chunk_size is None else chunk_size
        overlap = known.overlap if chunk_overlap is None else chunk_overlap
        return self._update([path, *also], ChunkSizes(size=size, overlap=overlap), prune=False)

    def remove_files(self, *sources: str, dry_run: bool = False) -> IndexReport:
        """Remove files from the collection by source (as in the chunks' metadata); the files themselves stay.

        With ``dry_run`` nothing is changed.

        Raises:
            LoadingError: A source is not in the collection; then nothing is removed.
            CollectionError: The collection does not exist.
        """
        with nullcontext(_unchecked) if dry_run else self._writing() as check:
            info, stored = self.info(), self._stored()
            plan = plan_removal(self.vector_store_name, stored, sources)
            if plan.removed and not dry_run:
                self._write(info, check, removed=plan.replaced_ids(stored))
            return plan.report(stored, ignored=0)

    def rebuild_indexes(self, *fields: str) -> dict[str, IndexParams]:
        """Drop and build the indexes of these vector fields, and those whose ``index_params`` changed.

        Returns the parameters of all fields. Costs no embedding. Searches on a server fail meanwhile.

        Raises:
            CollectionError: The collection or a field does not exist, or Milvus refuses the parameters; then the
                former indexes stay.
        """
        with self._writing() as check:
            found = read_collection_info(self.connection.client, self.vector_store_name)
            params = all_index_params(info := self._with_news(found, found.folders), fields)
            self._write(info, check, rebuilt=frozenset(fields))
            return params

    def close(self) -> None:
        """Wait for searches, then close the connection, which frees a Milvus Lite folder. May be called twice."""
        self.searches.wait_for_end()
        with self._opening:
            if self._store is not None:
                self._store.client.close()
                self._store = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _exists(self) -> bool:
        if self._connection is None and not database_exists(self._uri or load_settings().milvus_address):
            return False  # a look makes no folder
        return bool(self.connection.client.has_collection(self.vector_store_name))

    def _stored(self) -> dict[str, content.StoredFile]:
        return content.stored_files(self.connection, self.vector_store_name)

    def _open_collection(self) -> tuple[CollectionInfo, Embedders]:
        info = self.info()
        embedders = resolve_embedders(self.embed_model, info)
        check_embedders(self.vector_store_name, info, embedders)
        return info, embedders

    def _writing(self) -> AbstractContextManager[Check]:
        def report_wait(owner: str) -> None:
            logger.warning("Waiting for %s, which is writing to %s.", owner, self.vector_store_name)
            self.on_progress(0, 1, "wait")

        return writer_lock(self.connection, self.vector_store_name, self.lock, on_wait=report_wait)

    def _update(self, paths: Sequence[Path | str], sizes: ChunkSizes, *, prune: bool | Collection[str]) -> IndexReport:
        found = self._scanned(paths)
        with self._writing() as check:
            content.drop_leftovers(self.connection, self.vector_store_name)
            named = self._named(found)
            plan, stored = self._planned(named, sizes, prune), named.stored
            info = named.collection[0] if named.collection else None
            rows: NewRows | None = None
            notes: list[str] = []
            if plan.chunks or plan.removed or (info and self._with_news(info, named.folders) != info):
                info, embedders, choice = (
                    (*named.collection, None) if named.collection else plan_collection(plan.chunks, self.embed_model)
                )
                info, notes = with_notes(info, plan.chunks, choice)
                info = replace(self._with_news(info, named.folders), chunk_size=sizes.size, chunk_overlap=sizes.overlap)
                with closing(self._new_rows(plan, embedders, stored, info)) as rows:
                    info = rows.described(self.vector_store_name, info)
                    # Workers embed for hours: a server takes their vectors as they come, Lite all at once.
                    is_stream = spreads(embedders) and not self.connection.is_lite
                    self._write(info, check, rows if is_stream else list(rows), removed=plan.replaced_ids(stored))
            if info is not None and info.search_form == "written":
                notes.append(_OLD_FORM)
            report = plan.report(stored, ignored=named.scan.ignored)
            if rows is None:
                return replace(report, notes=(*notes,))
            return replace(
                report,
                embedded=rows.embedded,
                cached=rows.cached,
                embedding_s=rows.embedding_s,
                notes=(*notes,),
            )

    def _scanned(self, paths: Sequence[Path | str]) -> list[FileScan]:
        return scan_folders(paths, file_type_wanted=self.file_type_wanted, follow_links=self.follow_links)

    def _named(self, found: Sequence[FileScan]) -> NamedScan:
        """Name scanned files as the collection does, which is read if it exists."""
        collection = self._open_collection() if self._exists() else None
        info, stored = (collection[0], self._stored()) if collection else (None, {})
        root = self.data_path.parent if self.data_path and self.data_path.is_file() else self.data_path
        scan, folders = name_sources(
            found, info, stored, root=root, prefix=self.source_prefix, max_bytes=self.limits.file_bytes
        )
        return NamedScan(scan=scan, folders=folders, stored=stored, collection=collection)

    def _planned(self, named: NamedScan, sizes: ChunkSizes, prune: bool | Collection[str]) -> UpdatePlan:
        plan = read_changes(named.scan, named.stored, sizes, self.on_progress, self.limits)
        if not isinstance(prune, bool):
            wanted = set(prune)
            plan.removed = [source for source in absent_sources(named.stored, named.scan) if source in wanted]
        elif prune:
            plan.removed = self._gone(named)
        if not (named.stored or plan.chunks):
            raise LoadingError(none_readable(plan.skipped))
        return plan

    def _gone(self, named: NamedScan, *, everywhere: bool = False) -> list[str]:
        known = named.collection[0].folders if named.collection else {}
        if everywhere:
            return other_sources(named.stored, named.scan, folders=known)
        return gone_sources(named.stored, named.scan, folders=known, file_type_wanted=self.file_type_wanted)

    def _new_rows(
        self,
        plan: UpdatePlan,
        embedders: Embedders,
        stored: Mapping[str, content.StoredFile],
        info: CollectionInfo,
    ) -> NewRows:
        client, reused = self.connection.client, plan.reused_ids(stored)
        known = content.stored_vectors(client, self.vector_store_name, reused, list(embedders))
        return NewRows(plan, embedders, known, self.on_progress, form=info.search_form)

    def _with_news(self, info: CollectionInfo, folders: Mapping[str, str]) -> CollectionInfo:
        return replace(info, folders=folders, index_params={**info.index_params, **self.index_params})

    def _write(self, info: CollectionInfo, check: Check, rows: content.Rows = (), **ids: frozenset[str]) -> None:
        changes = content.Changes(info=info, rows=rows, on_progress=self.on_progress, check=check, **ids)
        with self._opening:
            self._state = ("", "")
            content.write(self.connection, self.vector_store_name, changes)
