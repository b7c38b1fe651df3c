"""The second search of CRAG: the same retriever with twice the top-k."""

from __future__ import annotations

from ...modules.retriever.contract import ChunkRetriever


def widened(retriever: ChunkRetriever) -> ChunkRetriever:
    """Return a retriever that finds twice as many chunks, as far as its candidates reach.

    A retriever of another class than ``Retriever`` is returned unchanged.
    """
    # Saved trees are read without these, which load pymilvus.
    from ...modules.retriever.reordering import MOST_CANDIDATES, REORDERING  # noqa: PLC0415
    from ...modules.retriever.retriever import Retriever  # noqa: PLC0415
    from ...modules.retriever.search import MOST_HITS  # noqa: PLC0415
    from ...modules.retriever.selection import SELECTIONS  # noqa: PLC0415

    if not isinstance(retriever, Retriever):
        return retriever
    most = MOST_CANDIDATES if retriever.ranker_type in SELECTIONS else MOST_HITS
    candidates = (retriever.ranker_params or {}).get("pre_topk")
    if retriever.ranker_type in REORDERING and isinstance(candidates, int):
        most = candidates
    return retriever.model_copy(update={"topk": max(retriever.topk, min(2 * retriever.topk, most))})
