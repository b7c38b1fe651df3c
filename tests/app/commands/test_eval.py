"""``judgetree eval``: a run and its report, as a user gets them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.settings import load_settings
from tests.app.conftest import CHAIN, CHINESE, Cli, Dam, killed, write_corpus
from tests.eval.dataset_files import write_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    write_corpus(tmp_path / "data" / "standards")
    return write_lines(tmp_path / "data", asdict(CHAIN), asdict(CHINESE), name="qa.jsonl")


def test_rows_that_are_left_out_and_replies_that_are_lost_are_said(cli: Cli, tmp_path: Path) -> None:
    """Every mean was over fewer questions than the file has, and 700 paid replies were paid again, without a word."""
    (tmp_path / "mine.csv").write_text(f"id,question,answer\na,{CHAIN.question},40 mm\na,twice,no\nb,,no\n")
    options = ("--questions", str(tmp_path / "mine.csv"), "--systems", "llm", "--skip-bad-rows")
    told = cli("eval", "run", *options, "--out", str(tmp_path / "a")).ok()
    left_out = f"Left out 2 of 3 rows of {tmp_path / 'mine.csv'}; the first is row 3: 'a' was already in row 2"
    assert told.err.count(left_out) == 1
    report = cli("eval", "report", str(tmp_path / "a")).ok().out
    assert "\n\n**2 rows of the data set are malformed and left out of every figure.**\n\n" in report

    kept = load_settings().home / "completions.sqlite"
    kept.write_bytes(kept.read_bytes()[:4096] + b"\xa5" * 8192)
    told = cli("eval", "run", *options, "--out", str(tmp_path / "b")).ok()
    assert f"model cache {kept} is corrupt" in told.err
    assert "It is kept as completions.sqlite.corrupt1" in told.err


def test_rows_that_may_be_misread_stand_in_the_report_and_the_manifest(cli: Cli, tmp_path: Path) -> None:
    """They were a warning of the run, which nobody sees who reads the report."""
    rows = [f"{n},What is {n}?,{answer},\n" for n, answer in enumerate(["a | b", "None", "[x`*]", "None", "n/a", "y"])]
    rows.append("z,Where is it?,here,unanswerable\n")
    (tmp_path / "mine.csv").write_text("id,question,answer,type\n" + "".join(rows))
    run = tmp_path / "run"
    told = cli("eval", "run", "--questions", str(tmp_path / "mine.csv"), "--systems", "llm", "--out", str(run)).ok()
    assert f"{tmp_path / 'mine.csv'}: 6 rows may be misread: answers are left out," in told.err
    read = json.loads((run / "manifest.json").read_text())["questions_read"]
    assert (read["doubtful_rows"], len(read["doubts"])) == (6, 5)
    report = cli("eval", "report", str(run)).ok().out
    section = report.split("**6 rows of the file of questions may be misread.** ")[1].split("```")[1].splitlines()
    assert section[1].startswith("answers are left out, since the type says that there is none")
    assert section[1:] == read["doubts"]
    assert "'None' is read as this text: leave the cell empty for none (rows 3, 5)" in "".join(section)
    assert json.loads(cli("eval", "report", str(run), "--json").ok().out)["questions_read"] == read


@pytest.mark.slow
def test_run_and_report(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "a"
    config = tmp_path / "experiment.yaml"
    config.write_text("topk: 2\nmax_rec_depth: 2\n", encoding="utf-8")
    options = ("--dataset", f"standards:{data}", "--config", str(config), "--out", str(out))
    ran = cli("eval", "run", *options).ok()
    assert f"6 asked, 0 kept from before, 0 failed, 0 degraded: {out}" in ran.out
    assert f"judgetree eval report {out}" in ran.out

    again = cli("eval", "run", *options, "--json")
    gone_on = json.loads(again.out)
    counted = {name: gone_on[name] for name in ("out", "asked", "kept", "failed", "stopped_by")}
    assert counted == {"out": str(out), "asked": 0, "kept": 6, "failed": 0, "stopped_by": ""}

    told = cli("eval", "report", str(out)).ok()
    assert "| judge | 2 | 0 | 0 | 0 | 100.0 (34.2 to 100.0) |" in told.out
    assert (out / "report.md").read_text(encoding="utf-8") == told.out
    table = pd.read_csv(out / "results.csv")
    assert sorted(table["system"].unique()) == ["judge", "llm", "naive"]
    assert list(pd.read_parquet(out / "results.parquet")["question_id"]) == list(table["question_id"])

    document = json.loads(cli("eval", "report", str(out), "--json").out)
    means = {(record["system"], record["metric"]): record["mean"] for record in document["systems"]}
    assert means["judge", "em"] == 1.0
    assert means["llm", "em"] == 0.0
    kinds = {(record["system"], record["kind"]): record["answers"] for record in document["failures"]}
    assert (kinds["llm", "closed_book"], sum(kinds.values())) == (2, int((table["em"] < 1.0).sum()))
    assert {record["split"] for record in document["splits"]} >= {"type"}
    assert "report.html" in told.err.replace("\n", "")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert CHINESE.question in page
    assert len((out / "trees.jsonl").read_text(encoding="utf-8").splitlines()) == 6

    compared = cli("eval", "compare", str(out)).ok()
    assert compared.out.count("- No difference in EM was shown; ") == 2, (
        "two systems with naive, by the primary outcome"
    )
    assert "| judge | naive | F1 |" in compared.out
    assert json.loads(cli("eval", "compare", str(out), "--json").out)[0]["metric"] == "em"


def test_questions_of_one_s_own_over_a_folder(cli: Cli, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f"Frage;Antwort\n{CHAIN.question};{CHAIN.answer}\n{CHINESE.question};\n", encoding="utf-8")
    docs, out = data.parent / "standards", tmp_path / "run"
    options = ("--questions", str(file), "--corpus", str(docs), "--systems", "naive,judge", "--out", str(out))
    unnamed = cli("eval", "run", *options)
    assert (unnamed.status, out.exists()) == (2, False)
    assert "there are Frage, Antwort. Name it: --columns question=NAME" in unnamed.err.replace("\n", " ")
    ran = cli(
        *("eval", "run", *options, "--columns", "question=Frage, answer=Antwort"),
        *("--topk", "2", "--max-depth", "1", "--search-type", "sparse", "--judge", "generated", "--json"),
    )
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["asked"] == 4
    identity = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["identity"]
    assert {name: identity[name] for name in ("topk", "max_rec_depth", "search_type", "judge")} == {
        "topk": 2,
        "max_rec_depth": 1,
        "search_type": "sparse",
        "judge": "generated",
    }
    assert "| judge | 2 |" in cli("eval", "report", str(out)).out
    wrong = cli("eval", "run", *options, "--columns", "Frage")
    assert (wrong.status, "--columns 'Frage' is not COLUMN=NAME" in wrong.err) == (2, True)


def test_sample_asks_so_many_questions_and_not_together_with_a_limit(cli: Cli, data: Path, tmp_path: Path) -> None:
    options = ("--dataset", f"standards:{data}", "--systems", "llm", "--out", str(tmp_path / "run"), "--sample", "1")
    assert json.loads(cli("eval", "run", *options, "--json").out)["asked"] == 1
    cli("eval", "run", *options, "--limit", "1").refused("sample")


def test_failed_questions_end_with_1_and_a_remedy(
    cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    scripted.configure(faults={"500": 1.0})
    ran = cli("eval", "run", "--dataset", f"standards:{data}", "--systems", "llm", "--out", str(tmp_path / "run"))
    assert ran.status == 1
    assert "2 failed" in ran.out
    assert "--retry failed" in ran.out


@pytest.mark.slow
def test_killed_run_resumes_without_loss_or_copies(
    cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    out, replayed = tmp_path / "run", tmp_path / "replayed"
    options = ("--dataset", f"standards:{data}", "--systems", "naive,judge", "--concurrency", "2")
    scripted.responses = dam = Dam(lambda _: len(dam.let_through) >= 5)
    killed("eval", "run", *options, "--out", str(out), at=dam)
    scripted.responses = None
    before = len(RunStore(out).read_rows())
    ran = cli("eval", "run", *options, "--out", str(out), "--json")
    assert (json.loads(ran.out)["asked"], json.loads(ran.out)["kept"]) == (4 - before, before)
    assert len((out / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    assert cli("eval", "run", *options, "--out", str(replayed), "--cache", "replay").status == 0
    assert outcomes(out) == outcomes(replayed)


def outcomes(run: Path) -> dict[tuple[str, str, int], object]:
    return {row.place: (row.prediction, row.status, row.chunks) for row in RunStore(run).read_rows()}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--dataset", "squad:x.json"), "hotpotqa, 2wiki, musique"),
        (("--dataset", "hotpotqa:nowhere.json"), "nowhere.json"),
        (("--systems", "naive"), "dataset: Field required"),
        (("--dataset", "hotpotqa:a.json", "--systems", "rag"), "Unknown system 'rag'"),
        (("--dataset", "hotpotqa:a.json", "--systems", "naive,juge"), "Did you mean 'judge'?"),
    ],
)
def test_user_errors_end_with_2(cli: Cli, tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    cli("eval", "run", "--out", str(tmp_path / "run"), *options).refused(named)


def test_report_of_nothing_ends_with_2(cli: Cli, tmp_path: Path) -> None:
    cli("eval", "report", str(tmp_path)).refused("holds no finished question")
