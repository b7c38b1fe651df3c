"""Tables and plots of a run for a paper: what they say, that LaTeX takes them, and that every frame is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from judgetree.app.cli import all_commands
from judgetree.evaluation.papers.files import write_csv, write_latex, write_plots
from judgetree.evaluation.papers.tables import groups_of_columns, paper_tables
from judgetree.evaluation.reports.report import Report, load_report
from judgetree.evaluation.tables.latex import latex_text
from judgetree.evaluation.tables.table import Cell, Table
from judgetree.modules.errors import SettingsError
from tests.eval.run_rows import write_run

KINDS = ('50 % & \\_#${}$~^<>|"`--[x]*', "plain")
QUESTIONS = 24
PDFLATEX = shutil.which("pdflatex")


def write_run_of_kinds(folder: Path, right: dict[str, int]) -> Path:
    """A run in which each system had its first so many questions right, of two kinds by turns."""
    file = folder.with_suffix(".jsonl")
    rows = [
        {"id": f"q{number}", "question": f"Question {number}?", "answer": "right", "type": KINDS[number % 2]}
        for number in range(QUESTIONS)
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return write_run(folder, right, questions=str(file))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_of_kinds(tmp_path_factory.mktemp("runs") / "a", {"llm": 4, "naive": 6, "judge": QUESTIONS})


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return load_report(run)


def table(report: Report, name: str) -> Table:
    return next(each for each in paper_tables(report) if each.name == name)


def test_table_of_answers_has_intervals_and_marks_what_differs_from_the_baseline(report: Report) -> None:
    answers = table(report, "answers")
    assert answers.head == ("System", "n", "EM", "F1", "cover EM")
    llm, naive, judge = answers.rows
    assert judge[:3] == (Cell(text="judge"), Cell(text="24"), Cell(text="100.0", bounds=("86.2", "100.0"), marks="*"))
    assert (llm[2].marks, naive[2].marks) == ("", "")
    assert "* differs from naive (paired tests, p < .05 after Holm's correction, " in answers.caption
    assert "Primary outcome: EM, corrected for 2. Others, corrected together for 4: F1, seconds." in answers.caption


def test_caption_names_the_means_that_stand_over_other_questions(report: Report) -> None:
    assert "comparable" not in table(report, "answers").caption
    other = replace(report, common=report.systems[report.systems["metric"] == "seconds"])
    captions = {each.name: each.caption for each in paper_tables(other)}
    assert "Not comparable, since over other questions for one system than for another: seconds." in captions["cost"]
    assert "comparable" not in captions["answers"]


def test_every_pair_is_marked_by_letters(run: Path) -> None:
    llm, naive, judge = table(load_report(run, baseline="all"), "answers").rows
    assert [row[0].marks for row in (llm, naive, judge)] == ["a", "b", "c"]
    assert [row[2].marks for row in (llm, naive, judge)] == ["c", "c", "a,b"]


def test_splits_are_tested_in_pairs_and_corrected_together(report: Report) -> None:
    compared = report.split_comparisons
    assert {(each.split, each.part, each.a, each.b) for each in compared} == {
        ("type", kind, system, "naive") for kind in KINDS for system in ("llm", "judge")
    }
    assert {each.paired.comparisons for each in compared} == {len(compared)} == {8}
    split = table(report, "split-type")
    assert split.head[:3] == ("Question type", "n", "llm EM")
    assert [[cell.marks for cell in row if cell.marks] for row in split.rows] == [["*", "*"], ["*", "*"]]
    assert "Corrected together: 8 comparisons." in split.caption
    assert next(each for each in compared if each.a == "judge").verdict.startswith(f"type {KINDS[0]}: judge is better")


def test_texts_are_escaped() -> None:
    assert latex_text("a_b & 5 %\n{x}") == r"a\_b \& 5 \% \{x\}"
    assert latex_text("\\end{table}~^") == r"\textbackslash{}end\{table\}\textasciitilde{}\textasciicircum{}"


def test_one_file_holds_all_tables_and_a_folder_one_each(report: Report, tmp_path: Path) -> None:
    (file,) = write_latex(report, tmp_path / "made" / "all.tex")
    text = file.read_text(encoding="utf-8")
    names = [each.name for each in paper_tables(report)]
    assert names == ["answers", "cost", "comparisons", "split-type", "failures"]
    assert re.findall(r"\\label{tab:(.+?)}", text) == names
    for rule in ("toprule", "midrule", "bottomrule", "begin{tabular}", "end{tabular}"):
        assert text.count(f"\\{rule}") == len(names)
    for lines in re.findall(r"\\begin{tabular}{@{}(\w+)@{}}(.*?)\\end{tabular}", text, re.DOTALL):
        rows = [line for line in lines[1].splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(lines[0])}
    each = write_latex(report, tmp_path / "tables")
    assert [path.name for path in each] == [f"{name}.tex" for name in names]
    with pytest.raises(SettingsError, match=r"all\.tex is a folder"):
        (tmp_path / "folder" / "all.tex").mkdir(parents=True)
        write_latex(report, tmp_path / "folder" / "all.tex")
    with pytest.raises(SettingsError, match=r"is a file\. Name a folder"):
        write_csv(report, file)


@pytest.mark.skipif(PDFLATEX is None, reason="no pdflatex on the PATH")
def test_latex_compiles_with_booktabs_alone(report: Report, tmp_path: Path) -> None:
    write_latex(report, tmp_path / "all.tex")
    body = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{all}\end{document}"
    (tmp_path / "paper.tex").write_text(body)
    command = [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    log = made.stdout.decode(errors="replace")
    assert made.returncode == 0, log[-2000:]
    assert "Missing character" not in log
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_csv_has_every_frame_with_its_tests(report: Report, tmp_path: Path) -> None:
    files = write_csv(report, tmp_path)
    assert [file.name for file in files] == ["systems.csv", "splits.csv", "comparisons.csv", "failures.csv"]
    compared = pd.read_csv(tmp_path / "comparisons.csv")
    assert len(compared) == 6 + 8
    whole = compared[compared["split"].isna() & (compared["a"] == "judge") & (compared["metric"] == "em")].iloc[0]
    assert (whole["difference"], whole["n"], whole["comparisons"], whole["is_shown"]) == (0.75, 24, 2, True)
    assert whole["p_value"] < whole["adjusted_p_value"]


def test_plots_are_written_as_svg_and_pdf_the_same_each_time(report: Report, tmp_path: Path) -> None:
    first, again = write_plots(report, tmp_path / "a"), write_plots(report, tmp_path / "b")
    assert [file.name for file in first] == [
        *("latency.svg", "latency.pdf", "splits.svg", "splits.pdf", "failures.svg", "failures.pdf"),
    ]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]
    for file in first:
        if file.suffix == ".svg":
            ElementTree.fromstring(file.read_text(encoding="utf-8"))
        else:
            assert file.read_bytes().startswith(b"%PDF")


def test_command_writes_what_is_asked_for(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path))
    asked = ["--latex", f"{tmp_path}/t.tex", "--csv", f"{tmp_path}/csv", "--plots", f"{tmp_path}/plots"]
    all_commands()(["eval", "report", str(run), *asked], standalone_mode=False)
    assert {"t.tex", "csv", "plots"} <= {path.name for path in tmp_path.iterdir()}
    assert "t.tex" in capsys.readouterr().err


def test_columns_are_parted_so_that_each_table_fits_a_page() -> None:
    parts = [list(each) for each in groups_of_columns("abcdefgh")]
    assert parts == [list("abcd"), list("efgh")]
    assert [len(each) for each in groups_of_columns("abcdefgh", beside=3)] == [2, 3, 3]
    assert [len(each) for each in groups_of_columns("abcd", beside=9)] == [2, 2]


def test_files_name_what_they_are_of(report: Report, tmp_path: Path) -> None:
    (tables,) = write_latex(report, tmp_path / "t.tex")
    assert "% data set: " in tables.read_text("utf-8")
    svg = next(file for file in write_plots(report, tmp_path) if file.suffix == ".svg")
    assert "data set: " in svg.read_text("utf-8")
