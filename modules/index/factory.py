"""The index of the settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from ..embedding.choice import EmbedderByScript
from ..embedding.embedder import Embedder, create_embeddings
from ..errors import CollectionError
from ..llm.rate_limit import Admissions
from ..progress import StageProgress
from ..settings import Settings
from .connection import connect, database_exists
from .file_parsers import LoadLimits
from .index import Index
from .schema import IndexParams, check_documents_name, check_name, rename_collection
from .writer_lock import LockOptions, writer_lock

logger = logging.getLogger(__name__)


def rename(old: str, new: str, settings: Settings) -> None:
    """Rename a collection of documents, at no cost; its graphs have to be built again.

    Raises:
        CollectionError: The collection does not exist or is not judgetree's, the new name is taken or not allowed, or
            another process writes.
    """
    check_name(old)
    check_documents_name(new, settings)
    if new == old:  # its lock would wait for itself
        raise CollectionError(f"The collection is called {old!r} already.")
    if not database_exists(settings.milvus_address):
        raise CollectionError(f"There is no collection {old!r}: nothing has been indexed yet.")
    connection = connect(settings.milvus_address, settings.milvus_token.get_secret_value())
    first, second = sorted((old, new))  # two renames at once take the locks in one order
    with (
        closing(connection),
        writer_lock(connection, first, LockOptions(), on_wait=logger.warning),
        writer_lock(connection, second, LockOptions(), on_wait=logger.warning),
    ):
        rename_collection(connection.client, old, new)


def open_index(  # noqa: PLR0913 - one parameter an option
    collection: str,
    settings: Settings,
    *,
    data_path: Path | None = None,
    file_type_wanted: Sequence[str] | None = None,
    follow_links: bool = False,
    limits: LoadLimits | None = None,
    source_prefix: str | None = None,
    index_params: Mapping[str, IndexParams] | None = None,
    lock: LockOptions | None = None,
    admissions: Admissions | None = None,
    spread: Callable[[Embedder], Embedder] | None = None,
    on_progress: StageProgress | None = None,
) -> Index:
    """Return an ``Index`` over ``collection`` by the settings; it is opened at its first use.

    With ``embeddings="auto"`` the scripts of the documents choose the embedder. ``admissions`` are rate limits of
    embedding endpoints that other processes share. ``spread`` makes the embedder one that embeds by several processes,
    such as ``partial(RayEmbedder, workers=4)``.

    ::

        with open_index("standards", load_settings(), data_path=Path("data/standards")) as index:
            index.get_index_done()

    Raises:
        CollectionError: The name is not allowed, or that of the conversations' memory.
    """

    check_documents_name(collection, settings)

    def opened(spec: str) -> Embedder:
        embedder = create_embeddings(spec, settings, admissions=admissions)
        return embedder if spread is None else spread(embedder)

    return Index(
        EmbedderByScript(opened) if settings.embeddings == "auto" else opened(settings.embeddings),
        data_path,
        file_type_wanted,
        collection,
        uri=settings.milvus_address,
        token=settings.milvus_token.get_secret_value(),
        follow_links=follow_links,
        limits=limits,
        source_prefix=source_prefix,
        index_params=index_params,
        lock=lock,
        search_snapshot=settings.search_snapshot,
        on_progress=on_progress,
    )
