"""A sentence that a reader sees in a Word or Markdown file is found by a search, and the report tells what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.modules.index.connection import MilvusConnection
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from tests.modules.index.word_files import CASES, UNSEEN

MARKDOWN = """---
title: The heron
---
# Where it stands

A heron [stands](a.md) at the **river** <!-- unseen heron --> all day.[^1]

- It waits for a fish.

> It hears nothing.

| bird | colour |
|------|--------|
| heron | grey |

```
nest = 4
```

Caf&eacute; at the bank
-----------------------

[^1]: A note on its day.
"""
IN_MARKDOWN = (
    "A heron [stands](a.md) at the **river**  all day.",
    "It waits for a fish.",
    "It hears nothing.",
    "heron | grey",
    "nest = 4",
    "Café at the bank",
    "A note on its day.",
)


@pytest.fixture
def index(docs: Path, embedded: MilvusConnection, make_index: Callable[[MilvusConnection], Index]) -> Index:
    for name, case in CASES.items():
        (docs / f"{name}.docx").write_bytes(case.data())
    (docs / "heron.md").write_text(MARKDOWN, encoding="utf-8")
    return make_index(embedded)


def test_every_planted_sentence_is_found_or_told(index: Index) -> None:
    report = index.get_index_done()
    told = {f"{name}.docx": case.left_out for name, case in CASES.items() if case.left_out}
    assert report.left_out == {**told, "heron.md": {"comment": 1}}
    assert report.skipped == ()
    planted = {f"{name}.docx": case.seen for name, case in CASES.items()} | {"heron.md": IN_MARKDOWN}
    retriever = Retriever(index, topk=5)
    for source, sentences in planted.items():
        for sentence in sentences:
            found = [chunk for chunk, _ in retriever.get_similar_chunk_with_score(sentence)]
            assert any(sentence.strip() in chunk.page_content for chunk in found), (source, sentence)
            assert not any(UNSEEN in chunk.page_content for chunk in found)
    assert {chunk.metadata["title"] for chunk in found} >= {"The heron"}
