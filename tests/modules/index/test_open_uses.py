"""Closing waits for uses that have not ended: an abandoned search must not lose its index, or open it again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from judgetree.modules.index.connection import OpenUses
from judgetree.modules.index.index import Index
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.storage.file_locks import lock_holder
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.turn_factory import make_turn


class SlowEmbedder(BagOfWordsEmbedder):
    """Takes a second for a query."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Event()

    def embed_query(self, text: str) -> list[float]:
        self.started.set()
        time.sleep(1)
        return super().embed_query(text)


def test_nothing_is_waited_for_when_unused() -> None:
    assert OpenUses().wait_for_end(0)


def test_the_wait_ends_at_its_limit_and_with_the_last_use() -> None:
    uses = OpenUses()
    with uses.entered():
        with uses.entered():
            assert not uses.wait_for_end(0)
        assert not uses.wait_for_end(0.01)
    assert uses.wait_for_end(0)


def test_an_index_that_is_closed_waits_for_a_search_in_another_thread(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Cats sleep.")
    embedder, folder = SlowEmbedder(), tmp_path / "own.db"
    with Index(embedder, tmp_path / "docs", None, "docs", uri=str(folder), token="") as index:
        index.get_index_done()
        retriever, found = Retriever(index, search_type="hybrid"), []
        searching = threading.Thread(target=lambda: found.extend(retriever.get_similar_chunk_with_score("cats")))
        searching.start()
        assert embedder.started.wait(20)
    searching.join(20)
    assert not searching.is_alive()
    assert [chunk.page_content for chunk, _ in found] == ["Cats sleep."]
    assert lock_holder(folder / "LOCK") is None


def test_a_memory_that_is_closed_waits_for_a_search_in_another_thread(tmp_path: Path) -> None:
    embedder, folder = SlowEmbedder(), tmp_path / "own.db"
    with ConversationMemory(embedder, uri=str(folder), token="") as memory:
        memory.add_turns("s", [make_turn(1, "Do cats sleep?")])
        found: list[object] = []
        searching = threading.Thread(target=lambda: found.extend(memory.retrieve_relevant_history("s", "cats", 1)))
        searching.start()
        assert embedder.started.wait(20)
    searching.join(20)
    assert len(found) == 1
    assert lock_holder(folder / "LOCK") is None
