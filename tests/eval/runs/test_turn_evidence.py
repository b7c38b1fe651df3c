"""Which chunks of an answer its turn did not find, and what each form of its question finds."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.rows.store import RowChunk
from judgetree.evaluation.rows.turn_facts import ReusedChunk
from judgetree.evaluation.runs.turn_evidence import TurnEvidence, TurnEvidenceReader
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.memory.turns import ChunkRef, QaPair, imported_turn
from tests.eval.runs.test_spending import ROW

QUESTION = EvalQuestion(
    id="q2",
    question="And it?",
    answers=("x",),
    supporting=("b",),
    turn=DialogueTurn(dialogue_id="d", number=2, parent="q1", history=(("What of A?", "a"),), rewrite="And B?"),
)


class Shelf:
    """Finds what stands under the words of a query; chunk ``1`` is of document ``doc-1``."""

    def __init__(self, **found: str) -> None:
        self._found = found

    def fingerprint(self) -> dict[str, str]:
        return {}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        if query not in FORMS:
            raise ModelCallError("the embedder is gone")
        ids = self._found.get(FORMS[query], "")
        return [(Document(page_content="", metadata={"chunk_id": each, "key": f"doc-{each}"}), 1.0) for each in ids]


FORMS = {"And it?": "raw", "What of A? And it?": "joined", "What of B?": "rewrite", "And B?": "human"}


def turn(*chunk_ids: str, answered_from: str = "search", standalone: str = "What of B?") -> QaPair:
    refs = [ChunkRef(chunk_id=each, source="", score=None, retrieval_score=None, thread_id="t") for each in chunk_ids]
    pair = imported_turn("And it?", "x", parent=None, turn_id="2", timestamp="")
    return pair | {"standalone_query": standalone, "chunks": refs, "answered_from": answered_from}  # type: ignore[return-value]


def tree(*chunks: tuple[str, int]) -> SearchTree:
    """Chunks by id, with the round that found each."""
    nodes = [
        ChunkNode(chunk_id=chunk_id, text="", metadata={"recursion_depth": number, "found_by": "What of B?"})
        for chunk_id, number in chunks
    ]
    return SearchTree(root=QueryNode(thread_id="t", query="What of B?", chunks=tuple(nodes)))


def found_before(*chunk_ids: str) -> list[RowChunk]:
    return [RowChunk(key=f"doc-{each}", chunk_id=each, depth=0, rank=0, verdict="1") for each in chunk_ids]


def read(
    pair: QaPair,
    searched: SearchTree | None,
    *earlier: str,
    shelf: Shelf | None = None,
    question: EvalQuestion = QUESTION,
) -> TurnEvidence:
    path = [replace(ROW, chunks=tuple(found_before(*earlier)))]
    return asyncio.run(TurnEvidenceReader(shelf, "key").read(question, pair, searched, path))


def test_chunk_that_the_search_finds_again_is_not_reused() -> None:
    shelf = Shelf(rewrite="12")
    evidence = read(turn("1", "2", "3"), tree(("1", 0), ("2", 0), ("3", 0)), "2", "3", shelf=shelf)
    assert evidence.reused == (ReusedChunk(key="doc-3", chunk_id="3"),)


def test_chunk_that_a_later_round_finds_is_not_reused() -> None:
    evidence = read(turn("3", "4"), tree(("3", 0), ("4", 1)), "3", "4", shelf=Shelf())
    assert [chunk.chunk_id for chunk in evidence.reused] == ["3"]


def test_all_chunks_of_an_answer_from_history_are_reused() -> None:
    evidence = read(turn("2", "3", answered_from="history"), None, "3", "2", shelf=Shelf(rewrite="23"))
    assert [chunk.key for chunk in evidence.reused] == ["doc-2", "doc-3"]


def test_every_form_of_the_question_is_searched_for() -> None:
    evidence = read(turn("1"), tree(("1", 0)), shelf=Shelf(raw="9", rewrite="1", human="21"))
    assert evidence.retrieved == {"raw": ("doc-9",), "joined": (), "rewrite": ("doc-1",), "human": ("doc-2", "doc-1")}


def test_documents_with_the_same_text_are_found_together() -> None:
    chunk = Document(page_content="", metadata={"chunk_id": "1", "key": "a", "also_keys": ["b", "a"]})

    class OneShelf(Shelf):
        async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
            return [(chunk, 1.0)]

    assert read(turn("1"), tree(("1", 0)), shelf=OneShelf()).retrieved["raw"] == (("a", "b"),)


def test_nothing_is_searched_for_without_a_retriever_or_known_documents() -> None:
    unknown = replace(QUESTION, supporting=())
    assert read(turn("1"), tree(("1", 0))).retrieved == {}
    assert read(turn("1"), tree(("1", 0)), shelf=Shelf(), question=unknown).retrieved == {}


def test_search_that_fails_finds_nothing() -> None:
    evidence = read(turn("1", standalone="Elsewhere?"), tree(("1", 0)), shelf=Shelf(raw="1"))
    assert (evidence.retrieved["raw"], evidence.retrieved["rewrite"]) == (("doc-1",), ())
