"""Evaluation runs as requests see them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.evaluation.reports.page import write_report
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.server.serving import serving
from tests.eval import run_rows
from tests.eval.dataset_files import write_lines
from tests.eval.run_writer import ATTACK, RunWriter

PATHS = ("", "/report", "/questions", "/trees/judge-0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the run ``mill``."""
    folder = tmp_path / "runs"
    (folder / "mill").mkdir(parents=True)
    RunWriter(folder / "mill").fill()
    return folder


@pytest.fixture
def http(settings: Settings, folder: Path) -> Iterator[httpx.Client]:
    """A client of a server that shows the runs."""
    with serving(settings, ServerOptions(runs=folder)) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def add_run(folder: Path, name: str, right: dict[str, int], **experiment: object) -> None:
    """A run over twelve questions, whose right answer is "right"."""
    asked = ({"id": f"q{n}", "question": f"Question {n}?", "golden_answers": ["right"]} for n in range(12))
    file = folder.parent / "asked.jsonl"
    if not file.exists():
        write_lines(folder.parent, *asked, name="asked.jsonl")
    run_rows.write_run(folder / name, right, dataset=f"flashrag:{file}", **experiment)


def test_runs_have_headline_figures_with_intervals(http: httpx.Client) -> None:
    listed = http.get("/v1/runs").json()
    (run,) = listed["data"]
    assert listed["total"] == 1
    assert (run["name"], run["systems"], run["started"]) == ("mill", ["naive", "judge"], "2025-03-01T10:00:00+00:00")
    assert (run["questions"], run["answered"], run["failed"], run["problem"]) == (3, 5, 1, "")
    em = {each["system"]: each for each in run["metrics"] if each["metric"] == "em"}
    assert em["judge"]["mean"] == pytest.approx(2 / 3)
    assert em["judge"]["low"] < 2 / 3 < em["judge"]["high"]
    assert em["naive"]["n"] == 3


def test_a_run_that_has_gone_on_is_scored_again(http: httpx.Client, folder: Path) -> None:
    add_run(folder, "growing", {"naive": 12, "judge": 12}, systems=("naive", "judge"))
    rows = folder / "growing" / "rows.jsonl"
    whole = rows.read_text(encoding="utf-8")
    rows.write_text("".join(whole.splitlines(keepends=True)[:20]), encoding="utf-8")
    newest, *_ = http.get("/v1/runs").json()["data"]
    assert (newest["name"], newest["answered"], newest["missing"], newest["finished"]) == ("growing", 20, 4, None)
    rows.write_text(whole, encoding="utf-8")
    newest, *_ = http.get("/v1/runs").json()["data"]
    assert (newest["answered"], newest["missing"]) == (24, 0)
    assert newest["finished"] >= newest["started"]


def test_a_run_that_cannot_be_read_says_why_and_hides_no_other(http: httpx.Client, folder: Path) -> None:
    add_run(folder, "broken", {"judge": 1})
    with (folder / "broken" / "rows.jsonl").open("a", encoding="utf-8") as rows:
        rows.write("{}\n")
    broken, mill = http.get("/v1/runs").json()["data"]
    assert (broken["name"], mill["name"], mill["problem"]) == ("broken", "mill", "")
    assert broken["problem"].startswith("broken/rows.jsonl, line 13")
    for path in ("/v1/runs/broken", "/v1/runs/broken/report", "/v1/runs/compare?a=broken"):
        answer = http.get(path)
        assert answer.status_code == 409
        assert str(folder) not in answer.text


@pytest.mark.slow
def test_one_run_has_the_report_of_the_command_line(http: httpx.Client, folder: Path) -> None:
    run = http.get("/v1/runs/mill").json()
    assert run["name"] == run["report"]["run"] == "mill"
    assert run["identity"]["topk"] == 2
    document = write_report(folder / "mill").to_document()
    kinds = {(each["system"], each["kind"]): each["answers"] for each in run["report"]["failures"]}
    assert kinds == {(each["system"], each["kind"]): each["answers"] for each in document["failures"]}  # type: ignore[attr-defined]


def test_the_report_is_the_page_of_the_command_line_under_its_own_policy(http: httpx.Client, folder: Path) -> None:
    answer = http.get("/v1/runs/mill/report")
    page = next(file for file in write_report(folder / "mill").files if file.suffix == ".html")
    assert answer.text == page.read_text(encoding="utf-8")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert policy.endswith("frame-ancestors 'self'")


