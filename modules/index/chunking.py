"""Splitting of documents into chunks, and the ids of chunks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from ..digests import text_digest
from ..errors import SettingsError

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

CHUNK_SIZE = 700
CHUNK_OVERLAP = 50
MAX_TEXT_BYTES = 65_535
"""Longest VARCHAR of Milvus. A server counts UTF-8 bytes, Milvus Lite characters."""

SEPARATORS = ("\n\n", "\n", "。", "！", "？", "；", "，", ". ", "! ", "? ", "; ", ", ", " ", "")
"""Places to cut a text, best first."""


def split_documents(
    documents: Iterable[Document], *, chunk_size: int = CHUNK_SIZE, chunk_overlap: int = CHUNK_OVERLAP
) -> list[Document]:
    """Cut documents into chunks, in order.

    A chunk keeps its document's metadata and gains ``start_index`` (character in the document where it begins) and
    ``chunk_id``. Chunks without text are dropped; none is longer than ``MAX_TEXT_BYTES``.

    Args:
        documents: Documents with ``source`` in their metadata; all documents of a source in one call, since equal texts
            of a file would get the same id.
        chunk_size: Most characters of a chunk.
        chunk_overlap: Most characters that neighbours share.

    Raises:
        SettingsError: The sizes do not fit each other.
    """
    if chunk_size < 1 or not 0 <= chunk_overlap < chunk_size:
        raise SettingsError(
            f"chunk_size={chunk_size} and chunk_overlap={chunk_overlap} do not fit. "
            "Allowed: chunk_size >= 1 and 0 <= chunk_overlap < chunk_size."
        )
    splitter = _splitter_class()(
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        add_start_index=True,
        separators=list(SEPARATORS),
        keep_separator="end",  # a full stop belongs to the sentence before it
    )
    chunks = [part for chunk in splitter.split_documents(documents) for part in _capped(chunk)]
    return list(_with_ids(chunk for chunk in chunks if chunk.page_content.strip()))


@cache
def _splitter_class() -> type[RecursiveCharacterTextSplitter]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415 - slow to import

    class LinearSplitter(RecursiveCharacterTextSplitter):
        """A faster splitter with the same chunks: langchain-text-splitters 1.1 copies a list for each dropped piece."""

        def _merge_splits(self, splits: Iterable[str], separator: str) -> list[str]:
            chunks: list[str] = []
            pieces: deque[str] = deque()
            total = 0
            for piece in splits:
                if pieces and total + len(piece) > self._chunk_size:
                    chunks.append("".join(pieces).strip())
                    while total > self._chunk_overlap or (total and total + len(piece) > self._chunk_size):
                        total -= len(pieces.popleft())
                pieces.append(piece)
                total += len(piece)
            return [chunk for chunk in [*chunks, "".join(pieces).strip()] if chunk]

    return LinearSplitter


def chunk_id(source: str, text: str, ordinal: int) -> str:
    """Return the SHA-256, in hexadecimal, of path, text, and its number (from 0) among equal texts of the path."""
    return text_digest(source, text, str(ordinal)).hex()


def _capped(chunk: Document) -> Iterator[Document]:
    if len(chunk.page_content) * 4 <= MAX_TEXT_BYTES or len(chunk.page_content.encode()) <= MAX_TEXT_BYTES:
        yield chunk
        return
    step = MAX_TEXT_BYTES // 4  # a character has at most four bytes
    for offset in range(0, len(chunk.page_content), step):
        metadata = {**chunk.metadata, "start_index": chunk.metadata["start_index"] + offset}
        yield Document(page_content=chunk.page_content[offset : offset + step], metadata=metadata)


def _with_ids(chunks: Iterable[Document]) -> Iterator[Document]:
    seen: Counter[tuple[str, str]] = Counter()
    for chunk in chunks:
        key = (str(chunk.metadata["source"]), chunk.page_content)
        metadata = {**chunk.metadata, "chunk_id": chunk_id(*key, seen[key])}
        seen[key] += 1
        yield Document(page_content=chunk.page_content, metadata=metadata)
