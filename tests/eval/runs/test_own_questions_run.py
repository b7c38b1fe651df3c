"""Runs over questions of one's own: a folder or a collection as the corpus, a DataFrame, a first try that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation import RunStore
from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, EvalQuestion
from judgetree.evaluation.question_files.kept_questions import keep_questions
from judgetree.modules.errors import CollectionError, LoadingError, ModelSetupError, SettingsError
from judgetree.modules.index.factory import open_index
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN, CHINESE, write_corpus

QUESTIONS = pd.DataFrame(
    {
        "Question": [CHAIN.question, CHINESE.question],
        "Answer": [CHAIN.answer, CHINESE.answer],
        "sources": ["|".join(dict.fromkeys(fact.source for fact in each.supporting)) for each in (CHAIN, CHINESE)],
    }
)
OPTIONS = {"systems": ("naive", "judge"), "topk": 1, "search_type": "sparse", "max_rec_depth": 2, "separator": "|"}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    write_corpus(tmp_path / "docs")
    with ScriptedServer([CHAIN, CHINESE]) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def test_a_frame_over_a_folder_is_measured_with_its_gold_documents(tmp_path: Path, settings: Settings) -> None:
    keys = {**OPTIONS, "questions": QUESTIONS, "corpus": f"{tmp_path}/docs"}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    em = report.systems.query("metric == 'em'").set_index("system")["mean"]
    assert em["judge"] == 1
    assert set(report.questions["question_id"]) == {"q1", "q2"}
    assert report.questions.query("system == 'judge'")["tree_all"].tolist() == [1, 1]
    again = evaluation.run(tmp_path / "run", out=tmp_path / "again", settings=settings)
    assert again.questions["prediction"].tolist() == report.questions["prediction"].tolist()
    assert evaluation.run(out=tmp_path / "run", settings=settings, **keys).run == tmp_path / "run", "asks nothing again"


def test_a_run_of_relative_paths_is_reported_from_any_folder_and_after_a_move(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_corpus(project / "docs")
    QUESTIONS.to_csv(project / "q.csv", index=False)
    monkeypatch.chdir(project)
    evaluation.run(out="runs/mine", settings=settings, questions="q.csv", corpus="./docs", **OPTIONS)
    moved = project.rename(tmp_path / "moved")
    monkeypatch.chdir(elsewhere)
    report = evaluation.load_report(moved / "runs" / "mine", settings=settings)
    assert report.systems.query("metric == 'em'").set_index("system")["mean"]["judge"] == 1


@pytest.mark.parametrize("as_documents", [False, True])
def test_documents_with_the_same_text_are_all_found_by_one_chunk(
    tmp_path: Path, settings: Settings, as_documents: bool
) -> None:
    shelf = {"1.txt": "The crane of yard Ost lifts 40 tons.", "2.txt": "Coal is black.", "3.txt": "Ships are grey."}
    shelf |= {"0.txt": shelf["1.txt"], "4.txt": shelf["1.txt"]}
    (tmp_path / "shelf").mkdir()
    for name, text in shelf.items():
        (tmp_path / "shelf" / name).write_text(text)
    questions = tuple(
        EvalQuestion(id=f"q{gold}", question="What does the crane lift?", answers=("40 tons",), supporting=(gold,))
        for gold in ("0.txt", "1.txt", "4.txt", "2.txt")
    )
    documents = tuple(CorpusDocument(key=name, text=text) for name, text in shelf.items())
    dataset = Dataset(name="shelf", questions=questions, folder=tmp_path / "shelf", key_field="source")
    if as_documents:
        dataset = Dataset(name="shelf", questions=questions, documents=documents, key_field="shelf_mark")
    keys: dict[str, object] = {"systems": ("naive",), "topk": 1, "search_type": "sparse"}
    report = evaluation.run(dataset=dataset, out=tmp_path / "run", settings=settings, **keys)
    found = report.questions.set_index("question_id")
    assert found["tree_all"].to_dict() == {"q0.txt": 1, "q1.txt": 1, "q4.txt": 1, "q2.txt": 0}
    assert found["recall@1"].to_dict() == found["tree_all"].to_dict()
    assert found.loc["q1.txt", "failure"] == found.loc["q0.txt", "failure"] != found.loc["q2.txt", "failure"]
    lines = {row.chunks for row in RunStore(tmp_path / "run").read_rows()}
    assert len(lines) == 1, "the same search is the same line"
    ((chunk,),) = lines
    assert {*chunk.keys} == {"0.txt", "1.txt", "4.txt"}


@pytest.mark.parametrize("either", [["log.txt", "crane.txt"], ["crane.txt", "log.txt"]])
def test_of_alternative_gold_documents_any_one_will_do(tmp_path: Path, settings: Settings, either: list[str]) -> None:
    shelf = {"crane.txt": "The crane of yard Ost lifts 40 tons.", "coal.txt": "Coal is black.", "log.txt": "40 tons."}
    for name, text in shelf.items():
        (tmp_path / "shelf" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "shelf" / name).write_text(text)
    needs = {"either": [either], "both": ["log.txt", "crane.txt"], "none": [["log.txt", "coal.txt"]]}
    asked = [
        {
            "id": name,
            "question": f"What does the crane of yard Ost lift ({name})?",
            "answer": "40 tons",
            "supporting": need,
        }
        for name, need in needs.items()
    ]
    keys: dict[str, object] = {"corpus": f"{tmp_path}/shelf", "topk": 1, "search_type": "sparse", "judge": "noisy"}
    report = evaluation.run(
        questions=asked, systems=("judge",), max_rec_depth=0, out=tmp_path / "run", settings=settings, **keys
    )
    found = report.questions.set_index("question_id")
    for column in ("evidence", "recall@1", "all@1", "tree_all", "support_f1"):
        assert found.loc["either", column] == 1 > found.loc["both", column], column
        assert found.loc["none", column] == 0, column
    assert found.loc["either", "mrr"] == found.loc["either", "ndcg@1"] == 1
    verdicts = {row.question_id: row.chunks[0].verdict for row in RunStore(tmp_path / "run").read_rows()}
    assert verdicts == {"either": "2", "both": "1", "none": "0"}
    experiment = evaluation.load_experiment(questions=keep_questions(asked, tmp_path), **keys)
    evaluation.record(experiment, out=tmp_path / "recorded", depth=0, settings=settings)
    played = evaluation.replay_recording(tmp_path / "recorded", policies=("breadth",), budgets=(9,))
    assert str(played.of["data_set"]).startswith("questions:")
    recalls = dict(zip(played.rows["question"], played.rows["recall"], strict=True))
    assert recalls == {"either": 1, "both": 0.5, "none": 0}


def test_a_file_over_a_collection(tmp_path: Path, settings: Settings) -> None:
    QUESTIONS.to_csv(tmp_path / "q.csv", index=False, sep=";")
    with open_index("mine", settings, data_path=tmp_path / "docs") as index:
        index.get_index_done()
    keys = {**OPTIONS, "questions": tmp_path / "q.csv"}
    report = evaluation.run(out=tmp_path / "run", settings=settings, corpus="mine", **keys)
    assert report.questions.query("system == 'judge'")["tree_all"].tolist() == [1, 1]
    (Path.cwd() / "other").mkdir()
    with pytest.raises(CollectionError, match=r"other.*For the folder, write \./other\."):
        evaluation.run(out=tmp_path / "other", settings=settings, corpus="other", **keys)
    assert evaluation.run(out=tmp_path / "other", settings=settings, corpus="mine", **keys).run.name == "other"


def test_gold_documents_that_a_collection_lacks_are_said(
    tmp_path: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Their questions had a recall of 0, as if the search had failed."""
    with open_index("mine", settings, data_path=tmp_path / "docs") as index:
        index.get_index_done()
    strange = QUESTIONS.assign(sources=["gone.md", QUESTIONS["sources"][1]])
    keys = {**OPTIONS, "systems": ("naive",), "corpus": "mine", "settings": settings}
    evaluation.run(out=tmp_path / "run", questions=strange, **keys)
    assert "1 of the 2 gold documents is not in the collection by its source, such as 'gone.md'" in caplog.text
    with pytest.raises(SettingsError, match=r"None of the 2 gold documents is in the collection .* Name them as"):
        evaluation.run(out=tmp_path / "none", questions=strange.assign(sources=["gone.md", "lost.md"]), **keys)


