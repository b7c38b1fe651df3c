"""Every CSV file that the product writes goes through one function, which makes it harmless where that is asked."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.papers.files import write_csv
from judgetree.evaluation.reports.page import write_report
from judgetree.evaluation.rows.csv_tables import SPREADSHEET, csv_of
from tests.eval.run_rows import write_run

REPO = Path(__file__).parents[3]
WRITER = re.compile(r"\.to_(?:csv|excel)\(|csv\.(?:writer|DictWriter)\(|ExcelWriter\(|Workbook\(")
TEXT = '=HYPERLINK("http://127.0.0.1/?"&A1,"x");=1+1'


def test_every_csv_is_written_by_one_function() -> None:
    found = {
        file.relative_to(REPO).as_posix()
        for room in ("modules", "graphs", "eval", "app")
        for file in (REPO / room).rglob("*.py")
        if WRITER.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"eval/rows/csv_tables.py"}, "write tables with csv_of, which has a form for spreadsheets"


def test_a_table_for_a_spreadsheet_marks_texts_and_keeps_numbers() -> None:
    table = pd.DataFrame({"=name": [TEXT, "-3.5", None], "n": [-1.5, 2.0, float("nan")], "list": [["=1"], (), "@a"]})
    raw, safe = csv_of(table), csv_of(table, spreadsheet=True)
    assert raw == table.to_csv(index=False)
    assert safe.startswith("\ufeff")
    head, *rows = csv.reader(io.StringIO(safe[1:]))
    assert head == ["'=name", "n", "list"]
    assert rows == [[f"'{TEXT}", "-1.5", "['=1']"], ["-3.5", "2.0", "()"], ["", "", "'@a"]]
    assert f'"{TEXT[1:5]}' not in safe


@pytest.fixture
def run(tmp_path: Path) -> Path:
    table = pd.DataFrame({"question": [TEXT, "-3.5"], "answer": ["right", "right"], "type": ["@kind", "+1"]})
    table.to_csv(tmp_path / "q.csv", index=False)
    return write_run(tmp_path / "run", {"judge": 1}, dataset=f"questions:{tmp_path / 'q.csv'}", systems=["judge"])


def test_a_report_for_a_spreadsheet_is_beside_the_raw_one(run: Path) -> None:
    report = write_report(run, spreadsheet=True)
    assert run / SPREADSHEET in report.files
    raw, safe = (pd.read_csv(run / name, dtype=str) for name in ("results.csv", SPREADSHEET))
    assert list(raw.columns) == list(safe.columns)
    assert raw["type"].tolist() == ["@kind", "+1"]
    assert safe["type"].tolist() == ["'@kind", "+1"]
    for name in safe.columns:
        for text in safe[name].dropna():
            assert not re.match(r"\s*[=+@]", text) or re.fullmatch(r"[+-]?[\d.]+", text)
    files = write_csv(report, run / "csv", spreadsheet=True)
    assert files
    assert not any(re.search(r'(?m)(^|,)"?[=@]', file.read_text(encoding="utf-8")) for file in files)


def test_a_report_without_it_writes_what_it_did(run: Path) -> None:
    assert SPREADSHEET not in {file.name for file in write_report(run).files}


@pytest.mark.parametrize("name", ["q.csv", "q.xlsx"])
def test_questions_come_back_from_a_spreadsheet(name: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"question": [TEXT, "-3.5", "'=1", "'tis"]})
    if name == "q.csv":
        (tmp_path / name).write_text(csv_of(table, spreadsheet=True), encoding="utf-8")
    else:
        table["question"] = ["'" + TEXT, "-3.5", "''=1", "'tis"]
        table.to_excel(tmp_path / name, index=False)
    assert [each.question for each in load_own_questions(tmp_path / name).questions] == [TEXT, "-3.5", "'=1", "'tis"]
