"""Formats of saved data: a reader takes its own and refuses any other by name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.evaluation.labels.store import LabelStore
from judgetree.evaluation.rows.store import RunStore
from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.embedding.cache import VectorCache
from judgetree.modules.errors import CollectionError, LoadingError, SettingsError, UserError
from judgetree.modules.index.schema import CollectionInfo
from judgetree.modules.judge.thresholds import read_calibrations
from judgetree.modules.llm.cache import CompletionCache
from judgetree.modules.storage.formats import Thing, check_format, format_of


def test_other_format_is_refused_with_what_was_found_and_what_is_read() -> None:
    check_format("judgetree-rows/7", "rows", where="x")
    with pytest.raises(SettingsError, match=r"x has the format 'judgetree-rows/1'; .* 'judgetree-rows/7' only\. Go\."):
        check_format("judgetree-rows/1", "rows", where="x", remedy="Go.", error=SettingsError)
    with pytest.raises(LoadingError, match=r"x has no format; .* 'judgetree-run/3' only\.$"):
        check_format(None, "run", where="x")


def old_sqlite(file: Path) -> Path:
    """A cache as it was written before files said their format."""
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE completions (key BLOB PRIMARY KEY)")
    connection.close()
    return file


def written(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content) + "\n", encoding="utf-8")
    return file


INFO = {"embedders": {"dense": "e"}, "dimensions": {"dense": 2}, "analyzer": "standard", "cjk_share": 0.0}
UNVERSIONED = json.dumps({"judgetree": INFO | {"schema_version": 1}})
READERS: dict[Thing, Callable[[Path], object]] = {
    "collection": lambda _: CollectionInfo.from_json(UNVERSIONED, where="It"),
    "memory": lambda _: CollectionInfo.from_json(UNVERSIONED, "memory", where="It"),
    "conversation-tree": lambda _: ConversationTree.from_json('{"format": "judgetree.conversation_tree"}'),
    "search-tree": lambda _: SearchTree.from_json('{"format": "judgetree.search_tree", "schema_version": 1}'),
    "judge-thresholds": lambda folder: read_calibrations(written(folder / "thresholds.json", {"model": {}})),
    "model-cache": lambda folder: CompletionCache(old_sqlite(folder / "c.sqlite")).get(b"key"),
    "vector-cache": lambda folder: VectorCache(old_sqlite(folder / "v.sqlite")).dimension_of("embedder"),
    "run": lambda folder: RunStore(written(folder / "manifest.json", {"run_id": "1"}).parent).read_manifest(),
    "labels": lambda folder: LabelStore(written(folder / "labels.jsonl", {"score": 1}).parent).read(),
    "rows": lambda folder: RunStore(written(folder / "rows.jsonl", {"system": "judge"}).parent).read_rows(),
}


@pytest.mark.parametrize("thing", READERS)
def test_what_earlier_versions_wrote_is_refused_by_name(thing: Thing, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"judgetree reads '{format_of(thing)}' only"):
        READERS[thing](tmp_path)


def test_collection_does_not_pass_for_a_memory() -> None:
    info = CollectionInfo(embedders={"dense": "e"}, dimensions={"dense": 2}, analyzer="standard", cjk_share=0.0)
    assert CollectionInfo.from_json(info.to_json("memory"), "memory", where="It") == info
    with pytest.raises(CollectionError, match="has the format 'judgetree-memory/3'"):
        CollectionInfo.from_json(info.to_json("memory"), where="It")
