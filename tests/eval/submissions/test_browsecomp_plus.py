"""A run over BrowseComp-Plus in its own forms: the files of its evaluation script, and that of its leaderboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.submissions.browsecomp_plus import SUMMARY, Submission, SubmittedAnswer, write_submission
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.modules.settings import Settings, load_settings
from tests.eval.browsecomp_files import NAMES, PAGES, query, question_of, write_browsecomp_plus
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_rows import write_run

SAID = {"a": "grey", "b": "red", "c": "grey", "d": "blue"}


@dataclass(frozen=True, kw_only=True)
class Bench:
    run: Path
    settings: Settings


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A run by the scripted model, which reads the page of c as it is, and so answers wrongly."""
    folder = tmp_path_factory.mktemp("browsecomp")
    texts = {name: PAGES[name].rpartition("\n")[2] for name in NAMES}
    facts = [standards_row(name, question_of(name), SAID[name], f"{name}.md", text) for name, text in texts.items()]
    quotes = {f"{name}.md": text for name, text in texts.items()}
    known = load_standards_qa(write_standards(folder / "known", quotes, *facts))
    spec = f"browsecomp_plus:{write_browsecomp_plus(folder / 'set', query('a', 'a', 'b'), *map(query, 'bcd'))}"
    with ScriptedServer(known) as server:
        settings = load_settings(llm=f"{server.base_url}#scripted", home=folder / "home", retries=0)
        keys = {"dataset": spec, "search_type": "sparse", "topk": 1, "settings": settings}
        evaluation.run(out=folder / "run", systems=["naive", "ircot"], **keys)
        yield Bench(run=folder / "run", settings=settings)


def test_the_script_gets_a_file_a_question_with_all_that_was_found(bench: Bench, tmp_path: Path) -> None:
    submission = write_submission(bench.run, tmp_path, system="naive", settings=bench.settings)
    files = sorted((tmp_path / "runs").iterdir())
    assert [file.name for file in files] == ["run_0001.json", "run_0002.json", "run_0003.json", "run_0004.json"]
    assert json.loads(files[0].read_text(encoding="utf-8")) == {
        "query_id": "1",
        "metadata": {"model": bench.settings.llm_spec},
        "tool_call_counts": {"search": 1},
        "status": "completed",
        "retrieved_docids": ["900"],
        "result": [{"type": "output_text", "output": "grey"}],
    }
    assert (submission.recall, submission.search_calls) == ((50 + 100 + 100 + 100) / 4, 1)


def test_the_leaderboard_gets_what_was_judged(bench: Bench, tmp_path: Path) -> None:
    evaluation.score(bench.run, "llm_correctness", settings=bench.settings)
    link = "https://x.example"
    submission = write_submission(bench.run, tmp_path, system="naive", link=link, settings=bench.settings)
    said = json.loads((tmp_path / SUMMARY).read_text(encoding="utf-8"))
    assert said.pop("Evaluation Date").count("-") == 2
    assert said == {
        "LLM": bench.settings.llm_spec,
        "Retriever": "judgetree naive: sparse, top-k 1",
        "Accuracy (%)": 75.0,
        "Recall (%)": 87.5,
        "Search Calls": 1.0,
        "Calibration Error (%)": None,
        "Link": "https://x.example",
        "per_query_metrics": [
            {"query_id": "1", "correct": True, "recall": 50.0},
            {"query_id": "2", "correct": True, "recall": 100.0},
            {"query_id": "3", "correct": False, "recall": 100.0},
            {"query_id": "4", "correct": True, "recall": 100.0},
        ],
    }
    assert submission.is_judged


def test_every_search_of_a_system_counts(bench: Bench, tmp_path: Path) -> None:
    rows = [row for row in RunStore(bench.run).read_rows() if row.system == "ircot"]
    submission = write_submission(bench.run, tmp_path, system="ircot", settings=bench.settings)
    assert submission.search_calls == sum(1 + max(chunk.depth for chunk in row.chunks) for row in rows) / len(rows)


def answer(number: int, *, text: str, is_right: bool | None, is_completed: bool = True) -> SubmittedAnswer:
    return SubmittedAnswer(
        query_id=str(number), text=text, is_completed=is_completed, found=(), searches=0, recall=0.0, is_right=is_right
    )


def test_failed_questions_are_wrong_and_have_no_confidence() -> None:
    answers = [
        *(answer(number, text="Confidence: 40%", is_right=number < 50) for number in range(100)),
        *(answer(number, text="", is_right=False, is_completed=False) for number in range(100, 200)),
        *(answer(number, text="sure", is_right=True) for number in range(200, 300)),
    ]
    submission = Submission(llm="m", retriever="r", answers=tuple(answers))
    assert submission.accuracy == 50
    assert submission.calibration_error == pytest.approx((100 / 200 * (40 - 50) ** 2) ** 0.5)
    assert answers[100].to_document("m")["status"] == "failed"


def test_a_run_over_another_set_or_with_repeats_is_refused(tmp_path: Path) -> None:
    spec = f"browsecomp_plus:{write_browsecomp_plus(tmp_path / 'set')}"
    with pytest.raises(SettingsError, match="2 answers to each question"):
        write_submission(write_run(tmp_path / "a", {"naive": 1}, dataset=spec, repeats=2), tmp_path / "out")
    questions = tmp_path / "my.csv"
    questions.write_text("question,answer\nWho?,Ada\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="The run is over 'questions'"):
        write_submission(write_run(tmp_path / "b", {"naive": 1}, questions=str(questions)), tmp_path / "out")


def test_a_run_whose_trees_are_gone_is_refused(bench: Bench, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in bench.run.iterdir():
        if file.is_file() and file.name != "trees.jsonl":
            (copy / file.name).write_bytes(file.read_bytes())
    with pytest.raises(LoadingError, match="has lost the tree of '1'"):
        write_submission(copy, tmp_path / "out", system="naive", settings=bench.settings)
