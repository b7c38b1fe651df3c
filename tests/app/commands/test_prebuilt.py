"""``--retriever``: an index that others have built, and a retriever of LangChain, in ask, chat, eval run and YAML."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from judgetree import RagSession, evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs import gold
from tests.app.conftest import CHAIN, Cli, new_thread
from tests.modules.prebuilt_files import PASSAGES, contents, write_bm25s, write_corpus_file

HOTPOT = {
    "_id": "q1",
    "question": CHAIN.question,
    "answer": "40 mm",
    "context": [[title, [text]] for title, text in PASSAGES[:3]],
    "supporting_facts": [["Norm A", 0], ["Drums", 0]],
}

LANGCHAIN = """
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class Shelf(BaseRetriever):
    topk: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        texts = ["Norm A names the drum.", "The drum's wall is 40 mm thick."]
        titles = ["Norm A", "Drums"]
        return [Document(page_content=text, metadata={"source": title}) for text, title in zip(texts, titles)]
"""


@pytest.fixture
def folder(tmp_path: Path, surroundings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with words alone, beside a file of questions, in the working directory; and no collection."""
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    write_corpus_file(tmp_path / "wiki")
    write_bm25s(tmp_path / "wiki", contents())
    Path("hotpot.json").write_text(json.dumps([HOTPOT]), encoding="utf-8")
    Path("shelf.py").write_text(LANGCHAIN, encoding="utf-8")
    return tmp_path / "wiki"


def test_a_collection_beside_a_prebuilt_index_is_refused(cli: Cli, folder: Path) -> None:
    asked = cli("ask", "Who?", "-c", "mine", "--retriever", f"prebuilt:{folder}")
    asked.refused("in place of a collection: leave out 'mine'")


def test_a_question_is_asked_and_resumed_without_a_collection(cli: Cli, folder: Path, scripted: ScriptedServer) -> None:
    thread, options = new_thread(), ("--retriever", "prebuilt:wiki", "--topk", "2")
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    assert cli("ask", CHAIN.question, *options, "--thread-id", thread).status == 1
    scripted.configure(faults={})
    assert cli("ask", "--resume", "--thread-id", thread).ok().out == "40 mm\n", "the options come from the thread"
    again = json.loads(cli("ask", CHAIN.question, *options, "--thread-id", thread, "--json").ok().out)
    assert again["usage_this_run"]["llm_calls"] == 0
    assert {each["metadata"]["source"] for each in again["tree"]["root"]["chunks"]} == {"Norm A", "Drums"}
    write_corpus_file(folder, [*PASSAGES[:-1], ("Paint", "Paint is red.")])
    cli("ask", CHAIN.question, *options, "--thread-id", thread).refused("retriever.content: ")
    cli("ask", CHAIN.question, *options, "--search-type", "dense").refused("has nothing for a dense search")
    cli("ask", CHAIN.question, "--retriever", "prebuilt:elsewhere").refused("'elsewhere' does not exist")


def test_documents_of_beir_are_known_by_their_ids_and_not_by_a_title_that_others_have_too(
    cli: Cli, folder: Path
) -> None:
    passages = [("Norm A", "Norm A names the drum."), ("Norm A", "Ladders are painted grey.")]
    write_corpus_file(folder, passages)
    write_bm25s(folder, contents(passages))
    Path("beir/qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": str(row), "title": title, "text": text}) for row, (title, text) in enumerate(passages)]
    Path("beir/corpus.jsonl").write_text("\n".join(corpus))
    queries = [{"_id": "found", "text": "Which drum?"}, {"_id": "other", "text": "The drum of the norm?"}]
    Path("beir/queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    Path("beir/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nfound\t0\t1\nother\t1\t1\n")
    asked = ("eval", "run", "--dataset", "beir:beir", "--retriever", "prebuilt:wiki", "--topk", "1", "--out", "run")
    cli(*asked, "--systems", "naive,judge", "--judge", "noisy:auc=1").ok()
    questions = evaluation.load_report(Path("run")).questions.query("system == 'naive'").set_index("question_id")
    assert questions["recall@1"].to_dict() == {"found": 1, "other": 0}


def test_a_run_counts_supporting_titles_and_belongs_to_one_index(cli: Cli, folder: Path) -> None:
    Path("run.yaml").write_text(
        "dataset: hotpotqa:hotpot.json\nsystems: [naive]\nretriever: prebuilt:wiki\ntopk: 3\nsearch_type: sparse\n"
    )
    cli("eval", "run", "--config", "run.yaml", "--out", "run").ok()
    [row] = RunStore(Path("run")).read_rows()
    assert {"Norm A", "Drums"} <= {chunk.key for chunk in row.chunks}
    assert evaluation.load_report(Path("run")).questions["tree_recall"].tolist() == [1]
    assert RunStore(Path("run")).read_manifest()["retriever"]["part"] == "prebuilt:wiki"  # type: ignore[index]
    write_bm25s(folder, [*contents()[:-1], "Paint is red."])
    cli("eval", "run", "--config", "run.yaml", "--out", "run", "--repeat", "2").refused("content")


@pytest.mark.parametrize("most_read", [20_000, 2])
@pytest.mark.parametrize(
    ("supporting", "is_found"), [("0 | 4", False), ("0 | Drums", True), ("Norm A | nowhere", True), ("nowhere", None)]
)
def test_own_questions_whose_supporting_documents_are_no_titles_are_refused(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, supporting: str, is_found: bool | None, most_read: int
) -> None:
    monkeypatch.setattr(gold, "_MOST_READ", most_read)
    Path("my.csv").write_text(f"question,answer,supporting\n{CHAIN.question},40 mm,{supporting}\n")
    asked = ("eval", "run", "--questions", "my.csv", "--systems", "naive", "--retriever", "prebuilt:wiki")
    done = cli(*asked, "--out", "run")
    if is_found or (is_found is None and most_read == 2):  # nobody looks through a long corpus
        done.ok()
    else:
        done.refused(f"such as '{supporting.partition(' ')[0]}', is a title of corpus.jsonl")
        done.refused("Name titles, such as 'Norm A'")
        assert not RunStore(Path("run")).read_rows()


def test_a_retriever_of_langchain_is_named_by_its_module(cli: Cli, folder: Path) -> None:
    asked = cli("ask", CHAIN.question, "--retriever", "shelf:Shelf", "--json").ok()
    assert {each["metadata"]["source"] for each in json.loads(asked.out)["tree"]["root"]["chunks"]} == {
        "Norm A",
        "Drums",
    }
    Path("run.yaml").write_text("dataset: hotpotqa:hotpot.json\nsystems: [naive]\nretriever: shelf:Shelf\n")
    cli("eval", "run", "--config", "run.yaml", "--out", "of-yaml").ok()
    named = ("--dataset", "hotpotqa:hotpot.json", "--systems", "naive", "--retriever", "shelf:Shelf")
    cli("eval", "run", *named, "--out", "named").ok()
    [row] = RunStore(Path("named")).read_rows()
    assert row.prediction == "40 mm"


def test_a_session_takes_the_spec_too(folder: Path) -> None:
    with RagSession(retriever="prebuilt:wiki", search_type="sparse", system="naive", topk=2) as session:
        assert session.ask(CHAIN.question).answer == "40 mm"
