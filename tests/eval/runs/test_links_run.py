"""A batch run that follows links: it makes the graph of its own corpus, and refuses to go on with another rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.errors import CollectionError, SettingsError
from judgetree.modules.settings import Settings, load_settings
from judgetree.modules.structure.passage_graph import PassageGraph
from tests.app.conftest import CHAIN, CHINESE, write_corpus

KEYS: dict[str, object] = {
    "questions": [{"question": CHAIN.question, "answer": CHAIN.answer}],
    "corpus": "./docs",
    "search_type": "sparse",
    "topk": 1,
    "systems": ("naive", "judge"),
    "expansion": "both",
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    write_corpus(tmp_path / "docs", {"a.md": "# Norm A\n\nNorm A names the drum.", "c.md": "# The drum\n\nIt is grey."})
    monkeypatch.chdir(tmp_path)
    with ScriptedServer([CHAIN, CHINESE]) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def test_a_run_makes_the_graph_of_its_corpus_and_again_once_it_has_changed(settings: Settings) -> None:
    for out in ("first", "second"):
        report = evaluation.run(out=out, settings=settings, **KEYS)
        [judged] = report.questions.query("system == 'judge'")["thread_id"]
        tree = evaluation.TreeStore(Path(out)).read(judged)
        assert tree is not None
        assert [each.linked_by for each in tree.root.chunks] == ["", "The drum"]
        Path("docs", "c.md").write_text("# The drum\n\nIt is green.")
    with pytest.raises(SettingsError, match="expansion"):
        evaluation.run(out="first", settings=settings, **{**KEYS, "expansion": "link"})


def test_a_run_makes_the_graph_of_entities_that_its_search_needs(settings: Settings) -> None:
    keys = {**KEYS, "expansion": "sub_question", "systems": ("naive",), "topk": 2}
    plain = evaluation.run(out="plain", settings=settings, **keys)
    fused = evaluation.run(out="fused", settings=settings, search_graph="entities", **keys)
    assert [len(each.questions) for each in (plain, fused)] == [1, 1]
    assert next(path.name for path in (settings.home / "graphs").glob("*.npz")).endswith(".entities.npz")
    with pytest.raises(SettingsError, match="search_graph"):
        evaluation.run(out="plain", settings=settings, search_graph="entities", **keys)
    with pytest.raises(SettingsError, match="no graph 'nouns'"):
        evaluation.run(out="new", settings=settings, search_graph="nouns", **keys)


def test_a_graph_that_needs_a_model_is_asked_for_by_the_command_that_makes_it(settings: Settings) -> None:
    keys = {**KEYS, "expansion": "sub_question", "systems": ("naive",)}
    with pytest.raises(
        CollectionError, match=r"no graph 'triples' yet.*judgetree index --collection \S+ --graph triples"
    ):
        evaluation.run(out="fused", settings=settings, search_graph="triples", **keys)


def test_linked_passages_are_found_in_the_tree_and_have_no_rank_in_the_search(settings: Settings) -> None:
    gold = [{"question": CHAIN.question, "answer": CHAIN.answer, "supporting": "c.md"}]
    keys = {**KEYS, "questions": gold, "systems": ("judge",), "expansion": "link"}
    report = evaluation.run(out="run", settings=settings, **keys)
    [scores] = report.questions[["recall@1", "mrr", "tree_recall"]].to_dict("records")
    assert scores == {"recall@1": 0.0, "mrr": 0.0, "tree_recall": 1.0}
    [row] = RunStore(Path("run")).read_rows()
    assert [(each.key, each.is_linked) for each in row.chunks] == [("a.md", False), ("c.md", True)]


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"systems": ("naive",), "expansion": "sub_question", "search_graph": "entities"}, "search_graph"),
        ({"systems": ("judge",), "expansion": "link"}, "links"),
    ],
)
def test_a_run_takes_no_rows_of_another_graph_of_the_same_passages(
    settings: Settings, keys: dict[str, object], part: str
) -> None:
    asked = [{"question": each, "answer": ""} for each in (CHAIN.question, CHINESE.question)]
    run = partial(evaluation.run, out="run", settings=settings, **{**KEYS, "questions": asked, **keys})
    run(limit=1)
    [path] = (settings.home / "graphs").glob("*.npz")
    graph = PassageGraph.from_bytes(path.read_bytes(), where="", remedy="")
    path.write_bytes(replace(graph, made_with={"made_by": "another model"}).to_bytes())
    with pytest.raises(SettingsError, match=r"holds another run \(graph: "):
        run()
    assert len(RunStore(Path("run")).read_rows()) == 1
    kept = RunStore(Path("run")).read_manifest()
    assert kept is not None
    facts = kept[part]
    assert isinstance(facts, dict)
    assert (facts["kind"], facts["graph"]) == (graph.kind, graph.digest)