def test_questions_that_one_system_had_right_and_another_wrong(http: httpx.Client) -> None:
    found = http.get("/v1/runs/mill/questions", params={"right": "judge", "wrong": "naive"}).json()
    (question,) = found["data"]
    assert (found["total"], question["question"], question["gold"]) == (1, "Which river drives the mill?", ["Vell"])
    answers = {each["system"]: each for each in question["answers"]}
    assert (answers["judge"]["answer"], answers["judge"]["em"], answers["judge"]["f1"]) == ("Vell", 1.0, 1.0)
    assert (answers["naive"]["status"], answers["naive"]["em"]) == ("refused", 0.0)
    tree = http.get(f"/v1/runs/mill/trees/{answers['judge']['thread_id']}").json()
    assert tree["root"]["query"] == question["question"]


def test_one_question_has_the_gold_marks_of_its_trees(http: httpx.Client) -> None:
    listed = http.get("/v1/runs/mill/questions").json()["data"]
    marked = [http.get(f"/v1/runs/mill/questions/{quote(each['id'], safe='')}").json() for each in listed]
    assert [{**each, "marks": None} for each in marked] == [{**each, "marks": None} for each in listed]
    (first, *_) = marked
    trees = [http.get(f"/v1/runs/mill/trees/{each['thread_id']}").json()["root"] for each in first["answers"]]
    there = {(tree["thread_id"], chunk["chunk_id"]) for tree in trees for chunk in tree["chunks"]}
    found = {(thread, chunk): mark for thread, chunks in first["marks"].items() for chunk, mark in chunks.items()}
    assert found
    assert set(found.values()) <= {"fact", "document"}
    assert there & found.keys()
    assert http.get("/v1/runs/mill/questions/none").status_code == 404


def test_questions_come_in_pages_and_by_kind_of_failure(http: httpx.Client) -> None:
    everything = http.get("/v1/runs/mill/questions").json()
    assert (everything["total"], len(everything["data"])) == (3, 3)
    page = http.get("/v1/runs/mill/questions", params={"limit": 1, "offset": 1}).json()
    assert (page["total"], page["data"]) == (3, everything["data"][1:2])
    failed = http.get("/v1/runs/mill/questions", params={"failure": "failed_run"}).json()["data"]
    assert [each["question"] for each in failed] == [everything["data"][2]["question"]]
    for params in ({"right": "react"}, {"wrong": "react"}, {"failure": "bad luck"}):
        answer = http.get("/v1/runs/mill/questions", params=params)
        assert answer.status_code == 400
        assert "Allowed: " in answer.json()["error"]["message"]


def test_a_repeated_question_is_right_if_every_repeat_was(http: httpx.Client, folder: Path) -> None:
    add_run(folder, "repeated", {"judge": 12, "naive": 12}, repeats=2)
    store = RunStore(folder / "repeated")
    row = next(row for row in store.read_rows() if row.place == ("judge", "q3", 1))
    store.append(replace(row, prediction="wrong", attempt=1))
    found = http.get("/v1/runs/repeated/questions", params={"right": "naive", "wrong": "judge"}).json()
    assert [each["id"] for each in found["data"]] == ["q3"]
    assert len(found["data"][0]["answers"]) == 4


def test_systems_of_a_run_and_of_two_are_compared(http: httpx.Client, folder: Path) -> None:
    add_run(folder, "a", {"naive": 2, "judge": 12})
    add_run(folder, "b", {"judge": 2})
    em, f1, *_ = http.get("/v1/runs/compare", params={"a": "a"}).json()["data"]
    assert (em["a"], em["b"], em["metric"], f1["metric"]) == ("judge", "naive", "em", "f1")
    assert (em["n"], em["is_shown"], em["test"]) == (12, True, "mcnemar")
    assert em["difference"] == pytest.approx(10 / 12)
    assert em["low"] < em["difference"] < em["high"]
    across, *_ = http.get("/v1/runs/compare", params={"a": "a", "b": "b"}).json()["data"]
    assert (across["a"], across["b"]) == ("a:judge", "b:judge")
    assert across["verdict"].startswith("a:judge is better than b:judge by 83.3 points")


