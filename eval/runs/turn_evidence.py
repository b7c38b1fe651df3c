"""Evidence of a turn's answer: chunks found by earlier turns, and documents found by each form of the question."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...graphs.rag.search_tree import SearchTree
from ...modules.calls.usage import CallMeter
from ...modules.errors import JudgetreeError, UserError
from ...modules.memory.turns import QaPair
from ...modules.retriever.contract import ChunkRetriever
from ..datasets.questions import EvalQuestion
from ..metrics.conversation import QueryForm, query_forms
from ..metrics.retrieval import FoundKey
from ..rows.from_results import document_keys
from ..rows.store import RunRow
from ..rows.turn_facts import ReusedChunk

logger = logging.getLogger(__name__)

_Hits = Mapping[str, FoundKey]
"""Chunk id to the key of its document, or to the keys of all documents that it stands for; best first."""


@dataclass(frozen=True, kw_only=True)
class TurnEvidence:
    """Reused chunks and retrieved documents of a turn, as in ``TurnFacts``."""

    reused: tuple[ReusedChunk, ...] = ()
    retrieved: Mapping[QueryForm, tuple[FoundKey, ...]] = field(default_factory=dict)


class TurnEvidenceReader:
    """Reader of the evidence of turns; its searches are not counted as usage of a turn."""

    def __init__(self, retriever: ChunkRetriever | None, key_field: str) -> None:
        """``retriever``: the system's, or None; ``key_field``: metadata field of a chunk that names its document."""
        self._retriever = retriever
        self._key_field = key_field

    async def read(
        self, question: EvalQuestion, turn: QaPair, tree: SearchTree | None, path: Sequence[RunRow]
    ) -> TurnEvidence:
        """Collect the evidence of an answered turn; ``path`` holds the rows of the earlier turns.

        A turn's search merges its hits with chunks kept from earlier turns. A chunk counts as reused if an earlier turn
        found it and repeating the turn's search does not.

        Raises:
            UserError: The collection cannot be searched.
        """
        earlier = {chunk.chunk_id: chunk.key for row in path for chunk in row.chunks}
        known = [ref["chunk_id"] for ref in turn["chunks"] if ref["chunk_id"] in earlier]
        standalone = turn["standalone_query"]
        if tree is not None:
            joined = {chunk.chunk_id for chunk in tree.root.chunks if tree.root.depth_of(chunk) == 0}
            known = [chunk_id for chunk_id in known if chunk_id in joined]
        forms = query_forms(question, standalone) if question.supporting and self._retriever else {}
        again = [standalone] if tree is not None and known else []
        hits = {text: await self._search(text, question) for text in dict.fromkeys([*forms.values(), *again])}
        by_itself = hits.get(standalone, {}) if tree is not None else {}
        return TurnEvidence(
            reused=tuple(ReusedChunk(key=earlier[each], chunk_id=each) for each in known if each not in by_itself),
            retrieved={form: tuple(hits[text].values()) for form, text in forms.items()},
        )

    async def _search(self, query: str, question: EvalQuestion) -> _Hits:
        if self._retriever is None:
            return {}
        try:
            hits = await self._retriever.asearch(query, meter=CallMeter(node="query_form"))
        except UserError:
            raise
        except JudgetreeError as error:
            logger.warning("The search for %r failed (%s); its turn counts as if nothing were found", query, error)
            return {}
        ids = [str(chunk.metadata["chunk_id"]) for chunk, _ in hits]
        return {
            chunk_id: self._found_key(chunk.metadata, question, chunk_id)
            for chunk_id, (chunk, _) in zip(ids, hits, strict=True)
        }

    def _found_key(self, metadata: Mapping[str, object], question: EvalQuestion, chunk_id: str) -> FoundKey:
        key, also = document_keys(metadata, question, self._key_field, chunk_id)
        return (key, *also) if also else key
