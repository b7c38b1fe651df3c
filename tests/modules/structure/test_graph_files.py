"""The files of graphs: whole or refused, and of the present content."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from judgetree.modules.errors import CollectionError, WritingError
from judgetree.modules.structure.graph_files import GraphFiles
from judgetree.modules.structure.passage_graph import Edges, PassageGraph
from tests.file_limits import largest_file


def graph(content: str = "now", weight: float = 1.0) -> PassageGraph:
    return PassageGraph(
        kind="links",
        content=content,
        passages=["c1", "c2", "汉字\ud800"],
        phrases=["Oslo", ""],
        edges={"names": Edges.of([(2, 3, weight), (0, 3, 2.0), (0, 3, 1.0)]), "none": Edges.of([])},
        made_with={"version": 1},
    )


def files(folder: Path, **changes: str) -> GraphFiles:
    return GraphFiles(**{"folder": folder, "collection": "c", "database": "/milvus.db", **changes})  # type: ignore[arg-type]


def test_a_graph_comes_back_as_it_was(tmp_path: Path) -> None:
    files(tmp_path / "new").save(graph())
    back = files(tmp_path / "new").load("links", "now")
    assert (back.passages, back.phrases, back.digest) == (graph().passages, graph().phrases, graph().digest)
    nodes, weights = back.edges["names"].targets_of(0)
    assert (nodes.tolist(), weights.tolist()) == ([3], [3.0])
    assert back.edges["names"].reversed().targets_of(3)[0].tolist() == [0, 2]
    assert back.edges["names"].targets_of(1)[0].size == 0
    assert (back.passage("c2"), back.passage("c9"), back.name_of(3)) == (1, None, "Oslo")


def test_relations_come_back_and_change_the_digest(tmp_path: Path) -> None:
    def triples(relation: str) -> PassageGraph:
        edges = {"triples": Edges.labelled([(1, 2, 1, 1.0), (1, 2, 0, 1.0), (2, 1, 1, 3.0)])}
        names = ["likes", relation]
        return PassageGraph(
            kind="triples", content="", passages=["c"], phrases=["a", "b"], relations=names, edges=edges
        )

    files(tmp_path).save(triples("is in"))
    back = files(tmp_path).load("triples", "")
    labels = back.edges["triples"].reversed().labels
    assert labels is not None
    assert ([back.relations[label] for label in labels], back.digest) == (
        ["is in", "likes", "is in"],
        triples("is in").digest,
    )
    assert back.digest != triples("is at").digest


def test_a_graph_of_another_content_is_out_of_date_and_one_of_another_database_unknown(tmp_path: Path) -> None:
    files(tmp_path).save(graph())
    with pytest.raises(CollectionError, match=r"out of date.*judgetree index --collection c --graph links"):
        files(tmp_path).load("links", "later")
    with pytest.raises(CollectionError, match="no graph 'links' yet"):
        files(tmp_path, database="https://milvus").load("links", "now")


@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.9])
def test_a_damaged_file_is_refused(tmp_path: Path, at: float) -> None:
    files(tmp_path).save(graph())
    path = files(tmp_path).path("links")
    data = path.read_bytes()
    place = int(len(data) * at)
    path.write_bytes(data[:place])
    with pytest.raises(CollectionError, match=r"damaged|format"):
        files(tmp_path).load("links", "now")


@pytest.mark.parametrize(("offset", "value"), [(10, 99), (8, 1), (6, 200)])
def test_a_file_that_seems_encrypted_or_packed_is_damaged(tmp_path: Path, offset: int, value: int) -> None:
    files(tmp_path).save(graph())
    path = files(tmp_path).path("links")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(data)
    with pytest.raises(CollectionError, match="damaged"):
        files(tmp_path).load("links", "now")


def test_a_file_of_one_array_or_with_another_header_is_damaged(tmp_path: Path) -> None:
    path = files(tmp_path).path("links")
    for write in (
        lambda file: np.save(file, np.zeros(3)),
        lambda file: np.savez(file, header=np.frombuffer(b"[1]", np.uint8)),
    ):
        with path.open("wb") as file:
            write(file)
        with pytest.raises(CollectionError, match="damaged"):
            files(tmp_path).load("links", "now")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    with files(tmp_path).path("links").open("wb") as file:
        np.savez(file, header=np.array([object()], dtype=object))
    with pytest.raises(CollectionError, match="damaged"):
        files(tmp_path).load("links", "now")


def test_changed_edges_with_the_old_digest_are_refused(tmp_path: Path) -> None:
    data = dict(np.load(io.BytesIO(graph().to_bytes())))
    data["edges/names/weights"] = data["edges/names/weights"] * 2
    with files(tmp_path).path("links").open("wb") as file:
        np.savez(file, **data)
    with pytest.raises(CollectionError, match="another digest"):
        files(tmp_path).load("links", "now")


def test_a_failed_write_leaves_the_former_graph(tmp_path: Path) -> None:
    files(tmp_path).save(graph())
    with largest_file(10), pytest.raises(WritingError):
        files(tmp_path).save(graph("later"))
    assert files(tmp_path).load("links", "now").digest == graph().digest


def test_two_graphs_that_differ_have_two_digests() -> None:
    assert graph().digest == graph().digest
    assert len({graph().digest, graph("later").digest, graph(weight=2.0).digest}) == 3


def test_processes_that_save_at_once_leave_a_whole_graph(tmp_path: Path) -> None:
    def save(number: int) -> None:
        for _ in range(10):
            files(tmp_path).save(graph(weight=float(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(1, 9)))
    assert files(tmp_path).load("links", "now").phrases == ["Oslo", ""]