def test_runs_that_differ_are_compared_by_force_alone(http: httpx.Client, folder: Path) -> None:
    add_run(folder, "a", {"judge": 12})
    add_run(folder, "b", {"judge": 2}, topk=7)
    refused = http.get("/v1/runs/compare", params={"a": "a", "b": "b"})
    assert refused.status_code == 400
    assert "a and b differ in more than the system (topk: 3 and 7)" in refused.json()["error"]["message"]
    assert http.get("/v1/runs/compare", params={"a": "a", "b": "b", "force": True}).status_code == 200


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_tree_is_drawn_and_may_run_nothing_else(http: httpx.Client, form: str) -> None:
    answer = http.get("/v1/runs/mill/trees/judge-0", params={"format": form})
    assert answer.status_code == 200
    assert form in answer.headers["Content-Type"]
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert ATTACK not in answer.text
    assert "Where is the weir?" in answer.text


@pytest.mark.parametrize("run", ["nothing", "..", "%2e%2e", "mill%2F..%2Fmill", "mill%00", ".hidden", "a" * 255])
def test_no_name_leads_out_of_the_folder(http: httpx.Client, folder: Path, run: str) -> None:
    shutil.copytree(folder / "mill", folder / ".hidden")
    shutil.copy(folder / "mill" / "manifest.json", folder.parent)
    for path in PATHS:
        assert http.get(f"/v1/runs/{run}{path}").status_code == 404
    assert http.get(f"/v1/runs/compare?a={run}").status_code == 404


def test_links_that_leave_the_folder_make_a_run_invisible(http: httpx.Client, folder: Path) -> None:
    outside = folder.parent / "outside"
    shutil.copytree(folder / "mill", outside)
    (folder / "linked").symlink_to(outside)
    shutil.copytree(folder / "mill", folder / "partly")
    (folder / "partly" / "trees.jsonl").unlink()
    (folder / "partly" / "trees.jsonl").symlink_to(outside / "trees.jsonl")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "inside").symlink_to(folder / "mill")
    assert [run["name"] for run in http.get("/v1/runs").json()["data"]] == ["mill", "inside"]
    for name in ("linked", "partly", "circle"):
        assert {http.get(f"/v1/runs/{name}{path}").status_code for path in PATHS} == {404}


def test_threads_that_a_run_lacks_are_not_found(http: httpx.Client) -> None:
    assert http.get("/v1/runs/mill/trees/judge-9").status_code == 404
    assert http.get("/v1/runs/mill/trees/..%2Frows").status_code == 404
    assert http.get("/v1/runs/mill/trees/a%00").status_code == 400


def test_texts_that_are_no_utf_8_break_no_answer(http: httpx.Client, folder: Path) -> None:
    asked = {"id": "q\ud800", "question": "Lone \ud800 and \x00?", "golden_answers": ["\udfff"]}
    (folder.parent / "asked.jsonl").write_text(json.dumps(asked) + "\n", encoding="utf-8")
    add_run(folder, "lone", {"judge": 0})
    manifest = json.loads((folder / "lone" / "manifest.json").read_text(encoding="utf-8"))
    manifest["identity"] |= {"llm": "\udead", "temperature": float("nan")}
    (folder / "lone" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for path in ("", "/lone", "/lone/questions", "/lone/report"):
        assert http.get(f"/v1/runs{path}").status_code == 200
    assert http.get("/v1/runs/lone/questions").json()["total"] == 1


def test_a_key_for_certain_collections_sees_no_run(settings: Settings, folder: Path) -> None:
    grants = {"all": None, "some": frozenset({COLLECTION})}
    with closing(KeyTables(settings)) as tables:
        granted = {name: KeyBook(tables).add(name, collections=those)[1] for name, those in grants.items()}
    options = ServerOptions(runs=folder, needs_keys=True)
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        for path in ("/v1/runs/compare?a=mill", *(f"/v1/runs/mill{path}" for path in PATHS)):
            status = {
                name: http.get(path, headers={"Authorization": f"Bearer {key}"}).status_code
                for name, key in granted.items()
            }
            assert status == {"all": 200, "some": 404}, path
        listed = http.get("/v1/runs", headers={"Authorization": f"Bearer {granted['some']}"})
        assert listed.json() == {"data": [], "total": 0}


def test_without_a_folder_there_are_no_runs(settings: Settings) -> None:
    with serving(settings) as url:
        assert httpx.get(f"{url}/v1/runs", timeout=60).json() == {"data": [], "total": 0}
        assert httpx.get(f"{url}/v1/runs/mill", timeout=60).status_code == 404