def test_a_first_try_that_asked_nothing_claims_no_run_directory(tmp_path: Path, settings: Settings) -> None:
    keys = {**OPTIONS, "questions": QUESTIONS, "corpus": f"{tmp_path}/docs", "out": tmp_path / "run"}
    dead = load_settings(llm="http://127.0.0.1:9/v1#scripted", home=settings.home, retries=0)
    with pytest.raises(ModelSetupError):
        evaluation.run(settings=dead, **keys)
    assert len(RunStore(tmp_path / "run").read_rows()) == 4
    assert len(evaluation.run(settings=settings, **keys).questions) == 4
    with pytest.raises(SettingsError, match="holds another run"):
        evaluation.run(settings=dead, **keys)


def test_a_run_with_an_open_question_that_was_paid_for_is_not_started_over(tmp_path: Path, settings: Settings) -> None:
    keys = {**OPTIONS, "questions": QUESTIONS, "corpus": f"{tmp_path}/docs", "out": tmp_path / "run"}
    keys |= {"systems": ("judge",), "cache": "off"}
    with pytest.raises(LoadingError, match="holds no finished question"):
        evaluation.run(settings=settings, max_calls=1, **keys)
    store = RunStore(tmp_path / "run")
    begun = store.read_manifest()
    assert store.read_rows() == []
    with pytest.raises(SettingsError, match=r"holds another run \(topk"):
        evaluation.run(settings=settings, **{**keys, "topk": 2})
    assert store.read_manifest() == begun
    assert len(evaluation.run(settings=settings, **keys).questions) == 2


def test_no_corpus_and_two_sources_of_questions_are_refused(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"no corpus to retrieve from. Name a collection or a folder: --corpus"):
        evaluation.run(out=tmp_path / "run", settings=settings, questions=["Who?"], systems=("naive",))
    with pytest.raises(SettingsError, match="either questions or dataset"):
        evaluation.run(out=tmp_path / "run", settings=settings, questions="q.csv", dataset="hotpotqa:dev.json")
    with pytest.raises(SettingsError, match="columns is not allowed"):
        evaluation.run(out=tmp_path / "run", settings=settings, dataset="hotpotqa:dev.json", columns={"id": "nr"})


def test_questions_without_answers_get_trees_and_a_report_without_scores(tmp_path: Path, settings: Settings) -> None:
    keys = {**OPTIONS, "questions": [CHAIN.question, CHINESE.question], "corpus": f"{tmp_path}/docs"}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    assert "em" not in set(report.systems["metric"]) or report.systems.query("metric == 'em'")["mean"].isna().all()
    assert report.questions["prediction"].str.len().gt(0).any()
    assert len(list(evaluation.TreeStore(tmp_path / "run").read_all())) == 4
    assert "| judge | 2 |" in report.to_markdown()
    evaluation.write_report(tmp_path / "run")
    assert CHAIN.question in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
